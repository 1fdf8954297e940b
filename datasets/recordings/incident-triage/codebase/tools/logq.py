"""Query logs: ``python -m tools.logq FILE... [--where KEY=VALUE]... [--count KEY[,KEY]] [--show KEY,KEY] [--head N]``."""

import argparse
import json
from collections import Counter
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--where", action="append", default=[])
    parser.add_argument("--count")
    parser.add_argument("--show")
    parser.add_argument("--head", type=int, default=40)
    options = parser.parse_args()
    wanted = [w.split("=", 1) for w in options.where]
    found = []
    for path in options.files:
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if all(str(entry.get(key)) == value for key, value in wanted):
                found.append(entry)
    if options.count:
        keys = options.count.split(",")
        counter = Counter(tuple(str(e.get(k, "-")) for k in keys) for e in found)
        for values, number in sorted(counter.items(), key=lambda c: (-c[1], c[0])):
            print(f"{number:6d}  {'  '.join(values)}")
    else:
        found.sort(key=lambda e: e["at"])
        for entry in found[: options.head]:
            keys = options.show.split(",") if options.show else list(entry)
            print("  ".join(f"{entry.get(k, '-')}" for k in keys))
    print(f"{len(found)} entries")


if __name__ == "__main__":
    main()
