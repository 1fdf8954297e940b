"""Merge members who registered twice."""

import sqlite3

from tollwick.config import Settings


def run(connection: sqlite3.Connection, settings: Settings, merges: list[tuple[str, str]]) -> int:
    """Move the returns of the first member of each pair to the second; return how many moved."""
    moved = 0
    with connection:
        for gone, kept in merges:
            moved += connection.execute(
                "UPDATE returns SET member = ? WHERE member = ?", (kept, gone)
            ).rowcount
    return moved
