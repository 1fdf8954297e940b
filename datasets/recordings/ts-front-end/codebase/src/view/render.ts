import { Child } from "./h.js";

const VOID = ["img", "input", "br", "hr"];
const INLINE = ["a", "b", "span", "time", "abbr", "strong", "em", "label"];

function escape(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** HTML of a node, indented by two spaces, so that snapshots can be read and compared. */
export function render(node: Child, depth = 0): string {
  const pad = "  ".repeat(depth);
  if (typeof node === "string") return pad + escape(node);
  const attrs = Object.keys(node.attrs)
    .map((name) => (node.attrs[name] === "" ? ` ${name}` : ` ${name}="${escape(node.attrs[name])}"`))
    .join("");
  const open = `<${node.tag}${attrs}>`;
  if (VOID.includes(node.tag)) return pad + open;
  const flat = node.children.every((child) => typeof child === "string" || INLINE.includes(child.tag));
  if (flat) return `${pad}${open}${node.children.map((child) => render(child).trim()).join("")}</${node.tag}>`;
  const inner = node.children.map((child) => render(child, depth + 1)).join("\n");
  return `${pad}${open}\n${inner}\n${pad}</${node.tag}>`;
}
