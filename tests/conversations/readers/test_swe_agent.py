"""SWE-agent trajectories, with tool calls and with actions in the text."""

import json
from pathlib import Path
from typing import Any

from compression_eval.conversations.formats import format_named
from compression_eval.conversations.sources import source_file
from tests.conversations.readers.reading import (
    calls,
    caveats,
    json_file,
    read_all,
    read_one,
    results,
    said,
)

FORMAT = format_named("swe-agent")

SYSTEM = {"role": "system", "content": "be good", "agent": "main", "message_type": "system_prompt"}
TASK = {"role": "user", "content": "go", "agent": "main", "message_type": "observation"}


def _turn(text: str, *names: str, **fields: Any) -> dict[str, Any]:
    made = [
        {"id": name, "type": "function", "function": {"name": "bash", "arguments": '{"a": 1}'}}
        for name in names
    ]
    return {
        "role": "assistant", "content": text, "agent": "main", "message_type": "action",
        "thought": text, "action": "ls", "tool_calls": made or None, **fields,
    }  # fmt: skip


def _seen(text: Any, *names: str) -> dict[str, Any]:
    return {
        "role": "tool", "content": text, "agent": "main", "message_type": "observation",
        "tool_call_ids": list(names),
    }  # fmt: skip


def _trajectory(*history: Any, **fields: Any) -> dict[str, Any]:
    step = {"action": "ls", "observation": "LATE", "response": "r", "thought": "t"}
    return {"trajectory": [step], "history": list(history), "info": {}, **fields}


def test_tool_calls_and_their_results(tmp_path: Path) -> None:
    settings = {"agent": {"model": {"name": "gpt-x"}}, "problem_statement": {"id": "task-1"}}
    path = json_file(
        tmp_path / "a.traj",
        _trajectory(
            SYSTEM,
            TASK | {"content": [{"type": "text", "text": "go"}]},
            _turn("first", "c1", "c2", thinking_blocks=[{"thinking": "HIDDEN"}]),
            _seen([{"type": "text", "text": "both"}], "c1", "c2"),
            _turn("<think>HIDDEN</think>again", "c1"),
            _seen("third", "c1"),
            replay_config=json.dumps(settings),
        ),
    )
    assert FORMAT.recognise(source_file(path)) is not None
    built = read_one(FORMAT, path)
    assert said(built)[:3] == [("system", "be good"), ("user", "go"), ("assistant", "first")]
    assert [name for name, _, _ in calls(built)] == ["c1", "c2", "c1-2"]
    assert results(built) == [("c1", "both"), ("c2", "both"), ("c1-2", "third")]
    assert not any(word in built.fixture.model_dump_json() for word in ("HIDDEN", "LATE"))
    assert built.fixture.model == "gpt-x"


def test_actions_in_the_text_stay_there_and_that_is_said(tmp_path: Path) -> None:
    path = json_file(
        tmp_path / "a.traj",
        _trajectory(
            SYSTEM | {"is_demo": False},
            TASK | {"is_demo": True},
            _turn("look\n```\nls\n```"),
            TASK | {"content": "a.py"},
            _turn("submit"),
        ),
    )
    built = read_one(FORMAT, path)
    assert said(built)[2:] == [
        ("assistant", "look\n```\nls\n```"), ("user", "a.py"), ("assistant", "submit"),
    ]  # fmt: skip
    assert calls(built) == []
    told = "\n".join(caveats(built))
    assert "part of its text, not tool calls" in told
    assert "1 messages of a demonstration" in told


def test_each_agent_has_its_own_conversation(tmp_path: Path) -> None:
    path = json_file(
        tmp_path / "a.traj",
        _trajectory(SYSTEM, TASK, TASK | {"agent": "helper"}, _turn("x"), {"role": "user"}),
    )
    _, second = read_all(FORMAT, path)
    assert second.fixture.name.endswith("-agent-helper")
