import { Locale } from "./plural.js";

export type Currency = "EUR" | "PLN";

const SIGN: Record<Currency, string> = { EUR: "€", PLN: "zł" };
const GROUP: Record<Locale, string> = { en: ",", de: ".", pl: " " };

/** A whole number with the thousands separator of the locale. */
export function formatCount(value: number, locale: Locale): string {
  const digits = String(Math.abs(value)).replace(/\B(?=(\d{3})+(?!\d))/g, GROUP[locale]);
  return value < 0 ? `-${digits}` : digits;
}

/** Money from cents (grosze): `€1,250.50`, `1.250,50 €`, `1 250,50 zł`. */
export function formatMoney(cents: number, currency: Currency, locale: Locale): string {
  const whole = formatCount(Math.trunc(Math.abs(cents) / 100), locale);
  const rest = String(Math.abs(cents) % 100).padStart(2, "0");
  const sign = cents < 0 ? "-" : "";
  if (locale === "en") return currency === "EUR" ? `${sign}€${whole}.${rest}` : `${sign}${whole}.${rest} zł`;
  return `${sign}${whole},${rest} ${SIGN[currency]}`;
}
