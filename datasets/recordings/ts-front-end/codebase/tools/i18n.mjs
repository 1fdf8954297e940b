// Messages against English: missing and surplus keys, placeholders. Plural forms of docs/i18n.md.
import { LOCALES, json } from "./lib.mjs";

const FORMS = { en: ["one", "other"], de: ["one", "other"], pl: ["one", "few", "many"] };
const english = json("src/i18n/messages/en.json");
const holes = (message) => [...new Set(JSON.stringify(message).match(/\{\w+\}/g) || [])].sort().join(" ");
let errors = 0;
for (const locale of LOCALES) {
  const messages = json(`src/i18n/messages/${locale}.json`);
  const say = (key, what) => {
    errors += 1;
    console.log(`${locale}  ${key}: ${what}`);
  };
  for (const key of Object.keys(english)) {
    const message = messages[key];
    if (message === undefined) {
      say(key, "missing");
      continue;
    }
    if (typeof message !== typeof english[key]) say(key, "plural in one of the two only");
    if (typeof message === "string" && holes(message) !== holes(english[key])) say(key, `has ${holes(message)}, English ${holes(english[key])}`);
  }
  for (const key of Object.keys(messages)) if (!(key in english)) say(key, "not in English");
}
console.log(`i18n: ${Object.keys(english).length} keys, ${errors} errors`);
process.exit(errors ? 1 : 0);
