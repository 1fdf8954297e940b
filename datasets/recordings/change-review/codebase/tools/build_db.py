"""Build a database of a site from data/: ``python -m tools.build_db SITE [--to PATH]``."""

import argparse
import csv
from pathlib import Path

from seedhold import migrate
from seedhold.config import ROOT, load
from seedhold.db import connect, transaction

TABLES = ("accessions", "lots", "germination_tests", "requests", "movements")


def build(site: str, to: str | None = None) -> str:
    """Make the file anew and return its path."""
    path = Path(to or ROOT / load(site).db)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    connection = connect(str(path))
    old = [each for each in migrate.files() if each[0] <= 3]
    for number, file in old:
        connection.executescript(file.read_text() + f"PRAGMA user_version = {number};")
    with transaction(connection):
        for table in TABLES:
            with (ROOT / "data" / site / f"{table}.csv").open(newline="") as file:
                for row in csv.DictReader(file):
                    marks = ", ".join("?" for _ in row)
                    connection.execute(
                        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})",
                        [value if value != "" else None for value in row.values()],
                    )
    connection.close()
    return str(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("site", choices=["vault", "field"])
    parser.add_argument("--to")
    options = parser.parse_args()
    build(options.site, options.to)
    print(f"built {options.site}, schema 3")
