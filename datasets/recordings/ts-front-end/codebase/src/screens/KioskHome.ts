import { Ctx } from "../app/context.js";
import { href } from "../app/router.js";
import { DueChip } from "../components/DueChip.js";
import { KioskLayout } from "../components/Layout.js";
import { State } from "../state/model.js";
import { toolName, visibleLoans } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";

export function kioskHomeScreen(state: State, ctx: Ctx): VNode {
  const loans = visibleLoans(state, ctx.today);
  return KioskLayout(
    state,
    ctx,
    ctx.t("kiosk.title"),
    loans.length === 0 ? h("p", {}, ctx.t("loans.none")) : null,
    h(
      "ul",
      { class: "kiosk-loans" },
      loans.map((loan) =>
        h(
          "li",
          { "data-loan": loan.id },
          h("a", { class: "kiosk-link", href: href("kiosk-return", { id: loan.id }) }, toolName(state, loan.toolId)),
          DueChip(loan, ctx),
        ),
      ),
    ),
  );
}
