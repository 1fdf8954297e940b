"""Numbered SQL files in migrations/, applied once each, in order."""

import re
import sqlite3
from pathlib import Path

from seedhold.config import ROOT

FOLDER = ROOT / "migrations"


class MigrationError(Exception):
    """A file that cannot be applied or taken back."""


def files(folder: Path = FOLDER) -> list[tuple[int, Path]]:
    """Return numbers and files; the number is what counts, not the name."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        match = re.fullmatch(r"(\d{3})_\w+\.sql", path.name)
        if match:
            found.append((int(match[1]), path))
    return found


def version(connection: sqlite3.Connection) -> int:
    """Return the number of the last file applied."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def up(connection: sqlite3.Connection, folder: Path = FOLDER) -> list[str]:
    """Apply what is pending and return the names."""
    done = []
    for number, path in files(folder):
        if number > version(connection):
            connection.executescript(f"BEGIN; {path.read_text()} PRAGMA user_version = {number}; COMMIT;")
            done.append(path.name)
    return done


def down(connection: sqlite3.Connection, folder: Path = FOLDER) -> str:
    """Take the last one back and return its name."""
    number = version(connection)
    for found, path in files(folder):
        if found == number:
            back = path.with_suffix(".down.sql")
            if not back.exists():
                raise MigrationError(f"{path.name} cannot be taken back")
            connection.executescript(f"BEGIN; {back.read_text()} PRAGMA user_version = {number - 1}; COMMIT;")
            return path.name
    raise MigrationError(f"version {number} has no file")
