import "../src/app/routes.js";
import { toLoan } from "../src/api/map.js";
import { href, match } from "../src/app/router.js";
import { isOn } from "../src/flags/flags.js";
import { translator } from "../src/i18n/translate.js";
import { equal, test } from "./kit.js";

test("routes", () => {
  equal(match("/loans/ln-1001?x=1"), { name: "loan", params: { id: "ln-1001" } });
  equal(match("/nothing"), null);
  equal(href("tool", { id: "t-001" }), "/tools/t-001");
});

test("flags", () => {
  const flags = { a: { on: true }, b: { on: true, sheds: ["shd-14"] }, c: { on: false } };
  equal(["a", "b", "c", "d"].map((name) => isOn(flags, name, "shd-14")), [true, true, false, false]);
  equal(isOn(flags, "b", "shd-41"), false);
});

test("a loan as the server sends it", () => {
  const record = { id: "ln-1", tool_id: "t-1", member_id: "m-1", shed: "shd-14", out_on: "2026-02-20", due_on: "2026-03-06", status: "out" as const, renewals_left: 2 };
  equal(toLoan(record).dueOn, "2026-03-06");
});

test("messages", () => {
  const t = translator("pl", { a: { one: "{count} x", few: "{count} y", many: "{count} z" } }, { b: "B {name}" });
  equal([t("a", { count: 1 }), t("a", { count: 3 }), t("a", { count: 8 })], ["1 x", "3 y", "8 z"]);
  equal([t("b", { name: "n" }), t("c")], ["B n", "[c]"]);
});
