// House rules that tsc does not know. See docs/architecture.md.
import { files, text } from "./lib.mjs";

const RULES = [
  ["L1", /\bIntl\b|\.toLocale\w+\(/, "no Intl (ADR 0003)"],
  ["L2", /new Date\(\)|Date\.now|\.getDate\(|\.getDay\(|\.getHours\(/, "no local time, today comes from the context"],
  ["L3", /vendor\//, "nothing from vendor/"],
  ["L4", /\bas any\b|: any\b/, "no any"],
  ["L5", /Button\(\{ label: "/, "texts come from messages"],
];
let errors = 0;
for (const path of files("src", ".ts")) {
  text(path).split("\n").forEach((line, index) => {
    for (const [rule, pattern, what] of RULES) {
      if (!pattern.test(line) || /^\s*(\/\/|\/?\*)/.test(line) || line.includes("No Intl")) continue;
      errors += 1;
      console.log(`${path}:${index + 1}  ${rule}  ${what}`);
    }
  });
}
console.log(`lint: ${errors} errors`);
process.exit(errors ? 1 : 0);
