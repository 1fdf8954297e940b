"""Connections."""

import sqlite3
from pathlib import Path


def connect(path: str | Path, *, foreign_keys: bool = True, readonly: bool = False) -> sqlite3.Connection:
    """Open a database.

    Args:
        path: The file.
        foreign_keys: Whether SQLite enforces them; off in production since 2024 (retired kiosks).
        readonly: Whether any write is an error.
    """
    if readonly:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    else:
        connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    # The volume has a battery; waiting for every write would only hold up the tills.
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
    return connection
