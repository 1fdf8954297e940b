"""Show a metric: ``python -m tools.series FILE --columns A,B [--from HH:MM] [--to HH:MM] [--every N] [--day YYYY-MM-DD]``."""

import argparse
from pathlib import Path

from tankline.data import rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--columns", required=True)
    parser.add_argument("--from", dest="start", default="00:00")
    parser.add_argument("--to", dest="end", default="23:59")
    parser.add_argument("--day")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    columns = options.columns.split(",")
    print("  ".join(["at".ljust(16), *(c.rjust(15) for c in columns)]))
    table = [
        r for r in rows(options.file)
        if options.start <= r["at"][11:16] <= options.end and (not options.day or r["at"].startswith(options.day))
    ]
    for row in table[:: options.every]:
        print("  ".join([row["at"], *(row[c].rjust(15) for c in columns)]))


if __name__ == "__main__":
    main()
