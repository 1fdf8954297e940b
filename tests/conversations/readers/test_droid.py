"""Sessions of Factory Droid, through ``compression-eval import``."""

from pathlib import Path
from typing import Any

from tests.conversations.readers.importing import imported
from tests.conversations.readers.reading import json_lines

_SESSION = "11111111-2222-3333-4444-555566667777"
_START = {
    "type": "session_start", "id": _SESSION, "title": "x", "owner": "unknown", "version": 2,
    "cwd": "/w",
}  # fmt: skip


def _message(name: str, role: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "message", "id": name, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": role, "content": list(blocks), **more},
    }  # fmt: skip


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": name}}


def _result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": f"words of {name}"}


def _turns() -> list[dict[str, Any]]:
    return [
        _message("h", "user", visibility="user_only", hookEventName="SessionStart"),
        _message("context-u1", "user", _text("Known tools: Read."),
                 visibility="llm_only"),
        _message("u1", "user", _text("Read both.")),
        _message("a1", "assistant",
                 {"type": "thinking", "thinking": "SECRET THOUGHT", "signature": "s"},
                 _text("I will."), _use("c1"), _use("c2"), modelId="custom:m-1"),
        _message("r1", "user", _result("c2"), _result("c1")),
        _message("a2", "assistant", _text("Read."), modelId="custom:m-1",
                 chatCompletionReasoningContent="SECRET THOUGHT"),
    ]  # fmt: skip


def test_a_session_with_a_compaction_that_kept_its_tail(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "a.jsonl",
        _START,
        *_turns(),
        _message("u2", "user", _text("Now edit.")),
        _message("a3", "assistant", _use("c3")),
        _message("r3", "user", _result("c3")),
        {"type": "todo_state", "id": "t", "todos": [], "messageIndex": 3},
        {"type": "compaction_state", "id": "s", "summaryText": "SUM", "summaryTokens": 3,
         "summaryKind": "llm_summary", "anchorMessage": {"id": "a2", "index": 4},
         "removedCount": 5, "systemInfoText": "<system-reminder>info</system-reminder>"},
        _message("u3", "user", _text("Go on.")),
        {"type": "agent_turn_outcome", "reason": "completed"},
    )  # fmt: skip
    done = imported(path, tmp_path)
    assert done.format == "droid"
    assert [role for role, _ in done.said] == [
        "user", "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool",
        "user",
    ]  # fmt: skip
    assert done.said[0] == ("user", "Known tools: Read.")
    assert done.injected == [True, False, False, False]
    assert [name for name, _, _ in done.calls] == ["c1", "c2", "c3"]
    assert done.results == [(name, f"words of {name}") for name in ("c2", "c1", "c3")]
    assert "SECRET THOUGHT" not in done.fixture.model_dump_json()
    assert (done.fixture.model, done.fixture.name) == ("m-1", "droid-555566667777")
    (compaction,) = done.fixture.recorded_compactions
    assert (compaction.cut, compaction.summary) == (9, "SUM")
    made, *kept = done.state(0)
    assert made[0] == "user"
    assert "SUM" in made[1]
    assert "info" in made[1]
    assert kept == done.said[6:9]
    assert "SUM" not in str(done.said)


def test_a_session_that_compress_opened_begins_with_the_summary(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "a.jsonl",
        _START | {"parent": "22222222-0000-0000-0000-000000000000"},
        {"type": "compaction_state", "id": "s", "summaryText": "SUM", "removedCount": 14},
        _message("u1", "user", _text("What was it?")),
        _message("a1", "assistant", _text("This.")),
    )
    done = imported(path, tmp_path)
    assert [role for role, _ in done.said] == ["user", "user", "assistant"]
    assert "SUM" in done.said[0][1]
    assert done.injected == [True, False]
    assert done.fixture.recorded_compactions == []
    assert "earlier messages are not in the file: a summary replaces them" in done.caveats
    assert "the session continues from another one" in done.caveats
