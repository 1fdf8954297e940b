"""Trajectories of SWE-agent and mini-swe-agent, with tool calls and with actions in the text."""

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
MINI = format_named("mini-swe-agent")

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


MINI_SYSTEM = {"role": "system", "content": "one command in a block"}
MINI_TASK = {"role": "user", "content": "go"}
MINI_COMMAND = {
    "role": "assistant",
    "content": "look\n\n```bash\nls {x}\n```",
    "extra": {"cost": 1},
}
MINI_OUTPUT = {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"}


def _object(*messages: Any, **fields: Any) -> dict[str, Any]:
    info = {"mini_version": "2.1", "config": {"model": {"model_name": "m-1"}}}
    return {
        "info": info, "messages": list(messages), "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "task-1", **fields,
    }  # fmt: skip


def test_a_bare_list_keeps_its_commands_as_text(tmp_path: Path) -> None:
    path = json_file(tmp_path / "a.traj.json", [MINI_SYSTEM, MINI_TASK, MINI_COMMAND, MINI_OUTPUT])
    assert MINI.recognise(source_file(path)) == (
        "a list of messages with commands in fenced blocks and their return codes"
    )
    built = read_one(MINI, path)
    assert said(built) == [
        (message["role"], message["content"])
        for message in (MINI_SYSTEM, MINI_TASK, MINI_COMMAND, MINI_OUTPUT)
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
            MINI_SYSTEM, MINI_TASK, turn,
            {"role": "tool", "tool_call_id": "c1", "content": "one"}, reply,
            {"type": "function_call_output", "call_id": "c2", "output": "two"},
        ),
    )  # fmt: skip
    built = read_one(MINI, path)
    assert calls(built) == [("c1", "bash", {}), ("c2", "bash", {"a": 1})]
    assert results(built) == [("c1", "one"), ("c2", "two")]
    assert "HIDDEN" not in built.fixture.model_dump_json()
    assert not any("part of its text" in caveat for caveat in caveats(built))
