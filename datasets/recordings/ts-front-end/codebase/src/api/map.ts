import { ApiFee, ApiHold, ApiLoan, ApiTool } from "./types.js";
import { Fee, Hold, Loan, Tool } from "../state/model.js";

export function toLoan(record: ApiLoan): Loan {
  return {
    id: record.id,
    toolId: record.tool_id,
    memberId: record.member_id,
    shed: record.shed,
    outOn: record.out_on,
    dueOn: record.due_on,
    status: record.status,
    extensionsLeft: record.renewals_left,
  };
}

export function toTool(record: ApiTool): Tool {
  return {
    id: record.id,
    name: record.name,
    shed: record.shed,
    category: record.category,
    depositCents: record.deposit_cents,
    feePerDayCents: record.fee_per_day_cents,
    photo: record.photo,
  };
}

export function toHold(record: ApiHold): Hold {
  return { id: record.id, toolId: record.tool_id, memberId: record.member_id, from: record.from };
}

export function toFee(record: ApiFee): Fee {
  return {
    id: record.id,
    loanId: record.loan_id,
    cents: record.cents,
    currency: record.currency,
    kind: record.kind,
    on: record.on,
  };
}
