import { register } from "../app/registry.js";
import { kioskHomeScreen } from "./KioskHome.js";
import { kioskReturnScreen } from "./KioskReturn.js";

register("kiosk", kioskHomeScreen);
register("kiosk-return", kioskReturnScreen);
