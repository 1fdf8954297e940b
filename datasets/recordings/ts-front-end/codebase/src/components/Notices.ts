import { Ctx } from "../app/context.js";
import { Notice } from "../state/model.js";
import { h, VNode } from "../view/h.js";
import { Button } from "./Button.js";

/** Messages about what happened, newest last. */
export function Notices(notices: Notice[], ctx: Ctx): VNode {
  return h(
    "div",
    { class: "notices" },
    notices.map((notice) =>
      h(
        "div",
        { class: `notice notice-${notice.kind}` },
        h("p", {}, ctx.t(notice.key, notice.params)),
        Button({ label: ctx.t("close"), action: "notices/closed", icon: "x", iconOnly: true, attrs: { "data-id": notice.id } }),
      ),
    ),
  );
}
