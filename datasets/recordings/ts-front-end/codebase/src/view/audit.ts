import { VNode, textOf, walk } from "./h.js";

/** What an accessibility rule found. `rule` is the number in docs/accessibility.md. */
export interface Finding {
  rule: string;
  where: string;
  text: string;
}

function name(node: VNode): string {
  return node.attrs["aria-label"] || (node.attrs["aria-labelledby"] ? "by id" : "") || textOf(node).trim();
}

function where(node: VNode): string {
  const id = node.attrs["id"] ? `#${node.attrs["id"]}` : node.attrs["class"] ? `.${node.attrs["class"].split(" ")[0]}` : "";
  return `${node.tag}${id}`;
}

/** Check a rendered screen. Rules are listed in docs/accessibility.md. */
export function audit(root: VNode): Finding[] {
  const found: Finding[] = [];
  const ids: Record<string, number> = {};
  walk(root, (node) => {
    const id = node.attrs["id"];
    if (id) ids[id] = (ids[id] || 0) + 1;
  });
  let level = 0;
  walk(root, (node, parents) => {
    const add = (rule: string, text: string) => found.push({ rule, where: where(node), text });
    if ((node.tag === "button" || node.tag === "a") && !name(node)) add("A1", "no accessible name");
    if (node.tag === "img" && node.attrs["alt"] === undefined) add("A2", "no alt text");
    if (node.attrs["role"] === "dialog" && !node.attrs["aria-labelledby"]) add("A3", "dialog without a name");
    if (node.tag === "table" && !node.children.some((child) => typeof child !== "string" && child.tag === "caption")) {
      add("A4", "table without caption");
    }
    if (/^h[1-6]$/.test(node.tag)) {
      const here = Number(node.tag[1]);
      if (here > level + 1) add("A5", `h${here} after h${level || "nothing"}`);
      level = here;
    }
    for (const attr of ["aria-labelledby", "aria-describedby", "for"]) {
      const target = node.attrs[attr];
      if (target && !ids[target]) add("A6", `${attr} names ${target}, which is not there`);
    }
    if (node.attrs["id"] && ids[node.attrs["id"]] > 1 && parents.length) add("A6", `id ${node.attrs["id"]} is not unique`);
  });
  return found;
}
