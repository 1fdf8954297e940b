import { matches, test } from "./kit.js";
import { snapshots } from "./snapshots.js";

for (const name of Object.keys(snapshots)) {
  test(`page ${name}`, async () => matches(name, await snapshots[name]()));
}
