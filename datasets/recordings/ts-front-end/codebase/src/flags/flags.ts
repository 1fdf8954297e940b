/** A flag of config/flags.ENV.json. `sheds` limits it; without the field it holds everywhere. */
export interface Flag {
  on: boolean;
  sheds?: string[];
  note?: string;
}
export type Flags = Record<string, Flag>;

/** Whether a flag is on in a shed. Flags that are not in the file are off. */
export function isOn(flags: Flags, name: string, shed: string): boolean {
  const flag = flags[name];
  if (!flag || !flag.on) return false;
  if (flag.sheds && flag.sheds.length) return flag.sheds.includes(shed);
  return true;
}
