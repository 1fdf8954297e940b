"""Hermes' database in any state: running, locked, torn, of another program."""

import sqlite3
from pathlib import Path

import pytest

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.errors import DataError

from .hermes_stores import (
    Store,
    history,
    only,
    said,
    turn,
)

FORMAT = format_named("hermes-db")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "state.db")
    made.session("s1")
    return made


def test_what_is_only_in_the_log_of_a_running_agent_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    store.connection.execute("PRAGMA journal_mode = WAL")
    store.connection.execute("PRAGMA wal_autocheckpoint = 0")
    store.session("s1")
    store.add("s1", turn(1))
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert "state.db-wal" in before
    assert FORMAT.recognise(source_file(store.path))
    assert said(only(store).fixture.messages) == history(1)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_locked_database_is_read_from_a_copy(store: Store) -> None:
    store.add("s1", turn(1))
    store.connection.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(store.path, timeout=0).execute("SELECT * FROM sessions")
    assert said(only(store).fixture.messages) == history(1)


def test_a_torn_database_is_a_clear_error(store: Store) -> None:
    for number in range(60):
        store.add("s1", turn(number))
    store.connection.close()
    data = store.path.read_bytes()
    store.path.write_bytes(data[: len(data) // 3])
    with pytest.raises(DataError, match=r"state\.db: cannot be read as an SQLite database"):
        list(FORMAT.read(source_file(store.path)))
