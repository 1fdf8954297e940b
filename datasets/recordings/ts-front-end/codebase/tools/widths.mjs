// node tools/widths.mjs   longest badge text per locale over a year, against badgeMaxChars
import { LOCALES, build, json, load } from "./lib.mjs";

build();
const { addDays, formatDayShort } = await load("src/format/dates.js");
const { badgeMaxChars } = json("config/app.json");
let over = 0;
for (const locale of LOCALES) {
  const messages = json(`src/i18n/messages/${locale}.json`);
  for (const key of ["due.on", "due.since"]) {
    let longest = "";
    let wide = 0;
    for (let index = 0; index < 365; index += 1) {
      const text = messages[key].replace("{day}", formatDayShort(addDays("2026-01-01", index), locale));
      if (text.length > badgeMaxChars) wide += 1;
      if (text.length > longest.length) longest = text;
    }
    over += wide;
    console.log(`${locale}  ${key.padEnd(9)}  longest ${String(longest.length).padStart(2)} "${longest}"  ${wide} days over ${badgeMaxChars}`);
  }
}
process.exit(over ? 1 : 0);
