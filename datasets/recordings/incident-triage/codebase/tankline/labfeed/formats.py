"""Lab files: version 2 until February 2026, version 3 since."""

from pathlib import Path

from tankline.data import rows, when
from tankline.model import Result

V2 = ["result", "label", "bench", "inhibitor", "measured_at"]
V3 = ["result", "label", "rack", "bench", "inhibitor", "measured_at"]


class FormatError(Exception):
    """A file whose columns are not known."""


def read(path: Path) -> list[Result]:
    """Return the results of a file, in the order of its lines."""
    table = rows(path)
    columns = list(table[0]) if table else V3
    if columns not in (V2, V3):
        raise FormatError(f"{path.name}: columns {columns}")
    return [
        Result(
            id=row["result"],
            file=path.name,
            label=row["label"],
            bench=row["bench"],
            inhibitor=row["inhibitor"],
            measured_at=when(row["measured_at"]),
        )
        for row in table
    ]
