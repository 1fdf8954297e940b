// Entry of the web app (phones and desktops). The kiosks have an entry of their own, kiosk.ts.
import "./routes.js";
import "../screens/screens.js";
import { VNode } from "../view/h.js";
import { State } from "../state/model.js";
import { context, Setup } from "./context.js";
import { match } from "./router.js";
import { screen } from "./registry.js";

/** The view of a path, in the layout of the web app. */
export function view(path: string, state: State, setup: Setup): VNode {
  const found = match(path);
  const ctx = context(setup, state);
  return screen(found ? found.name : "missing")(state, ctx, found ? found.params : {});
}
