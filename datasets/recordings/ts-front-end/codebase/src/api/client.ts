import { ApiError, ApiFee, ApiHold, ApiLoan, ApiTool } from "./types.js";

/** What carries a request: `fetch` in browsers, the fake server in tests and tools. */
export type Transport = (method: string, path: string, body?: unknown) => Promise<{ status: number; body: unknown }>;

export class RequestFailed extends Error {
  constructor(readonly error: ApiError) {
    super(`${error.status} ${error.code}`);
  }
}

export interface Client {
  loans(member: string, shed: string): Promise<ApiLoan[]>;
  tools(shed: string): Promise<ApiTool[]>;
  holds(tool: string): Promise<ApiHold[]>;
  fees(member: string): Promise<ApiFee[]>;
  giveBack(loan: string): Promise<ApiLoan>;
}

export function client(transport: Transport, version: string): Client {
  async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await transport(method, `/${version}${path}`, body);
    if (answer.status >= 400) throw new RequestFailed({ status: answer.status, code: (answer.body as ApiError).code });
    return answer.body as T;
  }
  return {
    loans: (member, shed) => ask("GET", `/members/${member}/loans?shed=${shed}`),
    tools: (shed) => ask("GET", `/sheds/${shed}/tools`),
    holds: (tool) => ask("GET", `/tools/${tool}/holds`),
    fees: (member) => ask("GET", `/members/${member}/fees`),
    giveBack: (loan) => ask("POST", `/loans/${loan}/return`),
  };
}
