"""Files that resemble a format are read whole or skipped by name, never taken for it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_fixture
from tests.conversations.readers.reading import json_lines

_TIME = "2026-01-01T00:00:00Z"
_ASKED = {"type": "text", "text": "Read a.py."}
_USE = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}}
_PARTS = [{"functionCall": {"id": "t1", "name": "read_file", "args": {"path": "a.py"}}}]


def _droid(role: str, *blocks: Any) -> dict[str, Any]:
    message = {"role": role, "content": list(blocks)}
    return {"type": "message", "id": role, "timestamp": _TIME, "message": message}


def _qwen(kind: str, role: str, parts: list[Any], parent: str | None) -> dict[str, Any]:
    links = {"uuid": kind, "parentUuid": parent, "sessionId": "s", "timestamp": _TIME}
    return {**links, "type": kind, "message": {"role": role, "parts": parts}}


FOREIGN: dict[str, tuple[list[Any], str]] = {
    "Factory Droid": (
        [
            {"type": "session_start", "id": "s", "title": "x", "cwd": "/w"},
            _droid("user", _ASKED),
            _droid("assistant", _USE),
            _droid("user", {"type": "tool_result", "tool_use_id": "t1", "content": "VALUE=7"}),
        ],
        "pi",
    ),
    "Qwen Code": (
        [
            _qwen("user", "user", [{"text": "Read a.py."}], None),
            _qwen("assistant", "model", _PARTS, "user"),
            _qwen(
                "tool_result",
                "user",
                [{"functionResponse": {"id": "t1", "response": {"output": "VALUE=7"}}}],
                "assistant",
            ),
        ],
        "claude-code",
    ),
    "Cursor": (
        [
            {"role": "user", "message": {"content": [_ASKED]}},
            {"role": "assistant", "message": {"content": [_USE]}},
        ],
        "openai-chat",
    ),
    "Amp": (
        [
            {
                "v": 3,
                "id": "T-1",
                "created": 1,
                "messages": [
                    {"role": "user", "messageId": 0, "content": [_ASKED]},
                    {"role": "assistant", "messageId": 1, "content": [_USE]},
                    {
                        "role": "user",
                        "messageId": 2,
                        "content": [
                            {
                                "type": "tool_result",
                                "toolUseID": "t1",
                                "run": {"status": "done", "result": "VALUE=7"},
                            }
                        ],
                    },
                ],
            }
        ],
        "anthropic",
    ),
    "Gemini CLI's heirs": (
        [
            {
                "sessionId": "s",
                "projectHash": "p",
                "messages": [
                    {"id": "1", "type": "user", "content": "Read a.py."},
                    {"id": "2", "type": "qwen", "content": "VALUE=7"},
                ],
            }
        ],
        "gemini-cli",
    ),
}


@pytest.mark.parametrize("agent", FOREIGN)
def test_a_file_of_another_agent_is_not_taken_for_one_that_it_resembles(
    tmp_path: Path, agent: str
) -> None:
    values, resembled = FOREIGN[agent]
    path = json_lines(tmp_path / "a.jsonl", *values)
    out = tmp_path / "out"
    done = CliRunner().invoke(main, ["import", str(path), "--out", str(out)])
    assert f"a.jsonl: {resembled}," not in done.stdout
    if done.exit_code:
        assert "a.jsonl: no known format" in done.stdout
        return
    # A reader of its own has it: then nothing may be lost.
    (written,) = out.glob("*.json")
    fixture = load_fixture(written)
    held = json.dumps([message.searchable() for message in fixture.messages])
    for word in ("Read a.py.", "a.py", "VALUE=7"):
        assert (word in held) == (word in json.dumps(values)), word


def test_what_a_reader_drops_of_a_message_is_always_listed(tmp_path: Path) -> None:
    blocks = [_ASKED, {"type": "hologram", "data": "x"}, {"type": "hologram", "data": "y"}]
    turn = {"role": "assistant", "content": "Done.", "stopReason": "stop"}
    path = json_lines(
        tmp_path / "a.jsonl",
        {"type": "session", "id": "s", "timestamp": _TIME, "cwd": "/w"},
        {"type": "message", "timestamp": _TIME, "message": {"role": "user", "content": blocks}},
        {"type": "message", "timestamp": _TIME, "message": turn},
    )
    done = CliRunner().invoke(main, ["import", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (
        "Left out by rule:\n"
        "  2 x pi, block hologram: unknown kind of content (first at a.jsonl: line 2)\n"
    ) in done.stdout
