/** Records as API v6 sends them. Field names are the server's; see docs/api-changes.md. */
export interface ApiLoan {
  id: string;
  tool_id: string;
  member_id: string;
  shed: string;
  out_on: string;
  due_on: string;
  status: "out" | "returned" | "lost";
  renewals_left: number;
}
export interface ApiTool {
  id: string;
  name: string;
  shed: string;
  category: string;
  deposit_cents: number;
  fee_per_day_cents: number;
  photo?: string;
}
export interface ApiHold {
  id: string;
  tool_id: string;
  member_id: string;
  from: string;
}
export interface ApiFee {
  id: string;
  loan_id: string;
  member_id: string;
  cents: number;
  currency: "EUR" | "PLN";
  kind: "late" | "damage" | "extension";
  on: string;
}
export interface ApiMember {
  id: string;
  handle: string;
  shed: string;
  locale: "en" | "de" | "pl";
}
export interface ApiError {
  code: string;
  status: number;
}
