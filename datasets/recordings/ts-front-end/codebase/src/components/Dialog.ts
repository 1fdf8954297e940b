import { Child, h, VNode } from "../view/h.js";
import { Button } from "./Button.js";

export interface DialogProps {
  id: string;
  title: string;
  body: Child[];
  confirm: string;
  cancel: string;
  action: string;
}

/** A modal question. The first button in the source gets the focus. */
export function Dialog(props: DialogProps): VNode {
  return h(
    "div",
    { role: "dialog", "aria-modal": "true", id: props.id, "aria-labelledby": `${props.id}-title` },
    h("h2", { id: `${props.id}-title` }, props.title),
    ...props.body,
    h(
      "div",
      { class: "dialog-buttons" },
      Button({ label: props.confirm, action: props.action, kind: "primary" }),
      Button({ label: props.cancel, action: `${props.id}/cancel` }),
    ),
  );
}
