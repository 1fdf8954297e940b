import { Ctx } from "../app/context.js";
import { href } from "../app/router.js";
import { State } from "../state/model.js";
import { overdueLoans } from "../state/selectors.js";
import { Child, h, VNode } from "../view/h.js";
import { Notices } from "./Notices.js";

/** The frame of the web app: header with the number of overdue loans, navigation, notices. */
export function Layout(state: State, ctx: Ctx, title: string, ...content: Array<Child | null | false>): VNode {
  const overdue = overdueLoans(state, ctx.today).length;
  return h(
    "div",
    { class: "app", lang: ctx.locale },
    h(
      "header",
      { class: "top" },
      h("a", { class: "brand", href: href("catalogue") }, ctx.t("brand")),
      h(
        "nav",
        { "aria-label": ctx.t("nav.label") },
        h("a", { href: href("catalogue") }, ctx.t("nav.tools")),
        h(
          "a",
          { href: href("loans") },
          ctx.t("nav.loans"),
          overdue > 0 && h("span", { class: "count", "aria-label": ctx.t("nav.overdue", { count: overdue }) }, String(overdue)),
        ),
        h("a", { href: href("account") }, ctx.t("nav.account")),
      ),
    ),
    Notices(state.notices, ctx),
    h("main", { id: "main" }, h("h1", {}, title), ...content),
  );
}

/** The frame of the kiosks: no navigation, big type, a button that starts over. */
export function KioskLayout(state: State, ctx: Ctx, title: string, ...content: Array<Child | null | false>): VNode {
  return h(
    "div",
    { class: "kiosk", lang: ctx.locale, "data-idle": ctx.config.kiosk.idleSeconds },
    h("main", { id: "main" }, h("h1", {}, title), ...content),
    Notices(state.notices, ctx),
  );
}
