import { Ctx } from "../app/context.js";
import { href } from "../app/router.js";
import { daysBetween } from "../format/dates.js";
import { Loan, State } from "../state/model.js";
import { toolName } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";
import { DueBadge } from "./DueBadge.js";

/** A loan as a card: narrow windows. Wide ones show LoanRow. */
export function LoanCard(loan: Loan, state: State, ctx: Ctx): VNode {
  const left = daysBetween(ctx.today, loan.dueOn);
  return h(
    "article",
    { class: "loan-card", "data-loan": loan.id },
    h("h3", {}, h("a", { href: href("loan", { id: loan.id }) }, toolName(state, loan.toolId))),
    h(
      "p",
      { class: "loan-when" },
      DueBadge(loan, ctx),
      " ",
      left < 0 ? ctx.t("loan.daysLate", { count: -left }) : ctx.t("loan.daysLeft", { count: left }),
    ),
  );
}
