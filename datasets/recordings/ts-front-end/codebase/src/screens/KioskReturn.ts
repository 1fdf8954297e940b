import { Ctx } from "../app/context.js";
import { Button } from "../components/Button.js";
import { Dialog } from "../components/Dialog.js";
import { DueChip } from "../components/DueChip.js";
import { KioskLayout } from "../components/Layout.js";
import { State } from "../state/model.js";
import { toolName } from "../state/selectors.js";
import { h, VNode } from "../view/h.js";

export function kioskReturnScreen(state: State, ctx: Ctx, params: Record<string, string>): VNode {
  const loan = state.loans.byId[params.id];
  if (!loan) return KioskLayout(state, ctx, ctx.t("loan.missing"));
  const name = toolName(state, loan.toolId);
  // The desk staff of shd-04 tried extensions in 2024 (SHK-208). Nobody calls this any more.
  if (ctx.flag("loan_extension")) {
    return KioskLayout(state, ctx, name, Button({ label: "Extend (staff)", action: "staff/extend", attrs: { "data-id": loan.id } }));
  }
  return KioskLayout(
    state,
    ctx,
    name,
    DueChip(loan, ctx),
    Dialog({
      id: "give-back",
      title: ctx.t("kiosk.return.title"),
      body: [h("p", {}, ctx.t("kiosk.return.body", { name }))],
      confirm: ctx.t("kiosk.return.yes"),
      cancel: ctx.t("kiosk.return.no"),
      action: "loans/return",
    }),
  );
}
