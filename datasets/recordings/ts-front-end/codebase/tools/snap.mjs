// node tools/snap.mjs NAME...   write tests/snap/NAME.html anew (QA reads these; name each)
import { writeFileSync } from "node:fs";
import { at, build, load } from "./lib.mjs";

build();
const { snapshots } = await load("tests/snapshots.js");
for (const name of process.argv.slice(2)) {
  if (!snapshots[name]) {
    console.log(`no snapshot ${name}; there are ${Object.keys(snapshots).join(", ")}`);
    process.exit(2);
  }
  writeFileSync(at(`tests/snap/${name}.html`), (await snapshots[name]()) + "\n");
  console.log(`wrote tests/snap/${name}.html`);
}
