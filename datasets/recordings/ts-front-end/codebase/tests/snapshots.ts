import { kioskView } from "../src/app/kiosk.js";
import { view } from "../src/app/main.js";
import { Locale } from "../src/format/plural.js";
import { render } from "../src/view/render.js";
import { setup, world } from "./world.js";

async function web(path: string, locale: Locale, member = "m-017", shed = "shd-14"): Promise<string> {
  const { store } = await world(member, shed, locale);
  return render(view(path, store.get(), setup("pilot")));
}

async function kiosk(path: string, locale: Locale, member = "m-017", shed = "shd-14"): Promise<string> {
  const { store } = await world(member, shed, locale);
  return render(kioskView(path, store.get(), setup("pilot")));
}

/** The pages that QA reads, by the name of their file in tests/snap/. */
export const snapshots: Record<string, () => Promise<string>> = {
  "loans-en": () => web("/loans", "en"),
  "loans-de": () => web("/loans", "de"),
  "loan-pl": () => web("/loans/ln-1004", "pl"),
  "account-pl": () => web("/account", "pl"),
  "kiosk-de": () => kiosk("/kiosk", "de"),
  "kiosk-return-de": () => kiosk("/kiosk/return/ln-1004", "de"),
};
