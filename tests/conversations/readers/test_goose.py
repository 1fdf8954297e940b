"""Sessions of Goose, through ``compression-eval import``."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.conversations.readers.importing import imported, imported_all
from tests.conversations.readers.reading import json_file, json_lines

_SEEN = {"userVisible": True, "agentVisible": True}
_PAST = {"userVisible": True, "agentVisible": False}
_AGENT = {"userVisible": False, "agentVisible": True}
_NOBODY = {"userVisible": False, "agentVisible": False}
_NOTE = "Your context was compacted. The previous message contains a summary."


def _message(role: str, *content: Any, see: dict[str, bool] | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "created": 1, "content": list(content)}
    return message if see is None else message | {"id": None, "metadata": see}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _request(name: str, **arguments: Any) -> dict[str, Any]:
    call = {"status": "success", "value": {"name": "developer__shell", "arguments": arguments}}
    return {"type": "toolRequest", "id": name, "toolCall": call}


def _response(name: str, *content: Any) -> dict[str, Any]:
    result = {"status": "success", "value": {"content": list(content), "isError": False}}
    return {"type": "toolResponse", "id": name, "toolResult": result}


def _turns(see: dict[str, bool] | None = None) -> list[dict[str, Any]]:
    shown = _text("coloured") | {"annotations": {"audience": ["user"], "priority": 0.0}}
    given = _text("plain") | {"annotations": {"audience": ["assistant"]}}
    broken = {"type": "toolResponse", "id": "c2",
              "toolResult": {"status": "error", "error": "-32603: no such file"}}  # fmt: skip
    return [
        _message("user", _text("Look."), see=see),
        _message(
            "assistant",
            {"type": "thinking", "thinking": "SECRET THOUGHT", "signature": "s"},
            _text("I will."),
            _request("c1", command="ls"),
            _request("c2", command="cat"),
            see=see,
        ),
        _message("user", broken, _response("c1", shown, given), see=see),
        _message("assistant", _text("Looked."), see=see),
    ]


def _compaction(summary: str, see: dict[str, bool] = _AGENT) -> list[dict[str, Any]]:
    note = _message("assistant", _text(_NOTE), see=see)
    return [_message("user", _text(summary), see=see), note]


def _database(path: Path, *sessions: tuple[str, str, list[dict[str, Any]]]) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "CREATE TABLE schema_version (version INTEGER PRIMARY KEY);"
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, session_type TEXT NOT NULL "
            "DEFAULT 'user', working_dir TEXT NOT NULL, model_config_json TEXT);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,"
            "role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,"
            "timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);"
        )
        for name, kind, messages in sessions:
            connection.execute(
                "INSERT INTO sessions VALUES (?, '', ?, '/w', ?)",
                (name, kind, json.dumps({"model_name": "m-1"})),
            )
            for message in messages:
                content = message["content"]
                connection.execute(
                    "INSERT INTO messages (session_id, role, content_json, created_timestamp,"
                    "metadata_json) VALUES (?, ?, ?, 1, ?)",
                    (
                        name,
                        message["role"],
                        content if isinstance(content, str) else json.dumps(content),
                        json.dumps(message.get("metadata")),
                    ),
                )
    return path


def test_a_database_with_a_sub_agent(tmp_path: Path) -> None:
    path = _database(
        tmp_path / "sessions.db",
        ("20260101_1", "user", _turns(_SEEN)),
        ("20260101_2", "sub_agent", [_message("user", _text("Sub task."), see=_SEEN)]),
        ("20260101_3", "user", []),
    )
    before = path.read_bytes()
    main_one, sub = sorted(
        imported_all(path, tmp_path / "out"), key=lambda one: len(one.said), reverse=True
    )
    assert path.read_bytes() == before
    assert main_one.format == "goose"
    assert main_one.calls == [
        ("c1", "developer__shell", {"command": "ls"}),
        ("c2", "developer__shell", {"command": "cat"}),
    ]
    assert dict(main_one.results) == {"c1": "plain", "c2": "-32603: no such file"}
    assert main_one.said[-1] == ("assistant", "Looked.")
    assert "SECRET THOUGHT" not in main_one.fixture.model_dump_json()
    assert "1 x goose, content for the user" in main_one.stdout
    assert main_one.fixture.model == "m-1"
    assert sub.fixture.name.endswith("-sub-agent")


def test_compactions_are_told_by_who_sees_the_messages(tmp_path: Path) -> None:
    """The first repeats a request from amid a loop of tools, the second the very last message."""
    messages = [
        *_turns(_PAST),
        *_compaction("SUM 1", _NOBODY),
        _message("user", _text("Look."), see=_PAST),
        _message("assistant", _text("On it."), see=_PAST),
        _message("user", _text("And now?"), see=_NOBODY),
        *_compaction("SUM 2"),
        _message("user", _text("And now?"), see=_SEEN),
        _message("assistant", {"type": "systemNotification", "notificationType": "inlineMessage",
                               "msg": "Compaction complete"}, see=_PAST),
        _message("assistant", _text("This."), see=_SEEN),
    ]  # fmt: skip
    done = imported(_database(tmp_path / "sessions.db", ("s", "user", messages)), tmp_path / "out")
    assert [text for role, text in done.said if role != "tool"] == [
        "Look.", "I will.", "Looked.", "On it.", "And now?", "This.",
    ]  # fmt: skip
    first, second = done.fixture.recorded_compactions
    assert (first.cut, first.summary, second.cut, second.summary) == (5, "SUM 1", 7, "SUM 2")
    assert done.state(0) == [("user", "SUM 1"), ("assistant", _NOTE), ("user", "Look.")]
    assert first.state is not None
    assert first.state[-1] == 0
    assert done.state(1) == [("user", "SUM 2"), ("assistant", _NOTE), ("user", "And now?")]
    assert done.fixture.cuts == [5, 7]


def test_the_older_lines_and_an_export_say_the_same(tmp_path: Path) -> None:
    turns = _turns()
    for part in turns[2]["content"]:  # older sessions contain the parts of a result bare
        if "value" in part["toolResult"]:
            part["toolResult"]["value"] = part["toolResult"]["value"]["content"]
    head = {"working_dir": "/w", "description": "x", "message_count": 4, "total_tokens": 9}
    lines = imported(json_lines(tmp_path / "a.jsonl", head, *turns), tmp_path / "1")
    session = {"id": "20260101_1", "working_dir": "/w", "name": "x", "session_type": "user",
               "conversation": _turns(_SEEN), "message_count": 4}  # fmt: skip
    export = imported(json_file(tmp_path / "b.json", session), tmp_path / "2")
    assert lines.format == export.format == "goose"
    assert lines.said == export.said
    assert len(lines.results) == 2
