import { addDays, daysBetween, formatDay, formatDayShort } from "../src/format/dates.js";
import { dueTone } from "../src/format/due.js";
import { formatCount, formatMoney } from "../src/format/numbers.js";
import { pluralForm } from "../src/format/plural.js";
import { equal, test } from "./kit.js";

test("days are counted over the change to summer time", () => {
  equal(daysBetween("2026-03-28", "2026-03-30"), 2);
  equal(addDays("2026-03-28", 2), "2026-03-30");
  equal(addDays("2026-02-27", 3), "2026-03-02");
});

test("long and short days", () => {
  equal(formatDay("2026-03-14", "en"), "14 Mar 2026");
  equal(formatDay("2026-03-14", "de"), "14. März 2026");
  equal(formatDay("2026-10-05", "pl"), "5 paź 2026");
  equal(formatDayShort("2026-03-14", "de"), "14. März");
});

test("money", () => {
  equal(formatMoney(125050, "EUR", "en"), "€1,250.50");
  equal(formatMoney(125050, "EUR", "de"), "1.250,50 €");
  equal(formatMoney(250, "PLN", "pl"), "2,50 zł");
  equal(formatMoney(-5, "EUR", "de"), "-0,05 €");
});

test("numbers", () => {
  equal(formatCount(1234567, "de"), "1.234.567");
  equal(formatCount(999, "en"), "999");
});

test("plural forms", () => {
  equal([0, 1, 2].map((n) => pluralForm("en", n)), ["other", "one", "other"]);
  equal([1, 2, 4, 5, 22, 25].map((n) => pluralForm("pl", n)), ["one", "few", "few", "many", "few", "many"]);
});

test("tone of a due day", () => {
  equal(dueTone("2026-03-01", "2026-03-02", 3), "late");
  equal(dueTone("2026-03-05", "2026-03-02", 3), "soon");
  equal(dueTone("2026-03-06", "2026-03-02", 3), "calm");
});
