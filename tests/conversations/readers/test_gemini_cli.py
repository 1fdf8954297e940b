"""Gemini CLI sessions, as one document and as a record per line."""

import json
from pathlib import Path
from typing import Any

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_file,
    json_lines,
    read_one,
    results,
    said,
)

FORMAT = format_named("gemini-cli")

SESSION = {
    "sessionId": "11111111-2222-3333-4444-555566667777", "projectHash": "ab",
    "startTime": "2026-01-01T00:00:00Z", "lastUpdated": "2026-01-01T00:00:01Z",
}  # fmt: skip


def _message(name: str, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "t", "type": kind, "content": content, **fields}


def _call(name: str, output: Any = "ok", **fields: Any) -> dict[str, Any]:
    response = {"id": name, "name": "write_file", "response": {"output": output}}
    return {
        "id": name, "name": "write_file", "args": {"file_path": name}, "status": "success",
        "result": [{"functionResponse": response}], **fields,
    }  # fmt: skip


def test_a_document_becomes_messages(tmp_path: Path) -> None:
    turn = _message(
        "m2", "gemini", "writing", model="g-1",
        thoughts=[{"subject": "SECRET", "description": "THOUGHT"}],
        toolCalls=[_call("a", resultDisplay="SHOWN"), _call("b", result=None, status="cancelled"),
                   _call("c", {"k": 1})],
    )  # fmt: skip
    path = json_file(
        tmp_path / "s.json",
        SESSION
        | {
            "messages": [
                _message("m1", "user", [{"text": "go"}, {"inlineData": {
                    "mimeType": "image/png", "data": "AAAA"}}], displayContent="TYPED"),
                turn,
                _message("m3", "info", "an update"),
                _message("m4", "gemini", "", toolCalls=[]),
                _message("m5", "oracle", "words"),
                "words",
            ]
        },
    )  # fmt: skip
    assert FORMAT.recognise(source_file(path)) == (
        "a JSON object with sessionId, projectHash and messages"
    )
    built = read_one(FORMAT, path)
    assert said(built)[:2] == [
        ("user", "go\n[image: image/png, 3 bytes]"),
        ("assistant", "writing"),
    ]
    assert [identifier for identifier, _, _ in calls(built)] == ["a", "b", "c"]
    assert calls(built)[0][1:] == ("write_file", {"file_path": "a"})
    assert results(built) == [
        ("a", "ok"),
        ("c", json.dumps({"output": {"k": 1}})),
        ("b", "[no result was recorded for this call]"),
    ]
    hidden = ("SECRET", "THOUGHT", "SHOWN", "TYPED")
    assert not any(word in built.fixture.model_dump_json() for word in hidden)
    assert built.fixture.model == "g-1"
    assert "the file does not contain the system prompt" in caveats(built)


def test_a_later_record_replaces_an_earlier_one_in_its_place(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "s.jsonl",
        SESSION,
        _message("m1", "user", [{"text": "go"}]),
        _message("m2", "gemini", [{"text": "writing"}]),
        {"$set": {"lastUpdated": "t"}},
        _message("m3", "user", "meanwhile"),
        _message("m2", "gemini", [{"text": "writing"}], toolCalls=[_call("a")]),
    )
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert said(built) == [
        ("user", "go"), ("assistant", "writing"), ("tool", "ok"), ("user", "meanwhile"),
    ]  # fmt: skip


def test_a_rewind_undoes_what_follows(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "s.jsonl",
        SESSION,
        _message("m1", "user", "go"),
        _message("m2", "user", "undone"),
        _message("m3", "gemini", "undone too"),
        {"$rewindTo": "m2"},
        _message("m4", "user", "instead"),
    )
    built = read_one(FORMAT, path)
    assert said(built) == [("user", "go"), ("user", "instead")]


def test_a_rewritten_list_is_a_compaction(tmp_path: Path) -> None:
    kept = _message("m3", "gemini", [{"text": "kept"}], toolCalls=[_call("a")])
    path = json_lines(
        tmp_path / "s.jsonl",
        SESSION,
        _message("m1", "user", "old"),
        _message("m2", "gemini", "old answer"),
        kept,
        {
            "$set": {
                "messages": [
                    _message("s1", "user", [{"text": "the snapshot"}]),
                    _message("s2", "gemini", [{"text": "understood"}]),
                    kept,
                    _message("s3", "user", kept["toolCalls"][0]["result"]),
                ]
            }
        },
        _message("s1", "user", [{"text": "the snapshot"}]),
        _message("m4", "user", "new"),
    )
    built = read_one(FORMAT, path)
    assert [text for _, text in said(built)] == ["old", "old answer", "kept", "ok", "new"]
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (4, "summary", "the snapshot")
    assert compaction.state is not None
    assert [item if isinstance(item, int) else item.text for item in compaction.state] == [
        "the snapshot", "understood", 2, 3,
    ]  # fmt: skip
    assert not any("kept tail" in caveat for caveat in caveats(built))
