"""Pi sessions, linear and as a tree."""

from pathlib import Path
from typing import Any

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_lines,
    read_one,
    results,
    said,
)

FORMAT = format_named("pi")

SESSION = "11111111-2222-3333-4444-555566667777"
OLD_HEADER = {
    "type": "session", "id": SESSION, "timestamp": "2025-01-01T00:00:00Z", "cwd": "/w",
    "provider": "anthropic", "modelId": "m-1",
}  # fmt: skip
HEADER = {
    "type": "session", "version": 3, "id": SESSION, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"
}  # fmt: skip


def _old(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "timestamp": "2025-01-01T00:00:01Z", "message": message}


def _new(name: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """Return an entry of a tree; one with a message if it names a role."""
    entry = {"id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:01Z"}
    return {**entry, "type": "message", **fields}


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def _turn(*blocks: dict[str, Any], stop: str = "stop") -> dict[str, Any]:
    return {
        "role": "assistant", "content": list(blocks), "provider": "anthropic", "model": "m-2",
        "stopReason": stop,
    }  # fmt: skip


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": name, "name": "edit", "arguments": arguments}


def _result(name: str, text: str) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": name, "content": [_text(text)], "isError": False}


def test_a_linear_session_becomes_messages(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "a.jsonl",
        OLD_HEADER,
        _old({"role": "user", "content": "start"}),
        {"type": "model_change", "provider": "anthropic", "modelId": "m-2"},
        _old(
            _turn(
                {"type": "thinking", "thinking": "SECRET THOUGHT", "thinkingSignature": "x"},
                _text("<scratchpad>SECRET THOUGHT</scratchpad>\ntwo calls"),
                _call("c1", path="a.py"),
                _call("c2", path="b.py"),
                stop="toolUse",
            )
        ),
        _old(_result("c2", "second")),
        _old(_result("c1", "first")),
        {"type": "thinking_level_change", "thinkingLevel": "off"},
        _old(_turn(_text("done"))),
    )
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert said(built)[0] == ("user", "start")
    assert calls(built) == [("c1", "edit", {"path": "a.py"}), ("c2", "edit", {"path": "b.py"})]
    assert results(built) == [("c2", "second"), ("c1", "first")]
    assert "SECRET THOUGHT" not in built.fixture.model_dump_json()
    assert built.fixture.model == "anthropic/m-2"
    assert "the file does not contain the system prompt" in caveats(built)
    assert built.fixture.name == "pi-555566667777"


def test_only_the_path_to_the_last_entry_is_the_conversation(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "a.jsonl",
        HEADER | {"parentSession": "/elsewhere/x.jsonl"},
        _new("a", None, message=_user("first")),
        _new("b", "a", message=_turn(_text("wrong way"))),
        _new("c", "b", message=_user("undone words")),
        _new("d", "a", type="branch_summary", fromId="c", summary="tried a way"),
        _new("e", "d", type="custom_message", customType="x", content="from an extension"),
        _new("f", "e", message=_turn(_text("right way"))),
        _new("g", "f", type="label", targetId="a", label="here"),
    )
    built = read_one(FORMAT, path)
    assert said(built) == [
        ("user", "first"),
        ("user", "[Summary of a branch of the conversation that was left]\ntried a way"),
        ("user", "from an extension"),
        ("assistant", "right way"),
    ]
    assert "the session was forked from another one" in caveats(built)
    assert "elsewhere" not in built.fixture.model_dump_json()


def test_a_compaction_in_a_tree_keeps_what_follows_its_first_kept_entry(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "a.jsonl",
        HEADER,
        _new("a", None, message=_user("old {brace}")),
        _new("b", "a", message=_turn(_call("c1"), stop="toolUse")),
        _new("c", "b", message=_result("c1", "result")),
        _new("d", "c", message=_user("kept")),
        _new("e", "d", type="compaction", summary="what {was}", tokensBefore=900,
             firstKeptEntryId="d", details={"readFiles": ["x"]}, fromHook=True),
        _new("f", "e", message=_user("after")),
    )  # fmt: skip
    built = read_one(FORMAT, path)
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.tokens_before, compaction.trigger) == (4, 900, "extension")
    assert compaction.summary == "what {was}"
    assert compaction.state is not None
    made, kept = compaction.state
    assert not isinstance(made, int)
    assert made.text == "[Summary of the conversation so far]\nwhat {was}"
    assert kept == 3
    assert "what {was}" not in "".join(text for _, text in said(built))
