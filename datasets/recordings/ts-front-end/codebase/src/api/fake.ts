import { Transport } from "./client.js";
import { ApiFee, ApiHold, ApiLoan, ApiTool } from "./types.js";

export interface Tables {
  loans: ApiLoan[];
  tools: ApiTool[];
  holds: ApiHold[];
  fees: ApiFee[];
}

/** A server over the JSON files of api-data/. Works on copies; the files are never written. */
export function fakeServer(tables: Tables): Transport {
  const loans = tables.loans.map((loan) => ({ ...loan }));
  return async (method, path) => {
    const [route, query = ""] = path.split("?");
    const [, , collection, id, what] = route.split("/");
    const shed = query.replace("shed=", "");
    const key = `${method} ${collection}/${what}`;
    switch (key) {
      case "GET members/loans":
        return { status: 200, body: loans.filter((loan) => loan.member_id === id && loan.shed === shed) };
      case "GET sheds/tools":
        return { status: 200, body: tables.tools.filter((tool) => tool.shed === id) };
      case "GET tools/holds":
        return { status: 200, body: tables.holds.filter((hold) => hold.tool_id === id) };
      case "GET members/fees":
        return { status: 200, body: tables.fees.filter((fee) => fee.member_id === id) };
      case "POST loans/return": {
        const loan = loans.find((each) => each.id === id);
        if (!loan) return { status: 404, body: { status: 404, code: "LN-404" } };
        if (loan.status !== "out") return { status: 409, body: { status: 409, code: "LN-409" } };
        loan.status = "returned";
        return { status: 200, body: loan };
      }
      default:
        return { status: 404, body: { status: 404, code: "RT-404" } };
    }
  };
}
