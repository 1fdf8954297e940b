import { Ctx } from "../app/context.js";
import { href } from "../app/router.js";
import { daysBetween } from "../format/dates.js";
import { Loan, State } from "../state/model.js";
import { toolName } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";
import { DueBadge } from "./DueBadge.js";

/** A loan as a row of the table: wide windows. Narrow ones show LoanCard. */
export function LoanRow(loan: Loan, state: State, ctx: Ctx): VNode {
  const left = daysBetween(ctx.today, loan.dueOn) + 1;
  return h(
    "tr",
    { class: "loan-row", "data-loan": loan.id },
    h("th", { scope: "row" }, h("a", { href: href("loan", { id: loan.id }) }, toolName(state, loan.toolId))),
    h("td", {}, DueBadge(loan, ctx)),
    h("td", {}, left < 0 ? ctx.t("loan.daysLate", { count: -left }) : ctx.t("loan.daysLeft", { count: left })),
  );
}
