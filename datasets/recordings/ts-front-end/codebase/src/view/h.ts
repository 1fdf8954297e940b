/** A node of the view. Screens return these; nothing in `src/` touches a DOM. */
export interface VNode {
  tag: string;
  attrs: Record<string, string>;
  children: Child[];
}
export type Child = VNode | string;
export type Attr = string | number | boolean | undefined | null;
type Nested = Child | null | undefined | false | Nested[];

/** Make a node. Attributes that are `false`, `null` or `undefined` are left out, `true` is empty. */
export function h(tag: string, attrs: Record<string, Attr> = {}, ...children: Nested[]): VNode {
  const kept: Record<string, string> = {};
  for (const name of Object.keys(attrs)) {
    const value = attrs[name];
    if (value === undefined || value === null || value === false) continue;
    kept[name] = value === true ? "" : String(value);
  }
  return { tag, attrs: kept, children: flatten(children) };
}

function flatten(children: Nested[]): Child[] {
  const flat: Child[] = [];
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) flat.push(...flatten(child));
    else flat.push(child);
  }
  return flat;
}

/** Text of a node and everything below it, as a screen reader would take it without labels. */
export function textOf(node: Child): string {
  if (typeof node === "string") return node;
  if (node.attrs["aria-hidden"] === "true") return "";
  return node.children.map(textOf).join("");
}

/** Every node of a tree, parents first. */
export function walk(node: Child, visit: (node: VNode, parents: VNode[]) => void, parents: VNode[] = []): void {
  if (typeof node === "string") return;
  visit(node, parents);
  for (const child of node.children) walk(child, visit, [...parents, node]);
}
