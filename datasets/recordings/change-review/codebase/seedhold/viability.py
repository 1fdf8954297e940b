"""Germination tests and when the next one is due."""

import sqlite3
from datetime import date

from seedhold.config import Settings
from seedhold.days import day, months_after


def enter(connection: sqlite3.Connection, lot: int, tested_on: date, sown: int, germinated: int) -> None:
    """Enter a test."""
    connection.execute(
        "INSERT INTO germination_tests (lot, tested_on, sown, germinated) VALUES (?, ?, ?, ?)",
        (lot, tested_on.isoformat(), sown, germinated),
    )


def due(connection: sqlite3.Connection, settings: Settings, today: date) -> list[tuple[int, date]]:
    """Return lots to be tested and since when, the longest overdue first."""
    rows = connection.execute(
        "SELECT l.id, l.packed_on, max(t.tested_on) AS last FROM lots l LEFT JOIN germination_tests t"
        " ON t.lot = l.id WHERE l.status != 'exhausted' GROUP BY l.id"
    )
    found = []
    for row in rows:
        since = months_after(day(row["last"] or row["packed_on"]), settings.retest_months)
        if since <= today:
            found.append((row["id"], since))
    return sorted(found, key=lambda each: (each[1], each[0]))
