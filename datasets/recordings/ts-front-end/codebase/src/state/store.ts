import { Action } from "./actions.js";
import { catalogueReducer, feesReducer, NO_CATALOGUE } from "./catalogue.js";
import { loansReducer, NO_LOANS } from "./loans.js";
import { State } from "./model.js";
import { NO_SESSION, noticesReducer, sessionReducer } from "./session.js";

export const EMPTY: State = { session: NO_SESSION, loans: NO_LOANS, catalogue: NO_CATALOGUE, fees: [], notices: [] };

export function reduce(state: State, action: Action): State {
  return {
    session: sessionReducer(state.session, action),
    loans: loansReducer(state.loans, action),
    catalogue: catalogueReducer(state.catalogue, action),
    fees: feesReducer(state.fees, action),
    notices: noticesReducer(state.notices, action),
  };
}

export interface Store {
  get(): State;
  dispatch(action: Action): void;
  subscribe(listener: (state: State) => void): () => void;
}

export function createStore(initial: State = EMPTY): Store {
  let state = initial;
  let listeners: Array<(state: State) => void> = [];
  return {
    get: () => state,
    dispatch(action) {
      state = reduce(state, action);
      for (const listener of listeners) listener(state);
    },
    subscribe(listener) {
      listeners.push(listener);
      return () => {
        listeners = listeners.filter((each) => each !== listener);
      };
    },
  };
}
