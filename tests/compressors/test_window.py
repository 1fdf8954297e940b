"""Head and tail by budgets in tokens, tool calls whole."""

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
)
from inspect_ai.tool import ToolCall

from compression_eval.compressors.budget import split
from compression_eval.compressors.validity import structural_problem

# Ten tokens a message, four of them the frame that the counter adds; a call has three more.
SIX = "one two three four five six"


def call(identifier: str) -> ChatMessageAssistant:
    return ChatMessageAssistant(
        content=SIX, tool_calls=[ToolCall(id=identifier, function="f", arguments={})]
    )


def result(identifier: str) -> ChatMessageTool:
    return ChatMessageTool(content=SIX, tool_call_id=identifier)


def talk() -> list[ChatMessage]:
    return [
        ChatMessageSystem(content=SIX),
        ChatMessageUser(content=SIX),
        call("a"),
        result("a"),
        ChatMessageUser(content=SIX),
        call("b"),
        result("b"),
        ChatMessageAssistant(content=SIX),
        ChatMessageUser(content=SIX),
    ]


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        (0, 0, (1, 8, 0)),
        (10, 0, (2, 7, 0)),
        (9, 0, (1, 8, 0)),
        (32, 0, (2, 7, 0)),
        (33, 0, (4, 5, 0)),
        (0, 10, (1, 7, 1)),
        (0, 1, (1, 7, 1)),
        (0, 20, (1, 6, 2)),
        (0, 42, (1, 6, 2)),
        (0, 43, (1, 4, 4)),
        (10_000, 10_000, (9, 0, 0)),
        (10, 10_000, (2, 0, 7)),
    ],
)
def test_split(head: int, tail: int, expected: tuple[int, int, int]) -> None:
    messages = talk()
    window = split(messages, head, tail)
    assert (len(window.head), len(window.span), len(window.tail)) == expected
    assert [*window.head, *window.span, *window.tail] == messages


def test_the_last_turn_is_kept_though_larger_than_the_budget() -> None:
    messages = [*talk()[:-2]]
    window = split(messages, 0, 5)
    assert [message.role for message in window.tail] == ["assistant", "tool"]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (talk(), None),
        (talk()[:1], None),
        ([*talk()[:2], *talk()[3:]], "tool result without its call"),
        ([*talk()[:3], *talk()[4:]], "tool call without its result"),
        ([talk()[0], *talk()[2:]], "not the user"),
        ([*talk(), ChatMessageUser(content="  ")], "empty user message"),
        ([*talk(), ChatMessageSystem(content="late")], "system message stands in the middle"),
        ([*talk(), call("c"), result("d")], "tool"),
    ],
)
def test_structural_problem(messages: list[ChatMessage], problem: str | None) -> None:
    found = structural_problem(messages)
    assert (found is None) if problem is None else (found is not None and problem in found)
