/* chrono-mini 1.4.2 (MIT). Copied in during SHK-301, never imported. See docs/adr/0005. */
const UNITS = { day: 86400000, week: 604800000, hour: 3600000, minute: 60000 };
class Chrono {
  constructor(value) { this.date = value instanceof Date ? value : new Date(value); }
  add(amount, unit) {
    if (unit === "month") { const next = new Date(this.date); next.setMonth(next.getMonth() + amount); return new Chrono(next); }
    return new Chrono(new Date(this.date.getTime() + amount * UNITS[unit]));
  }
  startOf(unit) {
    const next = new Date(this.date);
    if (unit === "day") next.setHours(0, 0, 0, 0);
    if (unit === "month") { next.setDate(1); next.setHours(0, 0, 0, 0); }
    return new Chrono(next);
  }
  diff(other, unit) { return Math.floor((this.date - other.date) / UNITS[unit]); }
  format(pattern, locale) {
    const parts = {};
    for (const part of new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short", year: "numeric" }).formatToParts(this.date)) parts[part.type] = part.value;
    return pattern.replace(/ddd|MMM|YYYY|D/g, (token) => ({ ddd: parts.weekday, MMM: parts.month, YYYY: parts.year, D: parts.day })[token]);
  }
  relative(locale) {
    const days = Math.round((this.date - Date.now()) / UNITS.day);
    return new Intl.RelativeTimeFormat(locale, { numeric: "auto" }).format(days, "day");
  }
}
export function chrono(value) { return new Chrono(value); }
export { Chrono, UNITS };
