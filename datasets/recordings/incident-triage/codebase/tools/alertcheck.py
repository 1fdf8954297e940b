"""Which alerts would have fired: ``python -m tools.alertcheck metrics/FOLDER [--rules FILE] [--only ID]``.

A rule fires when its condition held at every sample for `for_min` minutes, and once until it ends.
"""

import argparse
import json
from datetime import timedelta
from pathlib import Path

from tankline.data import ROOT, rows, when


def firings(rule: dict, folder: Path) -> list[tuple[str, str]]:
    """Return begin and end of each time the rule fired."""
    path = folder / f"{rule['series']}.csv"
    if not path.exists():
        return []
    found = []
    since = fired = None
    last = ""
    for row in rows(path):
        at = when(row["at"])
        value = float(row.get(rule["column"]) or 0)
        holds = value > rule["threshold"] if rule["op"] == ">" else value < rule["threshold"]
        if holds:
            since = since or at
            if fired is None and at - since >= timedelta(minutes=rule["for_min"]):
                fired = row["at"]
        else:
            if fired:
                found.append((fired, last))
            since = fired = None
        last = row["at"]
    if fired:
        found.append((fired, "open"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rules", type=Path, default=ROOT / "alerts/rules.json")
    parser.add_argument("--only")
    options = parser.parse_args()
    for rule in json.loads(options.rules.read_text()):
        if options.only in (None, rule["id"]):
            times = firings(rule, options.folder)
            print(f"{rule['id']} {rule['name']} ({rule['column']} {rule['op']} {rule['threshold']} for {rule['for_min']} min): {len(times)}")
            for begin, end in times:
                print(f"    {begin} to {end}")


if __name__ == "__main__":
    main()
