import { client, Client } from "../src/api/client.js";
import { fakeServer, Tables } from "../src/api/fake.js";
import { Config, Setup } from "../src/app/context.js";
import { Flags } from "../src/flags/flags.js";
import { Locale } from "../src/format/plural.js";
import { Messages } from "../src/i18n/translate.js";
import { changeShed, loadFees, loadHolds } from "../src/state/effects.js";
import { createStore, Store } from "../src/state/store.js";
import { json } from "./kit.js";

export const TODAY = "2026-03-02";

export function tables(version = "v6"): Tables {
  return {
    loans: json(`api-data/${version}/loans.json`),
    tools: json(`api-data/${version}/tools.json`),
    holds: json(`api-data/${version}/holds.json`),
    fees: json(`api-data/${version}/fees.json`),
  };
}

export function setup(env = "dev"): Setup {
  const messages = {} as Record<Locale, Messages>;
  for (const locale of ["en", "de", "pl"] as Locale[]) messages[locale] = json(`src/i18n/messages/${locale}.json`);
  return { config: json<Config>("config/app.json"), flags: json<Flags>(`config/flags.${env}.json`), messages, today: TODAY };
}

export async function world(memberId = "m-017", shed = "shd-14", locale: Locale = "en"): Promise<{ store: Store; api: Client }> {
  const { apiVersion } = json<Config>("config/app.json");
  const api = client(fakeServer(tables(apiVersion)), apiVersion);
  const store = createStore();
  store.dispatch({ type: "session/started", session: { memberId, shed, locale } });
  await changeShed(store, api, shed);
  for (const loan of Object.values(store.get().loans.byId)) await loadHolds(store, api, loan.toolId);
  await loadFees(store, api);
  return { store, api };
}
