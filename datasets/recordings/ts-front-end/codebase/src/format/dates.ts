import { Locale } from "./plural.js";

/** A day as the API writes it: `2026-03-14`. Never a Date object in state, never local time. */
export type Day = string;

const MONTHS: Record<Locale, string[]> = {
  en: ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
  de: ["Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez."],
  pl: ["sty", "lut", "mar", "kwi", "maj", "cze", "lip", "sie", "wrz", "paź", "lis", "gru"],
};

const MS_PER_DAY = 86_400_000;

/** Days since 1970-01-01. */
export function dayNumber(day: Day): number {
  const [year, month, date] = day.split("-").map(Number);
  return Math.floor(Date.UTC(year, month - 1, date) / MS_PER_DAY);
}

/** The day `days` later (earlier if negative). */
export function addDays(day: Day, days: number): Day {
  return new Date((dayNumber(day) + days) * MS_PER_DAY).toISOString().slice(0, 10);
}

/** Whole days from `from` to `to`; negative if `to` is earlier. */
export function daysBetween(from: Day, to: Day): number {
  return dayNumber(to) - dayNumber(from);
}

/** `14 Mar 2026`, `14. März 2026`, `14 mar 2026`. */
export function formatDay(day: Day, locale: Locale): string {
  const [year, month, date] = day.split("-").map(Number);
  const name = MONTHS[locale][month - 1];
  return locale === "de" ? `${date}. ${name} ${year}` : `${date} ${name} ${year}`;
}

/** `14 Mar`, for narrow places. */
export function formatDayShort(day: Day, locale: Locale): string {
  return formatDay(day, locale).replace(/ \d{4}$/, "");
}
