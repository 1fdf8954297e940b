"""Hermes' database: compactions, what the user took back, who belongs to whom, any damage."""

import sqlite3
from pathlib import Path

import pytest

from compression_eval.conversations.building import build
from compression_eval.conversations.sources import source_file
from compression_eval.errors import DataError
from compression_eval.fixtures.models import Message
from tests.conversations.readers.reading import caveats

from .hermes_stores import (
    FORMAT,
    SUMMARY,
    SUMMARY_TEXT,
    TODO,
    Store,
    conversations,
    history,
    only,
    said,
    says,
    state_texts,
    turn,
    user,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "state.db")
    made.session("s1")
    return made


def test_a_session_becomes_a_conversation_with_its_prompt(store: Store) -> None:
    store.add("s1", turn(1))
    built = only(store)
    messages = built.fixture.messages
    assert [message.role for message in messages] == [
        *("system", "user", "assistant", "tool", "tool", "assistant")
    ]
    assert messages[0].text == "You are careful."
    assert [call.id for call in messages[2].calls] == ["c1a", "c1b"]
    assert messages[2].calls[0].function.parsed() == {"command": "c1a"}
    assert [message.tool_call_id for message in messages[3:5]] == ["c1a", "c1b"]
    assert built.fixture.model == "some/model"
    assert built.fixture.source is not None
    assert built.fixture.source.origin == "Hermes database (schema 22)"
    assert "the file does not contain the definitions of the tools" in built.fixture.source.caveats


def test_an_early_schema_without_row_states_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", version=16)
    store.session("s1")
    store.add("s1", turn(1))
    assert said(only(store).fixture.messages) == history(1)


def test_thinking_is_left_out(store: Store) -> None:
    store.add("s1", [user("go"), says("<think>secret</think>on it", reasoning="more secret")])
    built = only(store)
    assert built.fixture.messages[-1].text == "on it"


def test_content_that_is_an_empty_list_says_nothing(store: Store) -> None:
    store.add("s1", [user("go"), user([]), says("on it")])
    assert said(only(store).fixture.messages) == ["go", "on it"]


def test_a_background_review_is_no_history(store: Store) -> None:
    review = user("Review the conversation above and update the skill library now.")
    other = user("Review the conversation above and consider saving to memory what helps.")
    store.add("s1", [*turn(1), review, says("Nothing to save."), *turn(2)])
    store.end("s1", "compression")
    store.session("s2", parent="s1", started=5)
    store.add("s2", [other, says("Saved."), says(SUMMARY), *turn(2), *turn(3)])
    assert said(only(store).fixture.messages) == history(1, 2, 3)


def test_what_the_user_took_back_is_no_history(store: Store) -> None:
    store.add("s1", turn(1))
    store.add("s1", turn(2))
    store.undo("s1", 5)
    store.add("s1", turn(3))
    built = only(store)
    assert said(built.fixture.messages) == history(1, 3)


def test_a_compaction_in_place_repeats_nothing(store: Store) -> None:
    for number in (1, 2, 3):
        store.add("s1", turn(number))
    store.compact("s1", [*turn(1), says(SUMMARY), *turn(3), user(TODO)])
    store.add("s1", turn(4))
    built = only(store)
    assert said(built.fixture.messages) == history(1, 2, 3, 4)
    (compaction,) = built.fixture.recorded_compactions
    assert compaction.cut == 1 + 15
    assert compaction.summary == SUMMARY_TEXT
    assert compaction.kind == "summary"
    state = compaction.state or []
    assert [item for item in state if isinstance(item, int)] == [1, 2, 3, 4, 5, 11, 12, 13, 14, 15]
    assert [item.text for item in state if isinstance(item, Message)] == [SUMMARY, TODO]


def test_a_session_that_goes_on_in_a_new_one_is_one_conversation(store: Store) -> None:
    store.add("s1", [*turn(1), *turn(2)])
    store.end("s1", "compression")
    store.session("s2", parent="s1", started=5, prompt="You are careful.")
    store.add("s2", [user("request 1"), says(SUMMARY), *turn(2)])
    store.add("s2", turn(3))
    built = only(store)
    assert said(built.fixture.messages) == history(1, 2, 3)
    (compaction,) = built.fixture.recorded_compactions
    assert compaction.cut == 11
    assert state_texts(built) == ["request 1", SUMMARY, *history(2)]


def test_branches_and_sub_agents_are_conversations_of_their_own(store: Store) -> None:
    store.add("s1", turn(1))
    store.end("s1", "compression")
    store.session("s2", parent="s1", started=5)
    store.add("s2", [says(SUMMARY), *turn(1)[-1:], *turn(2)])
    store.session("d1", parent="s1", started=2, config={"_delegate_from": "s1"})
    store.add("d1", turn(7))
    store.session("b1", parent="s1", started=1, config={"_branched_from": "s1"})
    store.add("b1", turn(8))
    found = conversations(store)
    assert [(one.part, said(build(one).fixture.messages)) for one in found] == [
        ("", history(1, 2)),
        ("branch", history(8)),
        ("delegate", history(7)),
    ]


def test_messages_of_a_session_that_is_gone_are_kept_apart(store: Store) -> None:
    store.add("s1", turn(1))
    store.add("gone", turn(2))
    main, stray = conversations(store)
    assert said(build(stray).fixture.messages) == history(2)
    assert stray.part == "stray"
    assert said(build(main).fixture.messages) == history(1)


def test_a_summary_without_what_it_summed_up_stays(store: Store) -> None:
    store.add("s1", [says(SUMMARY), *turn(1)])
    built = only(store)
    assert said(built.fixture.messages) == [SUMMARY, *history(1)]
    assert built.fixture.recorded_compactions == []
    assert any("no longer in the file" in caveat for caveat in caveats(built))


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
