import { Locale, PluralForm, pluralForm } from "../format/plural.js";

export type Message = string | Partial<Record<PluralForm, string>>;
export type Messages = Record<string, Message>;
export type Params = Record<string, string | number>;
export type Translate = (key: string, params?: Params) => string;

/** A function from keys to texts. A key that the locale lacks is taken from `fallback`. */
export function translator(locale: Locale, messages: Messages, fallback: Messages): Translate {
  return (key, params = {}) => {
    const message = messages[key] !== undefined ? messages[key] : fallback[key];
    if (message === undefined) return `[${key}]`;
    const text = typeof message === "string" ? message : choose(locale, message, Number(params.count));
    return text.replace(/\{(\w+)\}/g, (_, name) => (params[name] === undefined ? `{${name}}` : String(params[name])));
  };
}

function choose(locale: Locale, message: Partial<Record<PluralForm, string>>, count: number): string {
  const form = pluralForm(locale, count);
  const text = message[form];
  return text !== undefined ? text : message.other || "";
}
