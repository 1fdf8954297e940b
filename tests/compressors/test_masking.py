"""Observation masking and the local clearing of tool uses."""

from typing import Any

import pytest

from compression_eval.compressors.state import State
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed, session

CLEARED = "[This tool result was cleared to make room.]"


def results(state: State) -> list[str]:
    return [message.text for message in state.messages if message.role == "tool"]


def calls(state: State) -> list[tuple[str, dict[str, Any]]]:
    return [
        (call.function, call.arguments)
        for message in state.messages
        if message.role == "assistant"
        for call in message.tool_calls or []
    ]


def test_masking_keeps_the_last_results_and_counts_the_lines_of_the_others(
    fixture: Fixture,
) -> None:
    state, asked = compressed(fixture, "masking", {"keep": 3})
    assert state.status == "ok", state.failure
    assert asked == []
    note = "[An older tool result stood here and was left out. Lines: 2]"
    assert results(state)[:-3] == [note] * 9
    assert [text.splitlines()[0] for text in results(state)[-3:]] == [
        f"output line of step {step}: code E{step}00" for step in (9, 10, 11)
    ]
    assert len(state.messages) == len(fixture.messages)
    said = [message.id for message in state.messages if message.role != "tool"]
    assert said == [f"m{i}" for i, m in enumerate(fixture.messages) if m.role != "tool"]


def test_masking_may_keep_none(fixture: Fixture) -> None:
    state, _ = compressed(fixture, "masking", {"keep": 0})
    assert all("left out" in text for text in results(state))
    assert len(results(state)) == 12


def test_nothing_old_enough_is_not_a_compression(fixture: Fixture) -> None:
    for compressor in ("masking", "clear-tools"):
        state, _ = compressed(fixture, compressor, {"keep": 12})
        assert state.status == "not_applied", compressor
        assert state.messages == []


@pytest.mark.parametrize("inputs", [False, True, ["bash"]])
def test_clearing_takes_the_arguments_along_if_asked(fixture: Fixture, inputs: Any) -> None:
    state, _ = compressed(fixture, "clear-tools", {"clear_tool_inputs": inputs})
    assert [text == CLEARED for text in results(state)] == [True] * 9 + [False] * 3
    whole = [("bash", {"command": f"run {step}"}) for step in range(12)]
    assert calls(state) == ([("bash", {})] * 9 + whole[9:] if inputs else whole)
    assert len({message.id for message in state.messages}) == len(state.messages)


def test_clearing_leaves_excluded_tools_and_arguments_of_other_tools() -> None:
    long = "x " * 300
    fixture = session(
        "Go.",
        ("", "read_file", {"path": "a"}, f"a {long}"),
        ("", "bash", {"command": "b"}, f"b {long}"),
        ("", "bash", {"command": "c"}, f"c {long}"),
        ("", "read_file", {"path": "d"}, f"d {long}"),
    )
    arguments = {"keep": 1, "exclude_tools": ["read_file"], "clear_tool_inputs": ["read_file"]}
    state, _ = compressed(fixture, "clear-tools", arguments)
    assert [text[0] for text in results(state)] == ["a", "[", "[", "d"]
    assert [list(arguments.values()) for _, arguments in calls(state)] == [
        ["a"],
        ["b"],
        ["c"],
        ["d"],
    ]


def test_clearing_less_than_asked_for_clears_nothing(fixture: Fixture) -> None:
    state, _ = compressed(fixture, "clear-tools", {"clear_at_least": 300})
    assert state.status == "ok"
    state, _ = compressed(fixture, "clear-tools", {"clear_at_least": 5_000})
    assert state.status == "not_applied"
    assert "5000" in state.failure
