"""OpenHands SDK events, in a line each, in a list, and in a file each."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from compression_eval.errors import DataError
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_file,
    json_lines,
    read_one,
    results,
    said,
)

FORMAT = format_named("openhands-events")

SESSION = "11111111-2222-3333-4444-555566667777"


def _event(name: str, kind: str, source: str = "agent", **fields: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "t", "source": source, "kind": kind, **fields}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_prompt": False}


def _user(name: str, text: str, **fields: Any) -> dict[str, Any]:
    said = {"role": "user", "content": [_text(text)]}
    return _event(name, "MessageEvent", "user", llm_message=said, **fields)


def _action(name: str, call: str, reply: str, thought: str = "", **fields: Any) -> dict[str, Any]:
    return _event(
        name, "ActionEvent", thought=[_text(thought)] if thought else [], tool_name="terminal",
        tool_call_id=call, llm_response_id=reply, action={"kind": "TerminalAction", "command": "x"},
        tool_call={"id": call, "name": "terminal", "arguments": '{"command": "ls"}'}, **fields,
    )  # fmt: skip


def _seen(name: str, call: str, text: str, **fields: Any) -> dict[str, Any]:
    seen = {"kind": "TerminalObservation", "content": [_text(text)]}
    return _event(
        name, "ObservationEvent", "environment", tool_call_id=call, observation=seen, **fields
    )


SYSTEM = _event(
    "e0", "SystemPromptEvent", system_prompt=_text("be good"), dynamic_context=_text("on linux"),
    tools=[{"type": "function", "function": {"name": "terminal", "parameters": {}}},
           {"kind": "OddTool", "description": "without a schema"}],
)  # fmt: skip
STATE = _event(
    "s", "ConversationStateUpdateEvent", "environment", key="full_state",
    value={"id": SESSION, "agent": {"llm": {"model": "m-1"}}},
)  # fmt: skip


def test_events_become_messages(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "e.jsonl",
        STATE,
        SYSTEM,
        _user("e1", "go", extended_content=[_text("a rule")]),
        _action("e2", "c1", "r1", "<think>HIDDEN</think>\n\nlooking", reasoning_content="HIDDEN"),
        _action("e3", "c2", "r1"),
        _seen("e4", "c2", "second"),
        _seen("e5", "c1", "first", extended_content=[_text("more")]),
        _event("e6", "AgentErrorEvent", tool_call_id="c3", error="bad call"),
        _action("e7", "c4", "r2", reasoning_content="HIDDEN") | {"action": None},
        _event("e8", "AgentErrorEvent", tool_call_id="c4", error="no such tool"),
        _action("e9", "c5", "r3"),
        _event("e10", "UserRejectObservation", tool_call_id="c5", rejection_reason="not that"),
        _event("e11", "PauseEvent", "user"),
        _event("e12", "MessageEvent", llm_message={"role": "assistant", "content": [
            _text("done"), {"type": "image", "image_urls": ["data:image/png;base64,AAAA"]}]}),
    )  # fmt: skip
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert said(built)[:3] == [
        ("system", "be good\non linux"), ("user", "go\na rule"), ("assistant", "looking"),
    ]  # fmt: skip
    assert [name for name, _, _ in calls(built)] == ["c1", "c2", "c4", "c5"]
    assert calls(built)[0] == ("c1", "terminal", {"command": "ls"})
    assert results(built) == [
        ("c2", "second"), ("c1", "first\nmore"), ("c4", "no such tool"),
        ("c5", "[user rejected this call]\nnot that"),
    ]  # fmt: skip
    assert said(built)[-1] == ("assistant", "done\n[image: image/png, 3 bytes]")
    assert "HIDDEN" not in built.fixture.model_dump_json()
    assert (built.fixture.model, built.fixture.name) == ("m-1", "openhands-events-555566667777")
    assert [tool.function.name for tool in built.fixture.tools] == ["terminal"]
    assert "1 tools have no schema" in caveats(built)


def test_condensations_are_recorded_with_what_was_left(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "e.jsonl",
        SYSTEM,
        _user("e1", "go"),
        _action("e2", "c1", "r1"),
        _seen("e3", "c1", "first"),
        _user("e4", "on"),
        _event("q1", "CondensationRequest", "environment", reason="context_limit"),
        _event("k1", "Condensation", "environment", forgotten_event_ids=["e2", "e3"],
               summary="listed", summary_offset=2),
        _user("e5", "again"),
        _event("k2", "Condensation", "environment", forgotten_event_ids=["e4"],
               summary="listed twice", summary_offset=2),
        _event("k3", "Condensation", "environment", forgotten_event_ids=["e5"]),
        _user("e6", "last"),
    )  # fmt: skip
    built = read_one(FORMAT, path)
    first, second = built.fixture.recorded_compactions
    assert (first.cut, first.trigger, first.summary) == (5, "context_limit", "listed")
    states = [
        [item if isinstance(item, int) else item.text for item in compaction.state or []]
        for compaction in (first, second)
    ]
    # The third one, with no message before it, took one more message out of the second's state.
    assert states == [[1, "listed", 4], [1, "listed twice"]]
    assert (second.cut, second.trigger) == (6, "")
    assert (second.kind, second.summary) == ("summary", "listed twice")


def test_a_folder_with_a_file_per_event_is_one_conversation(tmp_path: Path) -> None:
    events = [SYSTEM, _user("e1", "go"), _user("e3", "on")]
    for number, event in zip((0, 1, 3), events, strict=True):
        json_file(tmp_path / f"event-{number:05}-{event['id']}.json", event)
    (tmp_path / "event-00002-torn.json").write_text('{"kind": "Mess')
    (tmp_path / "base_state.json").write_text("{}")
    first = tmp_path / "event-00000-e0.json"
    assert FORMAT.recognise(source_file(first)) is not None
    built = read_one(FORMAT, first)
    assert [text for _, text in said(built)] == ["be good\non linux", "go", "on"]
    second = source_file(tmp_path / "event-00001-e1.json")
    assert FORMAT.recognise(second) is None
    with pytest.raises(DataError, match="expected the first file of its folder"):
        list(FORMAT.read(second))
