// Entry of the kiosks: self-service terminals in the sheds, WebView 58, 1080 x 1920, touch only.
import "./kiosk-routes.js";
import "../screens/kiosk-screens.js";
import { VNode } from "../view/h.js";
import { State } from "../state/model.js";
import { context, Setup } from "./context.js";
import { match } from "./router.js";
import { screen } from "./registry.js";

export function kioskView(path: string, state: State, setup: Setup): VNode {
  const found = match(path);
  const ctx = context(setup, state);
  return screen(found ? found.name : "kiosk")(state, ctx, found ? found.params : {});
}
