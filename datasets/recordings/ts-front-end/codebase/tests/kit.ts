import { existsSync, readFileSync } from "node:fs";

export const cases: Array<{ name: string; run: () => void | Promise<void> }> = [];

export function test(name: string, run: () => void | Promise<void>): void {
  cases.push({ name, run });
}

export function equal(actual: unknown, expected: unknown, what = ""): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what ? what + ": " : ""}got ${a}, expected ${b}`);
}

/** Compare with a file of tests/snap/; names the first line that differs. */
export function matches(name: string, actual: string): void {
  const path = `tests/snap/${name}.html`;
  if (!existsSync(path)) throw new Error(`${path} does not exist (node tools/snap.mjs ${name})`);
  const expected = readFileSync(path, "utf-8").replace(/\n$/, "").split("\n");
  const lines = actual.split("\n");
  for (let index = 0; index < Math.max(lines.length, expected.length); index += 1) {
    if (lines[index] !== expected[index]) {
      throw new Error(`${path}:${index + 1}\n  is       ${(lines[index] || "").trim()}\n  expected ${(expected[index] || "").trim()}`);
    }
  }
}

export function json<T>(path: string): T {
  return JSON.parse(readFileSync(path, "utf-8")) as T;
}
