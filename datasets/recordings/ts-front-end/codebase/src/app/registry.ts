import { State } from "../state/model.js";
import { h, VNode } from "../view/h.js";
import { Ctx } from "./context.js";

export type Screen = (state: State, ctx: Ctx, params: Record<string, string>) => VNode;

const screens: Record<string, Screen> = {};

/** Register a screen under the name of its route. Screens do so in screens.ts and kiosk-screens.ts. */
export function register(name: string, render: Screen): void {
  screens[name] = render;
}

export function screen(name: string): Screen {
  return screens[name] || ((_, ctx) => h("main", { id: "main" }, h("h1", {}, ctx.t("missing.title"))));
}
