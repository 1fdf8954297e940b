// Counts what an entry loads: its modules, without comments, blank lines and indentation.
import { dirname, join } from "node:path";
import { build, json, text } from "./lib.mjs";

build();
const budget = json("config/budget.json");
const ENTRIES = { web: "out/src/app/main.js", kiosk: "out/src/app/kiosk.js" };

function stripped(source) {
  return source
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith("//"))
    .join("\n");
}

function modules(entry, seen = new Set()) {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  for (const [, target] of text(entry).matchAll(/\bfrom "(\.[^"]+)"/g)) modules(join(dirname(entry), target), seen);
  return seen;
}

let over = 0;
for (const [name, entry] of Object.entries(ENTRIES)) {
  const found = [...modules(entry)].sort();
  const sizes = found.map((path) => [Buffer.byteLength(stripped(text(path))), path]);
  const total = sizes.reduce((sum, [size]) => sum + size, 0);
  const state = total > budget[name] ? "OVER" : "ok";
  if (state === "OVER") over += 1;
  console.log(`${name.padEnd(6)} ${String(total).padStart(6)} of ${budget[name]}  ${found.length} modules  ${state}`);
  if (process.argv.includes("--list")) for (const [size, path] of sizes.sort((a, b) => b[0] - a[0])) console.log(`  ${String(size).padStart(6)}  ${path.replace("out/src/", "")}`);
}
process.exit(over ? 1 : 0);
