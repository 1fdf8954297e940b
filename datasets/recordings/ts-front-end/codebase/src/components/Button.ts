import { Attr, h, VNode } from "../view/h.js";

export type ButtonKind = "primary" | "plain" | "danger";

export interface ButtonProps {
  label: string;
  action: string;
  kind?: ButtonKind;
  icon?: string;
  iconOnly?: boolean;
  attrs?: Record<string, Attr>;
}

/** A button. `action` is what the event delegate of the entry dispatches on. */
export function Button(props: ButtonProps): VNode {
  const kind = props.kind || "plain";
  return h(
    "button",
    {
      type: "button",
      class: `btn btn-${kind}`,
      "data-action": props.action,
      "aria-label": props.iconOnly ? props.label : undefined,
      ...props.attrs,
    },
    props.icon && h("span", { class: `icon icon-${props.icon}`, "aria-hidden": "true" }),
    !props.iconOnly && props.label,
  );
}
