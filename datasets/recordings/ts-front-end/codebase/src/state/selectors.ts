import { Day } from "../format/dates.js";
import { Loan, State } from "./model.js";

/** Remember the last result while the inputs are the same objects. */
export function memo<A, B, R>(fn: (a: A, b: B) => R): (a: A, b: B) => R {
  let last: { a: A; b: B; result: R } | null = null;
  return (a, b) => {
    if (!last || last.a !== a || last.b !== b) last = { a, b, result: fn(a, b) };
    return last.result;
  };
}

const overdueIn = memo((byId: Record<string, Loan>, today: Day) =>
  Object.values(byId).filter((loan) => loan.status === "out" && loan.dueOn < today),
);

/** Loans that are out past their day; the number in the header counts these. */
export function overdueLoans(state: State, today: Day): Loan[] {
  return overdueIn(state.loans.byId, today);
}

/** Loans to list, in the order of the server, filtered as chosen. */
export function visibleLoans(state: State, today: Day): Loan[] {
  const all = state.loans.order.map((id) => state.loans.byId[id]);
  if (state.loans.filter === "overdue") return all.filter((loan) => loan.status === "out" && loan.dueOn < today);
  if (state.loans.filter === "returned") return all.filter((loan) => loan.status === "returned");
  return all.filter((loan) => loan.status !== "returned");
}

export function toolName(state: State, id: string): string {
  const tool = state.catalogue.tools[id];
  return tool ? tool.name : id;
}

export function holdsOn(state: State, toolId: string): number {
  return (state.catalogue.holds[toolId] || []).length;
}

export function openFeesCents(state: State): number {
  return state.fees.reduce((sum, fee) => sum + fee.cents, 0);
}
