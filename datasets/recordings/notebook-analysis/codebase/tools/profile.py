"""What a CSV file holds, column by column: ``python -m tools.profile FILE …``."""

import csv
import sys
from collections import Counter


def profile(path: str) -> None:
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    same = len(rows) - len({tuple(row.values()) for row in rows})
    print(f"{path}: {len(rows)} rows, {same} equal to an earlier one")
    for name in rows[0]:
        values = Counter(row[name] for row in rows)
        empty = values.pop("", 0)
        most = ", ".join(f"{value} ({n})" for value, n in values.most_common(6))
        try:
            numbers = sorted(float(value) for value in values)
            span = f"{numbers[0]:g} to {numbers[-1]:g}"
        except ValueError:
            span = f"{min(values)} to {max(values)}"
        print(f"  {name}: {len(values)} values, {empty} empty, {span}; {most if len(values) <= 60 else ''}".rstrip("; "))


if __name__ == "__main__":
    for each in sys.argv[1:]:
        profile(each)
