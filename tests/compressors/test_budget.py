"""States of a wanted size: measured, on the shipped conversations."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import anyio
import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
)
from inspect_ai.tool import ToolCall

from compression_eval.compressors.anchored import SECTIONS
from compression_eval.compressors.budget import CUT_KEY
from compression_eval.compressors.registry import COMPRESSORS
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.compressors.validity import structural_problem
from compression_eval.fixtures.conversation import conversation, message_text
from compression_eval.fixtures.cuts import boundaries
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed
from tests.compressors.conftest import conversation_fixture

SHIPPED = ("pr-triage", "zh-log-rotation", "cron-config", "401-debug")
TARGETS = (1_000, 2_000, 4_000, 8_000, 16_000)
WITH_TARGET = [
    name for name, each in COMPRESSORS.items() if "target_tokens" in each.arguments.model_fields
]


def terse(_: list[Any]) -> str:
    """One line; as free text it is a summary too."""
    return json.dumps({"operations": [{"op": "add", "section": "intent", "text": "A goal."}]})


def talkative(messages: list[Any]) -> str:
    """Far more than any budget, in the form that is asked for."""
    if '"operations"' in messages[0].text:
        operations = [
            {"op": "add", "section": section, "text": f"{section} {number} " + "word " * number}
            for number in range(60)
            for section in SECTIONS
        ]
        return json.dumps({"operations": operations})
    return "\n\n".join(
        f"## {head}\n" + "\n".join(f"- line {number} on {head}" for number in range(1_500))
        for head in ("Analysis", "Files", "Pending tasks", "Current state")
    )


@cache
def shipped(name: str) -> tuple[Fixture, int]:
    """A conversation and its tokens."""
    fixture = load_fixture(shipped_fixtures()[name])
    return fixture, token_counter().messages(anyio.run(conversation, fixture))


def at_target(
    fixture: Fixture,
    name: str,
    reply: Callable[[list[Any]], str],
    cuts: tuple[int, ...] = (),
    **arguments: Any,
) -> tuple[State, list[list[Any]]]:
    return compressed(fixture, name, arguments, reply, cuts, min_removed=0)


@pytest.mark.parametrize("fixture", SHIPPED)
@pytest.mark.parametrize("reply", [terse, talkative])
@pytest.mark.parametrize("name", WITH_TARGET)
def test_the_state_comes_within_ten_percent_under_its_target(
    name: str, reply: Callable[[list[Any]], str], fixture: str
) -> None:
    """Half of the targets, in turn: of each fixture and reply some, of each pair each target."""
    conversation_, tokens = shipped(fixture)
    shares = {}
    turn = SHIPPED.index(fixture) + (reply is terse)
    for target in TARGETS[turn % 2 :: 2]:
        if target >= tokens:
            continue
        state, _ = at_target(conversation_, name, reply, target_tokens=target)
        assert state.failure == ""
        assert state.state_tokens == token_counter().messages(state.messages)
        assert structural_problem(state.messages) is None
        shares[target] = round(state.state_tokens / target, 3)
    assert shares
    assert all(0.9 <= share <= 1 for share in shares.values()), shares


@pytest.mark.parametrize("name", WITH_TARGET)
def test_later_cycles_keep_to_the_target_too(name: str) -> None:
    fixture, _ = shipped("401-debug")
    allowed = boundaries(fixture)
    cuts = (allowed[len(allowed) // 3], allowed[2 * len(allowed) // 3], allowed[-1])
    state, _ = at_target(fixture, name, talkative, cuts, target_tokens=4_000)
    assert state.failure == ""
    assert [0.9 <= cycle.tokens_after / 4_000 <= 1 for cycle in state.cycles] == [True] * 3
    ids = [message.id for message in state.messages]
    assert len(set(ids)) == len(ids)


def test_a_message_that_was_cut_counts_as_kept_and_says_so() -> None:
    fixture, _ = shipped("pr-triage")
    state, _ = at_target(fixture, "tail", terse, target_tokens=4_000)
    cut = [message for message in state.messages if CUT_KEY in (message.metadata or {})]
    assert cut
    assert all("[cut to fit the token budget]" in message_text(message) for message in cut)
    originals = {m.id: m for m in anyio.run(conversation, fixture)}
    for message in cut:
        if message.role == "tool":
            kept = message.text.removesuffix("\n[cut to fit the token budget]")
            assert originals[message.id].text.startswith(kept)
    places = dict(zip([m.id for m in state.messages], state.regions, strict=True))
    assert {places[message.id] for message in cut} == {"tail"}


def test_targets_that_cannot_be_met_cost_no_model_call() -> None:
    fixture = conversation_fixture()
    for name in WITH_TARGET:
        state, asked = at_target(fixture, name, terse, target_tokens=10_000)
        assert (state.status, asked) == ("not_applied", [])
        state, asked = at_target(fixture, name, terse, target_tokens=10)
        assert (state.status, asked) == ("error", [])
        assert "target_tokens (10) is too small" in state.failure


CALL = ChatMessageAssistant(
    content="Look.", tool_calls=[ToolCall(id="a", function="f", arguments={})]
)
RESULT = ChatMessageTool(content="Found.", tool_call_id="a")
OTHER = ChatMessageTool(content="Found.", tool_call_id="b")
SYSTEM, USER = ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Go on.")


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([SYSTEM, USER, CALL, RESULT, USER], None),
        ([SYSTEM, USER, RESULT, USER], "tool result without its call"),
        ([SYSTEM, USER, CALL, USER], "tool call without its result"),
        ([SYSTEM, CALL, RESULT, USER], "not the user"),
        ([SYSTEM, USER, ChatMessageUser(content="  ")], "empty user message"),
        ([SYSTEM, USER, SYSTEM], "system message is in the middle"),
        ([SYSTEM, USER, CALL, OTHER], "tool"),
    ],
)
def test_structural_problem(messages: list[ChatMessage], problem: str | None) -> None:
    found = structural_problem(messages)
    assert (found is None) if problem is None else (found is not None and problem in found)
