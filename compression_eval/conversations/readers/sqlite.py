"""Open the database of an agent without touching it.

A database is read from a copy, together with what is not yet merged into it: the agent may be at
work, so nothing is locked, written or left behind where the database lies.
"""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compression_eval.conversations.fields import Json, from_json
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile
from compression_eval.errors import DataError

UNREADABLE = f"it is no JSON object, or longer than {MAX_LINE_BYTES // 2**20} MiB"
_COMPANIONS = ("", "-wal", "-shm", "-journal")
_MAX_ATTEMPTS = 5


def is_database(source: SourceFile) -> bool:
    """Return whether a file is an SQLite database."""
    return source.magic.startswith(b"SQLite format 3")


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a database.

    Bytes of texts that are not UTF-8 are replaced; a text that is longer than a line may be is
    read as None.

    Raises:
        DataError: It cannot be copied or read, is no database, or lacks a table or column.
    """
    with TemporaryDirectory(prefix="compression-eval-", ignore_cleanup_errors=True) as folder:
        copy = _copied(path, Path(folder))
        try:
            # The copy is writable, or what a crash left half-merged could not be merged.
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = text_of
                connection.execute("PRAGMA query_only = ON")
                yield connection
        except sqlite3.Error as error:
            raise DataError(f"{path}: cannot be read as an SQLite database: {error}") from error


def text_of(raw: bytes) -> str | None:
    """Return the text of a column; None if it is too long to be read."""
    return raw.decode("utf-8", errors="replace") if len(raw) <= MAX_LINE_BYTES else None


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns of a table; empty if there is no such table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return {str(row[0]) for row in rows}


def has_tables(source: SourceFile, names: Sequence[str], *, column: str = "") -> bool:
    """Return whether a file is a database with tables of these names.

    Nothing is copied to find out, unless the tables may be in the log of a running agent only.

    Args:
        source: The file.
        names: Names of tables.
        column: A column that the last one must have.
    """

    def found(connection: sqlite3.Connection) -> bool:
        there = [columns(connection, table) for table in names]
        return all(there) and (not column or column in there[-1])

    path, wal = source.path, source.path.with_name(source.path.name + "-wal")
    if not is_database(source):
        return False
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            if found(connection):
                return True
        if not wal.exists() or not wal.stat().st_size:
            return False
        with opened(path) as connection:
            return found(connection)
    except (DataError, sqlite3.Error, OSError):
        return False


def _copied(path: Path, folder: Path) -> Path:
    """Copy a database and its companions, again if they changed meanwhile."""
    for _ in range(_MAX_ATTEMPTS):
        before = _stamps(path)
        try:
            for name in before:
                shutil.copyfile(path.with_name(name), folder / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DataError(f"{path}: cannot be copied: {error.strerror or error}") from error
        if _stamps(path) == before:
            return folder / path.name
        for copied in folder.iterdir():
            copied.unlink()
    raise DataError(
        f"{path}: the database changes while it is copied; stop the agent, or give a copy of it"
    )


def _stamps(path: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of a database and its companions, by their names."""
    stamps: dict[str, tuple[int, int]] = {}
    for ending in _COMPANIONS:
        with suppress(OSError):
            file = path.with_name(path.name + ending)
            stat = file.stat()
            stamps[file.name] = stat.st_size, stat.st_mtime_ns
    return stamps


def stored_object(text: Any) -> tuple[Json, str]:
    """Return the JSON object that a column contains, or why there is none."""
    value = from_json(text_of(text) if isinstance(text, bytes) else text)
    return (Json(value), "") if isinstance(value, dict) else (Json(), UNREADABLE)
