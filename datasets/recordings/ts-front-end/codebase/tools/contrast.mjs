// Contrast of the pairs in tokens/pairs.json, by the formula of WCAG 2.
import { json } from "./lib.mjs";

const MINIMUM = { web: 4.5, kiosk: 4.5 };
const { color } = json("tokens/tokens.json");

function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map((index) => {
    const part = parseInt(hex.slice(index, index + 2), 16) / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

let low = 0;
for (const { ink, on, where } of json("tokens/pairs.json")) {
  const [a, b] = [luminance(color[ink]), luminance(color[on])].sort((x, y) => y - x);
  const ratio = Math.floor(((a + 0.05) / (b + 0.05)) * 100) / 100;
  const state = ratio < MINIMUM[where] ? "LOW" : "ok";
  if (state === "LOW") low += 1;
  console.log(`${where.padEnd(6)} ${ink.padEnd(10)} on ${on.padEnd(12)} ${ratio.toFixed(2).padStart(5)}  ${state}`);
}
console.log(`contrast: ${low} below the minimum`);
process.exit(low ? 1 : 0);
