// The few things of the platform that the code uses. No @types package on purpose (ADR 0003).
declare const console: { log(...parts: unknown[]): void; warn(...parts: unknown[]): void };
declare module "node:fs" {
  export function readFileSync(path: string, encoding: "utf-8"): string;
  export function existsSync(path: string): boolean;
  export function writeFileSync(path: string, text: string): void;
}
