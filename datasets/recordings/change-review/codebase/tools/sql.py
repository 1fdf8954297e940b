"""Run queries read-only: ``python -m tools.sql DB QUERY...``."""

import sqlite3
import sys

connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
for query in sys.argv[2:]:
    cursor = connection.execute(query)
    rows = [[item[0] for item in cursor.description], *cursor.fetchall()]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(value).ljust(width) for value, width in zip(row, widths)).rstrip())
    print(f"({len(rows) - 1} rows)")
