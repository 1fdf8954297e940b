"""Corrections of single rows."""

import csv

from toadline.paths import CORRECTIONS


def load(season: int) -> list[dict[str, str]]:
    """Return the corrections of a season."""
    with (CORRECTIONS / f"{season}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def apply(rows, season: int, name: str, key: str):
    """Return the rows of a file with its corrections; KeyError for one whose row is not there."""
    by_key: dict[str, list[dict[str, str]]] = {}
    for correction in load(season):
        if correction["file"] == name:
            by_key.setdefault(correction["key"], []).append(correction)
    kept = []
    seen = set()
    for row in rows:
        row = dict(row)
        dropped = False
        for correction in by_key.get(row[key], ()):
            seen.add(row[key])
            if correction["column"] == "*":
                dropped = True
            else:
                row[correction["column"]] = correction["value"]
        if not dropped:
            kept.append(row)
    unknown = set(by_key) - seen
    if unknown:
        raise KeyError(f"{name}: corrections for rows that are not there: {sorted(unknown)}")
    return kept
