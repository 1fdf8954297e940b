import { Ctx } from "../app/context.js";
import { Button } from "../components/Button.js";
import { Layout } from "../components/Layout.js";
import { Currency } from "../format/numbers.js";
import { State } from "../state/model.js";
import { holdsOn } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";

/** Sheds that charge in złoty. The server does not say; see docs/api-changes.md. */
const PLN_SHEDS = ["shd-41"];

export function currencyOf(shed: string): Currency {
  return PLN_SHEDS.includes(shed) ? "PLN" : "EUR";
}

export function toolDetailScreen(state: State, ctx: Ctx, params: Record<string, string>): VNode {
  const tool = state.catalogue.tools[params.id];
  if (!tool) return Layout(state, ctx, ctx.t("tool.missing"));
  const currency = currencyOf(tool.shed);
  const holds = holdsOn(state, tool.id);
  return Layout(
    state,
    ctx,
    tool.name,
    tool.photo ? h("img", { src: `/photos/${tool.photo}`, alt: ctx.t("tool.photo", { name: tool.name }) }) : null,
    h("p", {}, ctx.t("tool.deposit", { sum: ctx.money(tool.depositCents, currency) })),
    h("p", {}, ctx.t("tool.fee", { sum: ctx.money(tool.feePerDayCents, currency) })),
    holds > 0 && h("p", { class: "hint" }, ctx.t("tool.holds", { count: holds })),
    Button({ label: ctx.t("tool.hold"), action: "holds/add", kind: "primary", attrs: { "data-id": tool.id } }),
  );
}
