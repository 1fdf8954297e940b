import { route } from "./router.js";

route("kiosk", "/kiosk");
route("kiosk-return", "/kiosk/return/:id");
