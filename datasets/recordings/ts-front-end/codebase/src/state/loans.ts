import { Action } from "./actions.js";
import { Loan, LoansState } from "./model.js";

export const NO_LOANS: LoansState = {
  byId: {},
  order: [],
  shed: "",
  filter: "all",
  loading: false,
  lastReceived: 0,
  failed: null,
};

export function loansReducer(state: LoansState, action: Action): LoansState {
  switch (action.type) {
    case "loans/requested":
      return { ...state, shed: action.shed, loading: true, failed: null };
    case "loans/received": {
      if (action.requestId < state.lastReceived) return state;
      const byId: Record<string, Loan> = {};
      for (const loan of action.loans) byId[loan.id] = loan;
      return {
        ...state,
        byId,
        order: action.loans.map((loan) => loan.id),
        loading: false,
        lastReceived: action.requestId,
      };
    }
    case "loans/failed":
      return { ...state, loading: false, failed: action.code };
    case "loans/filterSet":
      return { ...state, filter: action.filter };
    case "loans/returned": {
      const loan = state.byId[action.id];
      if (!loan) return state;
      loan.status = "returned";
      return { ...state };
    }
    default:
      return state;
  }
}
