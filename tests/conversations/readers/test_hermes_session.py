"""Hermes' JSON: messages on lines, exported sessions, snapshots."""

from pathlib import Path
from typing import Any

from compression_eval.conversations.building import Built
from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_file,
    json_lines,
    read_all,
    read_one,
    results,
    unknown,
)

from .hermes_stores import SUMMARY, SUMMARY_TEXT, result, says, turn, user

FORMAT = format_named("hermes-jsonl")

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
META = {"role": "session_meta", "tools": [TOOL], "model": "some/model", "timestamp": 1.0}


def said(built: Built) -> list[str]:
    return [m.text for m in built.fixture.messages if m.role in ("user", "assistant")]


def session(name: str, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "source": "cli",
        "model": "some/model",
        "system_prompt": "You are careful.",
        "parent_session_id": None,
        "started_at": 1.0,
        "end_reason": None,
        "messages": messages,
        **more,
    }


HISTORY = ["request 1", "working on 1", "answer 1"]


def test_messages_on_lines_behind_their_description(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "x.jsonl", META, *({**line, "timestamp": 2.0} for line in turn(1)))
    assert FORMAT.recognise(source_file(path)) == "a line with the role session_meta"
    (built,) = read_all(FORMAT, path)
    assert said(built) == HISTORY
    assert built.fixture.model == "some/model"
    assert [tool.function.name for tool in built.fixture.tools] == ["bash"]
    assert caveats(built) == ["the file does not contain the system prompt"]


def test_calls_have_the_id_and_the_name_where_any_version_has_them(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = [
        {"id": "c1", "name": "ls", "arguments": "{}"},
        {"call_id": "c2", "type": "function", "function": {"name": "cat", "arguments": "{}"}},
    ]
    messages = [user("go"), says("", tool_calls=made), result("c1", "a.py"), result("c2", "text")]
    built = read_one(FORMAT, json_lines(tmp_path / "x.jsonl", META, *messages))
    assert calls(built) == [("c1", "ls", {}), ("c2", "cat", {})]
    assert results(built) == [("c1", "a.py"), ("c2", "text")]
    assert unknown(built) == []


def test_an_exported_session_has_its_prompt(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "x.jsonl", session("20260101_1", turn(1)))
    seen = FORMAT.recognise(source_file(path))
    assert seen is not None
    assert seen.startswith("a session with id, messages, end_reason and")
    (built,) = read_all(FORMAT, path)
    assert built.fixture.messages[0].text == "You are careful."
    assert said(built) == HISTORY


def test_exported_sessions_that_go_on_with_each_other_are_one(tmp_path: Path) -> None:
    newer = session("s2", [says(SUMMARY), *turn(1), *turn(2)], parent_session_id="s1")
    older = session("s1", turn(1), end_reason="compression")
    other = session("s3", turn(3), model_config='{"_delegate_from": "s1"}', parent_session_id="s1")
    path = json_lines(tmp_path / "x.jsonl", other, newer, older)
    delegate, main = read_all(FORMAT, path)
    assert said(main) == [*HISTORY, "request 2", "working on 2", "answer 2"]
    (compaction,) = main.fixture.recorded_compactions
    assert (compaction.cut, compaction.summary) == (6, SUMMARY_TEXT)
    assert said(delegate)[0] == "request 3"
    assert delegate.fixture.name.endswith("-delegate")


def test_a_snapshot_is_one_document(tmp_path: Path) -> None:
    content = {
        "session_id": "x",
        "model": "some/model",
        "platform": "cli",
        "session_start": "2026-01-01",
        "system_prompt": "You are careful.",
        "tools": [TOOL],
        "message_count": 5,
        "messages": turn(1),
    }
    path = json_file(tmp_path / "session_x.json", content)
    assert FORMAT.recognise(source_file(path)) is not None
    (built,) = read_all(FORMAT, path)
    assert said(built) == HISTORY
    assert [tool.function.name for tool in built.fixture.tools] == ["bash"]
    assert caveats(built) == []
