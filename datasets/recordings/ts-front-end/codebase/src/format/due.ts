import { Day } from "./dates.js";

export type DueTone = "calm" | "soon" | "late";

/** How urgent a due day is. `soonDays` is `dueSoonDays` of config/app.json. */
export function dueTone(due: Day, today: Day, soonDays: number): DueTone {
  const left = (Date.parse(due) - Date.parse(today)) / 86_400_000;
  if (left < 0) return "late";
  return left <= soonDays ? "soon" : "calm";
}
