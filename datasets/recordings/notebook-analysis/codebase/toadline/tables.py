"""Reading and writing CSV files, and printing small tables."""

import csv

from toadline.corrections import apply
from toadline.paths import DATA


def read(season: int, name: str, key: str | None = None) -> list[dict[str, str]]:
    """Return the rows of ``data/SEASON/NAME`` as text; with ``key``, after corrections."""
    with (DATA / str(season) / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return apply(rows, season, name, key) if key else rows


def write(path, head, rows) -> None:
    """Write rows (sequences) below a head."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def show(head, rows) -> None:
    """Print rows in columns, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(
            cell.rjust(width) if cell[:1].isdigit() or cell[:1] == "-" else cell.ljust(width)
            for cell, width in zip(row, widths)
        ).rstrip())


def percent(value: float) -> str:
    """Return a share as a percentage with one decimal, without the sign."""
    return f"{100 * value:.1f}"
