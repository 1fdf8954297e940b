// node tools/test.mjs [PART OF A FILE NAME] [-v]
import { build, files, load } from "./lib.mjs";

build();
const only = process.argv.slice(2).find((argument) => argument !== "-v") || "";
const verbose = process.argv.includes("-v");
const { cases } = await load("tests/kit.js");
let passed = 0;
const failed = [];
for (const path of files("out/tests", ".test.js").filter((each) => each.includes(only))) {
  const before = cases.length;
  await load(path.replace("out/", ""));
  const label = path.replace("out/tests/", "").replace(".test.js", "");
  for (const { name, run } of cases.slice(before)) {
    try {
      await run();
      passed += 1;
      if (verbose) console.log(`ok    ${label} > ${name}`);
    } catch (error) {
      failed.push(`${label} > ${name}`);
      console.log(`FAIL  ${label} > ${name}\n      ${String(error.message).replace(/\n/g, "\n      ")}`);
    }
  }
}
console.log(`${passed} passed, ${failed.length} failed`);
process.exit(failed.length ? 1 : 0);
