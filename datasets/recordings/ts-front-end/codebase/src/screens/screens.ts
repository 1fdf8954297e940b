import { register } from "../app/registry.js";
import { accountScreen } from "./Account.js";
import { catalogueScreen } from "./Catalogue.js";
import { loanDetailScreen } from "./LoanDetail.js";
import { myLoansScreen } from "./MyLoans.js";
import { toolDetailScreen } from "./ToolDetail.js";

register("loans", myLoansScreen);
register("loan", loanDetailScreen);
register("account", accountScreen);
register("catalogue", catalogueScreen);
register("tool", toolDetailScreen);
