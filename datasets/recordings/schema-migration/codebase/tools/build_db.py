"""Build a database from an export: ``python -m tools.build_db ENV [--to PATH]``."""

import argparse
import csv
from pathlib import Path

from tollwick.config import ROOT, load
from tollwick.db import connect
from tollwick.migrate import runner

FILES = {"kiosks": "kiosks", "deposit_rates": "rates", "kiosk_events": "kiosk_events"}
LAST = 6
"""The migration that the exports belong to."""


def build(env: str, path: Path) -> dict[str, int]:
    """Write the database anew; return the number of rows by table."""
    path.unlink(missing_ok=True)
    connection = connect(path, foreign_keys=False)
    runner.up(connection, to=LAST)
    sources = {table: ROOT / "data" / f"{name}.csv" for table, name in FILES.items()}
    for table in ("returns", "voucher_log", "redemptions", "returns_v2_tmp"):
        sources[table] = ROOT / "data" / env / f"{table}.csv"
    counts = {}
    for table, source in sources.items():
        if not source.exists():
            counts[table] = 0
            continue
        with source.open(newline="") as file:
            rows = list(csv.reader(file))
        head, body = rows[0], [[value or None for value in row] for row in rows[1:]]
        if table == "returns":
            at = head.index("items")
            for row in body:
                row[at] = row[at] or ""
        marks = ", ".join("?" for _ in head)
        with connection:
            connection.executemany(f"INSERT INTO {table} ({', '.join(head)}) VALUES ({marks})", body)
        counts[table] = len(body)
    connection.close()
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("env")
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    target = options.to or ROOT / load(options.env).db
    for table, number in build(options.env, target).items():
        print(f"{table:16} {number:6}")
