import { Flags, isOn } from "../flags/flags.js";
import { Day, formatDay, formatDayShort } from "../format/dates.js";
import { Currency, formatMoney } from "../format/numbers.js";
import { Locale } from "../format/plural.js";
import { Messages, Params, translator } from "../i18n/translate.js";
import { State } from "../state/model.js";

/** config/app.json */
export interface Config {
  apiVersion: string;
  loanDays: number;
  dueSoonDays: number;
  graceDays: number;
  gracePeriodDays: number;
  badgeMaxChars: number;
  kiosk: { idleSeconds: number; locale: Locale };
}

/** What a screen gets besides the state. */
export interface Ctx {
  locale: Locale;
  today: Day;
  config: Config;
  t(key: string, params?: Params): string;
  day(day: Day): string;
  dayShort(day: Day): string;
  money(cents: number, currency: Currency): string;
  flag(name: string): boolean;
}

export interface Setup {
  config: Config;
  flags: Flags;
  messages: Record<Locale, Messages>;
  today: Day;
}

export function context(setup: Setup, state: State): Ctx {
  const locale = state.session.locale;
  return {
    locale,
    today: setup.today,
    config: setup.config,
    t: translator(locale, setup.messages[locale], setup.messages.en),
    day: (day) => formatDay(day, locale),
    dayShort: (day) => formatDayShort(day, locale),
    money: (cents, currency) => formatMoney(cents, currency, locale),
    flag: (name) => isOn(setup.flags, name, state.session.shed),
  };
}
