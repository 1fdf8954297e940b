import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
export const TODAY = "2026-03-02";
export const LOCALES = ["en", "de", "pl"];

export const at = (...parts) => join(ROOT, ...parts);
export const text = (path) => readFileSync(at(path), "utf-8");
export const json = (path) => JSON.parse(text(path));

export function files(folder, ending) {
  return readdirSync(at(folder), { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? files(`${folder}/${entry.name}`, ending) : [`${folder}/${entry.name}`]))
    .filter((path) => path.endsWith(ending))
    .sort();
}

/** Compile into out/ if a source changed since the last time. */
export function build() {
  const hash = createHash("sha1");
  for (const path of [...["src", "tests", "types"].flatMap((folder) => files(folder, ".ts")), "tsconfig.json"]) {
    hash.update(path).update(text(path));
  }
  const digest = hash.digest("hex");
  if (existsSync(at("out/.stamp")) && text("out/.stamp") === digest) return;
  rmSync(at("out"), { recursive: true, force: true });
  const done = spawnSync("tsc", ["-p", ROOT], { encoding: "utf-8", cwd: ROOT });
  if (done.status !== 0) {
    process.stdout.write(done.stdout);
    console.log("tsc: not built");
    process.exit(2);
  }
  mkdirSync(at("out"), { recursive: true });
  writeFileSync(at("out/.stamp"), digest);
}

export const load = (path) => import(pathToFileURL(at("out", path)).href);

export function setup(env = "dev") {
  const messages = Object.fromEntries(LOCALES.map((locale) => [locale, json(`src/i18n/messages/${locale}.json`)]));
  return { config: json("config/app.json"), flags: json(`config/flags.${env}.json`), messages, today: TODAY };
}

export function tables(version) {
  return Object.fromEntries(["loans", "tools", "holds", "fees"].map((name) => [name, json(`api-data/${version}/${name}.json`)]));
}

/** A store that has loaded everything of a member from the fake server. */
export async function demo(memberId, shed, locale) {
  const { createStore } = await load("src/state/store.js");
  const { client } = await load("src/api/client.js");
  const { fakeServer } = await load("src/api/fake.js");
  const effects = await load("src/state/effects.js");
  const version = json("config/app.json").apiVersion;
  const api = client(fakeServer(tables(version)), version);
  const store = createStore();
  store.dispatch({ type: "session/started", session: { memberId, shed, locale } });
  await effects.changeShed(store, api, shed);
  for (const loan of Object.values(store.get().loans.byId)) await effects.loadHolds(store, api, loan.toolId);
  await effects.loadFees(store, api);
  return { store, api };
}
