import { Ctx } from "../app/context.js";
import { dueTone } from "../format/due.js";
import { Loan } from "../state/model.js";
import { h, VNode } from "../view/h.js";

/** Due day of a loan on the kiosks. Same as DueBadge but larger. */
export function DueChip(loan: Loan, ctx: Ctx): VNode {
  const tone = dueTone(loan.dueOn, ctx.today, 2);
  return h(
    "span",
    { class: `chip chip-${tone}` },
    h("span", { class: `icon icon-${tone}`, "aria-hidden": "true" }),
    ctx.t(tone === "late" ? "due.since" : "due.on", { day: ctx.day(loan.dueOn) }),
  );
}
