import { route } from "./router.js";

route("loans", "/loans");
route("loan", "/loans/:id");
route("account", "/account");
route("catalogue", "/tools");
route("tool", "/tools/:id");
