"""Open the database of an agent without touching it."""

import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compression_eval.conversations.fields import Json, from_json
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile
from compression_eval.errors import DataError

LONGEST = f"{MAX_LINE_BYTES // 2**20} MiB"
"""More than that is not read."""
_COMPANIONS = ("", "-wal", "-shm", "-journal")
_MAX_ATTEMPTS = 5


def is_database(source: SourceFile) -> bool:
    """Return whether a file is an SQLite database."""
    return source.magic.startswith(b"SQLite format 3")


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a database, with what is not yet merged into it.

    The agent may be at work in it, so nothing is locked, written or left behind where it lies.
    Bytes of texts that are not UTF-8 are replaced.

    Raises:
        DataError: It cannot be copied or read, or is no database.
    """
    with TemporaryDirectory(prefix="compression-eval-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "state.db"
        _copy(path, copy)
        try:
            # The copy is writable, or what a crash left half-merged could not be merged.
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
                connection.execute("PRAGMA query_only = ON")
                yield connection
        except sqlite3.Error as error:
            raise DataError(f"{path}: cannot be read as an SQLite database: {error}") from error


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the columns of a table; empty if there is no such table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return {str(row[0]) for row in rows}


def tables(
    connection: sqlite3.Connection, path: Path, product: str, wanted: Mapping[str, set[str]]
) -> dict[str, set[str]]:
    """Return the columns of some tables.

    Raises:
        DataError: One is missing.
    """
    there = {table: columns(connection, table) for table in wanted}
    for table, names in wanted.items():
        if missing := sorted(names - there[table]):
            raise DataError(
                f"{path}: expected the database of {product}, {table} has no column {missing[0]}"
            )
    return there


def has_tables(path: Path, names: Sequence[str], *, column: str = "") -> bool:
    """Whether a database has tables of these names; nothing is copied to find out."""

    def found(connection: sqlite3.Connection) -> bool:
        there = [columns(connection, table) for table in names]
        return all(there) and (not column or column in there[-1])

    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            if found(connection):
                return True
    except (sqlite3.Error, OSError):
        return False
    wal = path.with_name(path.name + "-wal")
    try:
        if not wal.exists() or not wal.stat().st_size:
            return False
        with opened(path) as connection:
            return found(connection)
    except (DataError, OSError):
        return False


def _copy(path: Path, copy: Path) -> None:
    """Copy a database and its companions, again if they changed meanwhile."""
    for _ in range(_MAX_ATTEMPTS):
        before = _stamps(path)
        for companion in _COMPANIONS:
            copy.with_name(copy.name + companion).unlink(missing_ok=True)
        try:
            for companion, stamp in before.items():
                if stamp is not None:
                    source = path.with_name(path.name + companion)
                    shutil.copyfile(source, copy.with_name(copy.name + companion))
        except FileNotFoundError as error:
            if not path.exists():
                raise DataError(f"{path}: cannot be copied: it is not there") from error
            continue
        except OSError as error:
            raise DataError(f"{path}: cannot be copied: {error.strerror or error}") from error
        if _stamps(path) == before:
            return
    raise DataError(
        f"{path}: the database changes while it is copied; stop the agent, or give a copy of it"
    )


def _stamps(path: Path) -> dict[str, tuple[int, int] | None]:
    """Return size and time of change of a database and its companions."""
    stamps: dict[str, tuple[int, int] | None] = dict.fromkeys(_COMPANIONS)
    for companion in _COMPANIONS:
        try:
            stat = path.with_name(path.name + companion).stat()
            stamps[companion] = stat.st_size, stat.st_mtime_ns
        except OSError:
            continue
    return stamps


def short(name: str) -> str:
    """Return the SQL of a column, without what is too long to be read."""
    return f"CASE WHEN length({name}) <= {MAX_LINE_BYTES} THEN {name} END AS {name}"


def stored_object(text: Any) -> tuple[Json, str]:
    """Return the JSON object that a text holds, or why there is none."""
    value = from_json(text)
    if isinstance(value, dict):
        return Json(value), ""
    return Json(), "not JSON" if value is None and text != "null" else "expected an object"
