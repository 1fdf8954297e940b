import { Ctx } from "../app/context.js";
import { Button } from "../components/Button.js";
import { DueBadge } from "../components/DueBadge.js";
import { Layout } from "../components/Layout.js";
import { State } from "../state/model.js";
import { holdsOn, toolName } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";

export function loanDetailScreen(state: State, ctx: Ctx, params: Record<string, string>): VNode {
  const loan = state.loans.byId[params.id];
  if (!loan) return Layout(state, ctx, ctx.t("loan.missing"));
  const holds = holdsOn(state, loan.toolId);
  return Layout(
    state,
    ctx,
    toolName(state, loan.toolId),
    h("p", { class: "muted" }, ctx.t("loan.number", { id: loan.id })),
    h(
      "dl",
      {},
      h("dt", {}, ctx.t("loan.out")),
      h("dd", {}, ctx.day(loan.outOn)),
      h("dt", {}, ctx.t("loan.due")),
      h("dd", {}, ctx.day(loan.dueOn), " ", DueBadge(loan, ctx)),
    ),
    holds > 0 && h("p", { class: "hint" }, ctx.t("loan.waiting", { count: holds })),
    loan.status === "out" && Button({ label: ctx.t("loan.return"), action: "loans/return", kind: "primary", attrs: { "data-id": loan.id } }),
  );
}
