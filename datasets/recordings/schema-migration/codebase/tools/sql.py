"""Ask a database, read-only: ``python -m tools.sql PATH QUERY...``."""

import sqlite3
import sys

from tollwick.db import connect


def table(rows: list[sqlite3.Row]) -> str:
    """Return rows as aligned text."""
    if not rows:
        return "(no rows)"
    lines = [rows[0].keys(), *[["NULL" if value is None else str(value) for value in row] for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(v.ljust(w) for v, w in zip(line, widths)).rstrip() for line in lines)


if __name__ == "__main__":
    connection = connect(sys.argv[1], readonly=True)
    for query in sys.argv[2:]:
        print(table(connection.execute(query).fetchall()))
        print()
