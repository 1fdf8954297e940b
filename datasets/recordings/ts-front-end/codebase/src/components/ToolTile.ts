import { Ctx } from "../app/context.js";
import { href } from "../app/router.js";
import { Tool } from "../state/model.js";
import { h, VNode } from "../view/h.js";

export function ToolTile(tool: Tool, holds: number, ctx: Ctx): VNode {
  return h(
    "li",
    { class: "tile" },
    tool.photo ? h("img", { src: `/photos/${tool.photo}`, alt: "" }) : null,
    h("a", { href: href("tool", { id: tool.id }) }, tool.name),
    holds > 0 && h("span", { class: "muted" }, ctx.t("tool.holds", { count: holds })),
  );
}
