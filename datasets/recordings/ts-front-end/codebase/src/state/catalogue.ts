import { Action } from "./actions.js";
import { CatalogueState, Fee, Tool } from "./model.js";

export const NO_CATALOGUE: CatalogueState = { tools: {}, holds: {}, query: "" };

export function catalogueReducer(state: CatalogueState, action: Action): CatalogueState {
  switch (action.type) {
    case "catalogue/received": {
      const tools: Record<string, Tool> = { ...state.tools };
      for (const tool of action.tools) tools[tool.id] = tool;
      return { ...state, tools };
    }
    case "catalogue/holdsReceived":
      return { ...state, holds: { ...state.holds, [action.toolId]: action.holds } };
    case "catalogue/querySet":
      return { ...state, query: action.query };
    default:
      return state;
  }
}

export function feesReducer(state: Fee[], action: Action): Fee[] {
  return action.type === "fees/received" ? action.fees : state;
}
