"""Apply migrations and take them back."""

import hashlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from tollwick.config import ROOT

FOLDER = ROOT / "migrations"


class MigrationError(Exception):
    """A migration cannot be applied; the database is as it was."""


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    path: Path

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:12]

    @property
    def down(self) -> Path:
        return self.path.with_suffix(".down.sql")


def migrations(folder: Path = FOLDER) -> list[Migration]:
    """Return the migrations of a folder in their order."""
    found = []
    for path in sorted(folder.glob("[0-9]*.sql")):
        if not path.name.endswith(".down.sql"):
            number, _, name = path.stem.partition("_")
            found.append(Migration(int(number), name, path))
    return found


def applied(connection: sqlite3.Connection) -> dict[int, str]:
    """Return version and checksum of what a database has."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT, checksum TEXT)"
    )
    rows = connection.execute("SELECT version, checksum FROM schema_migrations ORDER BY version")
    return {row[0]: row[1] for row in rows}


def up(connection: sqlite3.Connection, folder: Path = FOLDER, to: int | None = None) -> list[str]:
    """Apply what is pending; return the names."""
    have = applied(connection)
    done = []
    for migration in migrations(folder):
        if migration.version in have:
            if have[migration.version] != migration.checksum:
                raise MigrationError(f"{migration.path.name} was changed after it had been applied")
            continue
        if to is not None and migration.version > to:
            break
        try:
            with connection:
                connection.executescript(migration.path.read_text())
                connection.execute(
                    "INSERT INTO schema_migrations VALUES (?, ?, ?)",
                    (migration.version, migration.name, migration.checksum),
                )
        except sqlite3.Error as error:
            raise MigrationError(f"{migration.path.name}: {error}") from error
        done.append(f"{migration.version:04d}_{migration.name}")
    return done


def down(connection: sqlite3.Connection, folder: Path = FOLDER) -> str:
    """Take the last one back; return its name."""
    have = applied(connection)
    if not have:
        raise MigrationError("nothing is applied")
    last = max(have)
    (migration,) = [each for each in migrations(folder) if each.version == last]
    if not migration.down.exists():
        raise MigrationError(f"{migration.down.name}: there is no way back")
    try:
        with connection:
            connection.executescript(migration.down.read_text())
            connection.execute("DELETE FROM schema_migrations WHERE version = ?", (last,))
    except sqlite3.Error as error:
        raise MigrationError(f"{migration.down.name}: {error}") from error
    return f"{last:04d}_{migration.name}"
