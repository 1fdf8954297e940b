export type Locale = "en" | "de" | "pl";
export type PluralForm = "one" | "few" | "many" | "other";

/** Forms a message with a count must have, per locale. */
export const FORMS: Record<Locale, PluralForm[]> = {
  en: ["one", "other"],
  de: ["one", "other"],
  pl: ["one", "few", "many"],
};

/** The plural form for a whole number. No Intl.PluralRules: the kiosks have none (ADR 0003). */
export function pluralForm(locale: Locale, count: number): PluralForm {
  const n = Math.abs(count);
  if (locale !== "pl") return n === 1 ? "one" : "other";
  if (n === 1) return "one";
  const last = n % 10;
  if (last >= 2 && last <= 4) return "few";
  return "many";
}
