"""Hermes' database in any state: running, locked, torn, of another program."""

import sqlite3
from pathlib import Path

import pytest

from compression_eval.conversations.building import build
from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import MAX_LINE_BYTES, source_file
from compression_eval.errors import DataError
from tests.conversations.readers.reading import left_out

from .hermes_stores import (
    Store,
    conversations,
    history,
    only,
    said,
    says,
    turn,
    user,
)

FORMAT = format_named("hermes-db")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "state.db")
    made.session("s1")
    return made


def test_a_message_too_long_is_skipped_by_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compression_eval.conversations.readers.hermes.MAX_LINE_BYTES", 2**20)
    assert MAX_LINE_BYTES > 2**20
    store.add("s1", [user("go"), says("x" * (2**20 + 1)), says("end")])
    built = build(conversations(store)[0])
    assert said(built.fixture.messages) == ["go", "end"]
    assert ("unreadable", "the message is longer than 64 MiB") in left_out(built)


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


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"SQLite format 3\x00" + b"\x00" * 200, "cannot be read as an SQLite database"),
        (b'{"role": "user"}\n', "expected the SQLite database of Hermes"),
    ],
)
def test_a_file_that_is_no_database_is_refused(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(DataError, match=expected):
        list(FORMAT.read(source_file(path)))
    assert FORMAT.recognise(source_file(path)) is None


def test_a_torn_database_is_a_clear_error(store: Store) -> None:
    for number in range(60):
        store.add("s1", turn(number))
    store.connection.close()
    data = store.path.read_bytes()
    store.path.write_bytes(data[: len(data) // 3])
    with pytest.raises(DataError, match=r"state\.db: cannot be read as an SQLite database"):
        list(FORMAT.read(source_file(store.path)))
