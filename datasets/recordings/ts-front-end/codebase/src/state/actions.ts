import { Fee, Filter, Hold, Loan, SessionState, Tool } from "./model.js";

export type Action =
  | { type: "session/started"; session: SessionState }
  | { type: "session/shedChanged"; shed: string }
  | { type: "session/localeChanged"; locale: SessionState["locale"] }
  | { type: "loans/requested"; shed: string; requestId: number }
  | { type: "loans/received"; loans: Loan[]; requestId: number }
  | { type: "loans/failed"; code: string; requestId: number }
  | { type: "loans/filterSet"; filter: Filter }
  | { type: "loans/returned"; id: string }
  | { type: "catalogue/received"; tools: Tool[] }
  | { type: "catalogue/holdsReceived"; toolId: string; holds: Hold[] }
  | { type: "catalogue/querySet"; query: string }
  | { type: "fees/received"; fees: Fee[] }
  | { type: "notices/shown"; kind: "info" | "error"; key: string; params?: Record<string, string | number> }
  | { type: "notices/closed"; id: number };
