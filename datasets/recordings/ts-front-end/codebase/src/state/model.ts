import { Day } from "../format/dates.js";
import { Currency } from "../format/numbers.js";

export interface Loan {
  id: string;
  toolId: string;
  memberId: string;
  shed: string;
  outOn: Day;
  dueOn: Day;
  status: "out" | "returned" | "lost";
  extensionsLeft: number;
}
export interface Tool {
  id: string;
  name: string;
  shed: string;
  category: string;
  depositCents: number;
  feePerDayCents: number;
  photo?: string;
}
export interface Hold {
  id: string;
  toolId: string;
  memberId: string;
  from: Day;
}
export interface Fee {
  id: string;
  loanId: string;
  cents: number;
  currency: Currency;
  kind: "late" | "damage" | "extension";
  on: Day;
}

export type Filter = "all" | "overdue" | "returned";

export interface LoansState {
  byId: Record<string, Loan>;
  order: string[];
  shed: string;
  filter: Filter;
  loading: boolean;
  lastReceived: number;
  failed: string | null;
}
export interface SessionState {
  memberId: string;
  shed: string;
  locale: "en" | "de" | "pl";
}
export interface CatalogueState {
  tools: Record<string, Tool>;
  holds: Record<string, Hold[]>;
  query: string;
}
export interface Notice {
  id: number;
  kind: "info" | "error";
  key: string;
  params: Record<string, string | number>;
}
export interface State {
  session: SessionState;
  loans: LoansState;
  catalogue: CatalogueState;
  fees: Fee[];
  notices: Notice[];
}
