import { Ctx } from "../app/context.js";
import { dueTone } from "../format/due.js";
import { Loan } from "../state/model.js";
import { h, VNode } from "../view/h.js";

/** Due day of a loan on the web: `Due 14 Mar`. Compare DueChip, its sister on the kiosks. */
export function DueBadge(loan: Loan, ctx: Ctx): VNode {
  const tone = dueTone(loan.dueOn, ctx.today, ctx.config.dueSoonDays);
  return h(
    "span",
    { class: `badge badge-${tone}` },
    ctx.t(tone === "late" ? "due.since" : "due.on", { day: ctx.dayShort(loan.dueOn) }),
  );
}
