"""Hermes' database in any state: running, locked, torn, of another program."""

import json
import sqlite3
from pathlib import Path
from typing import Any

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
    assert ("unreadable", "the message is longer than 1 MiB") in left_out(built)


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


def test_the_copy_is_gone_afterwards(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    store.add("s1", turn(1))
    reading = FORMAT.read(source_file(store.path))
    next(reading)
    assert [path.name for path in folder.rglob("state.db")] == ["state.db"]
    reading.close()  # type: ignore[attr-defined]
    assert list(folder.iterdir()) == []


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


def test_another_database_is_refused_and_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sessions (id TEXT)")
    with pytest.raises(DataError, match=r"other\.db: .*it has no table messages"):
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


def test_json_of_any_shape_never_ends_in_a_traceback(store: Store) -> None:
    shapes: list[Any] = [None, 3, "x", [], [3], {"id": 3}, [{"function": 3}], [{"function": {}}]]
    store.add("s1", [user("go")])
    for shape in shapes:
        store.add("s1", [says("a")])
        store.connection.execute(
            "UPDATE messages SET tool_calls = ? WHERE id = (SELECT max(id) FROM messages)",
            (json.dumps(shape),),
        )
    only(store)


def test_messages_of_a_session_whose_id_is_no_text_are_read(store: Store) -> None:
    store.add("s1", [user("go"), says("done")])
    store.connection.execute("UPDATE messages SET session_id = x'ff41'")
    stray = build(conversations(store)[1]).fixture
    assert said(stray.messages) == ["go", "done"]
