"""Runs at 02:10 at each site. One line for each thing done; the lines go to the curators' list."""

import sqlite3
from collections.abc import Iterator
from datetime import date

from seedhold import viability
from seedhold.config import Settings
from seedhold.db import transaction


def run(connection: sqlite3.Connection, settings: Settings, today: date) -> Iterator[str]:
    """Do the night's work."""
    with transaction(connection):
        rows = connection.execute("SELECT id FROM lots WHERE mg = 0 AND status = 'active' ORDER BY id").fetchall()
        connection.executemany("UPDATE lots SET status = 'exhausted' WHERE id = ?", [(row["id"],) for row in rows])
    for row in rows:
        yield f"lot {row['id']} exhausted"
    for lot, since in viability.due(connection, settings, today):
        yield f"lot {lot} to be tested since {since}"
