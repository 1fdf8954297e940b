import { Ctx } from "../app/context.js";
import { Layout } from "../components/Layout.js";
import { ToolTile } from "../components/ToolTile.js";
import { State } from "../state/model.js";
import { holdsOn } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";

export function catalogueScreen(state: State, ctx: Ctx): VNode {
  const query = state.catalogue.query.toLowerCase();
  const tools = Object.values(state.catalogue.tools)
    .filter((tool) => tool.shed === state.session.shed && tool.name.toLowerCase().includes(query))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return Layout(
    state,
    ctx,
    ctx.t("catalogue.title"),
    h("label", { for: "search" }, ctx.t("catalogue.search")),
    h("input", { id: "search", type: "search", value: state.catalogue.query, "data-action": "catalogue/querySet" }),
    h("p", { class: "muted" }, ctx.t("catalogue.count", { count: tools.length })),
    h("ul", { class: "tiles" }, tools.map((tool) => ToolTile(tool, holdsOn(state, tool.id), ctx))),
  );
}
