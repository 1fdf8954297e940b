// Renders the screens of tools/screens.json in every locale and audits them.
import { LOCALES, build, demo, json, load, setup } from "./lib.mjs";

build();
const { audit } = await load("src/view/audit.js");
const { view } = await load("src/app/main.js");
const { kioskView } = await load("src/app/kiosk.js");
const counts = {};
let screens = 0;
for (const { path, member, shed } of json("tools/screens.json")) {
  for (const locale of LOCALES) {
    const { store } = await demo(member, shed, locale);
    const root = (path.startsWith("/kiosk") ? kioskView : view)(path, store.get(), setup("dev"));
    screens += 1;
    for (const { rule, where, text } of audit(root)) {
      const line = `${rule}  ${path}  ${where}: ${text}`;
      counts[line] = (counts[line] || 0) + 1;
    }
  }
}
for (const line of Object.keys(counts).sort()) console.log(`${line}  (x${counts[line]})`);
const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
console.log(`a11y: ${screens} views, ${total} findings`);
process.exit(total ? 1 : 0);
