"""mini-swe-agent trajectories, of all its versions."""

from pathlib import Path
from typing import Any

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_file,
    read_one,
    results,
    said,
)

FORMAT = format_named("mini-swe-agent")

SYSTEM = {"role": "system", "content": "one command in a block"}
TASK = {"role": "user", "content": "go"}
COMMAND = {"role": "assistant", "content": "look\n\n```bash\nls {x}\n```", "extra": {"cost": 1}}
OUTPUT = {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"}


def _object(*messages: Any, **fields: Any) -> dict[str, Any]:
    info = {"mini_version": "2.1", "config": {"model": {"model_name": "m-1"}}}
    return {
        "info": info, "messages": list(messages), "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "task-1", **fields,
    }  # fmt: skip


def test_a_bare_list_keeps_its_commands_as_text(tmp_path: Path) -> None:
    path = json_file(tmp_path / "a.traj.json", [SYSTEM, TASK, COMMAND, OUTPUT])
    assert FORMAT.recognise(source_file(path)) == (
        "a list of messages with commands in fenced blocks and their return codes"
    )
    built = read_one(FORMAT, path)
    assert said(built) == [
        (message["role"], message["content"]) for message in (SYSTEM, TASK, COMMAND, OUTPUT)
    ]
    assert calls(built) == []
    assert any("part of its text" in caveat for caveat in caveats(built))


def test_calls_of_models_that_make_them_are_kept(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    turn = {
        "role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "HIDDEN",
    }  # fmt: skip
    reply = {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": ["HIDDEN"]},
            {"type": "message", "content": [{"type": "output_text", "text": "more"}]},
            {"type": "function_call", "call_id": "c2", "name": "bash", "arguments": '{"a": 1}'},
            {"type": "odd"},
        ],
    }
    path = json_file(
        tmp_path / "a.traj.json",
        _object(
            SYSTEM, TASK, turn, {"role": "tool", "tool_call_id": "c1", "content": "one"}, reply,
            {"type": "function_call_output", "call_id": "c2", "output": "two"},
        ),
    )  # fmt: skip
    built = read_one(FORMAT, path)
    assert calls(built) == [("c1", "bash", {}), ("c2", "bash", {"a": 1})]
    assert results(built) == [("c1", "one"), ("c2", "two")]
    assert "HIDDEN" not in built.fixture.model_dump_json()
    assert not any("part of its text" in caveat for caveat in caveats(built))
