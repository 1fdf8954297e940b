import { Action } from "./actions.js";
import { Notice, SessionState } from "./model.js";

export const NO_SESSION: SessionState = { memberId: "", shed: "", locale: "en" };

export function sessionReducer(state: SessionState, action: Action): SessionState {
  switch (action.type) {
    case "session/started":
      return action.session;
    case "session/shedChanged":
      return { ...state, shed: action.shed };
    case "session/localeChanged":
      return { ...state, locale: action.locale };
    default:
      return state;
  }
}

export function noticesReducer(state: Notice[], action: Action): Notice[] {
  switch (action.type) {
    case "notices/shown": {
      const id = state.length ? state[state.length - 1].id + 1 : 1;
      return [...state, { id, kind: action.kind, key: action.key, params: action.params || {} }];
    }
    case "notices/closed":
      return state.filter((notice) => notice.id !== action.id);
    default:
      return state;
  }
}
