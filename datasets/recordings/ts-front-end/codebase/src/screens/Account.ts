import { Ctx } from "../app/context.js";
import { Layout } from "../components/Layout.js";
import { State } from "../state/model.js";
import { openFeesCents } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";

export function accountScreen(state: State, ctx: Ctx): VNode {
  const currency = state.fees.length ? state.fees[0].currency : "EUR";
  return Layout(
    state,
    ctx,
    ctx.t("account.title"),
    h("p", {}, ctx.t("account.open", { sum: ctx.money(openFeesCents(state), currency) })),
    state.fees.length > 0 &&
      h(
        "table",
        {},
        h("caption", {}, ctx.t("account.fees")),
        h(
          "tbody",
          {},
          state.fees.map((fee) =>
            h(
              "tr",
              {},
              h("td", {}, ctx.day(fee.on)),
              h("td", {}, ctx.t(`fee.${fee.kind}`)),
              h("td", { class: "number" }, ctx.money(fee.cents, fee.currency)),
            ),
          ),
        ),
      ),
  );
}
