import { Client, RequestFailed } from "../api/client.js";
import { toFee, toHold, toLoan, toTool } from "../api/map.js";
import { Store } from "./store.js";

let requests = 0;

function code(error: unknown): string {
  return error instanceof RequestFailed ? error.error.code : "NET-0";
}

export async function loadLoans(store: Store, api: Client, shed: string): Promise<void> {
  const requestId = ++requests;
  const { memberId } = store.get().session;
  store.dispatch({ type: "loans/requested", shed, requestId });
  try {
    const loans = (await api.loans(memberId, shed)).map(toLoan);
    store.dispatch({ type: "loans/received", loans, requestId });
  } catch (error) {
    store.dispatch({ type: "loans/failed", code: code(error), requestId });
  }
}

export async function changeShed(store: Store, api: Client, shed: string): Promise<void> {
  store.dispatch({ type: "session/shedChanged", shed });
  await Promise.all([loadLoans(store, api, shed), loadTools(store, api, shed)]);
}

export async function loadTools(store: Store, api: Client, shed: string): Promise<void> {
  const tools = (await api.tools(shed)).map(toTool);
  store.dispatch({ type: "catalogue/received", tools });
}

export async function loadHolds(store: Store, api: Client, toolId: string): Promise<void> {
  const holds = (await api.holds(toolId)).map(toHold);
  store.dispatch({ type: "catalogue/holdsReceived", toolId, holds });
}

export async function loadFees(store: Store, api: Client): Promise<void> {
  const fees = (await api.fees(store.get().session.memberId)).map(toFee);
  store.dispatch({ type: "fees/received", fees });
}

/** Give a tool back. The list changes at once and is not taken back if the server refuses. */
export async function giveBack(store: Store, api: Client, id: string): Promise<void> {
  store.dispatch({ type: "loans/returned", id });
  try {
    await api.giveBack(id);
    store.dispatch({ type: "notices/shown", kind: "info", key: "return.done" });
  } catch (error) {
    store.dispatch({ type: "notices/shown", kind: "error", key: "return.failed", params: { code: code(error) } });
  }
}
