import { Ctx } from "../app/context.js";
import { Button } from "../components/Button.js";
import { Layout } from "../components/Layout.js";
import { LoanCard } from "../components/LoanCard.js";
import { LoanRow } from "../components/LoanRow.js";
import { Filter, State } from "../state/model.js";
import { visibleLoans } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";

const FILTERS: Filter[] = ["all", "overdue", "returned"];

export function myLoansScreen(state: State, ctx: Ctx): VNode {
  const loans = visibleLoans(state, ctx.today);
  const { loading, failed, filter } = state.loans;
  return Layout(
    state,
    ctx,
    ctx.t("loans.title"),
    h(
      "div",
      { class: "filters", role: "group", "aria-label": ctx.t("loans.filter") },
      FILTERS.map((each) =>
        Button({
          label: ctx.t(`loans.filter.${each}`),
          action: "loans/filterSet",
          attrs: { "data-filter": each, "aria-pressed": filter === each ? "true" : "false" },
        }),
      ),
    ),
    loading && h("p", { class: "muted" }, ctx.t("loans.loading")),
    failed ? h("p", { class: "error" }, ctx.t("loans.failed", { code: failed })) : null,
    loans.length === 0 && !loading ? h("p", { class: "muted" }, ctx.t("loans.none")) : null,
    loans.length > 0 &&
      h(
        "table",
        { class: "wide-only" },
        h("caption", {}, ctx.t("loans.caption", { count: loans.length })),
        h(
          "thead",
          {},
          h("tr", {}, ["loans.col.tool", "loans.col.due", "loans.col.left"].map((key) => h("th", { scope: "col" }, ctx.t(key)))),
        ),
        h("tbody", {}, loans.map((loan) => LoanRow(loan, state, ctx))),
      ),
    loans.length > 0 && h("section", { class: "narrow-only", "aria-label": ctx.t("loans.title") }, h("h2", {}, ctx.t("loans.list")), loans.map((loan) => LoanCard(loan, state, ctx))),
  );
}
