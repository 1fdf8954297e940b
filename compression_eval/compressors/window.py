"""Which messages a strategy keeps verbatim, by budgets in tokens, without breaking tool calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from inspect_ai.model import ChatMessage

from compression_eval.compressors.clipping import clipped_group
from compression_eval.compressors.tokens import TokenCounter

_Message = TypeVar("_Message")


@dataclass(frozen=True)
class Window:
    """A conversation in three parts that together hold every message once, in order."""

    head: list[ChatMessage]
    """System messages at the start, then as much as the head budget holds."""
    span: list[ChatMessage]
    """What is to be replaced."""
    tail: list[ChatMessage]
    """The most recent messages, as much as the tail budget holds."""


def groups(messages: Sequence[_Message]) -> list[list[_Message]]:
    """Split messages into pieces that must stay together: a call with its results, or one message.

    A result that follows no call opens a group of its own.

    Args:
        messages: Inspect's, or mappings in the OpenAI chat form.
    """
    result: list[list[_Message]] = []
    open_calls: set[str] = set()
    for message in messages:
        if _field(message, "role") == "tool" and _field(message, "tool_call_id") in open_calls:
            result[-1].append(message)
            continue
        result.append([message])
        open_calls = {_field(call, "id") for call in _field(message, "tool_calls") or ()}
    return result


def safe_head(messages: Sequence[_Message], count: int) -> list[_Message]:
    """Return the first messages, a few more where a call would be parted from its results.

    Args:
        messages: Inspect's, or mappings in the OpenAI chat form.
        count: At least so many, if there are as many.
    """
    kept: list[_Message] = []
    for group in groups(messages):
        if len(kept) >= count:
            break
        kept.extend(group)
    return kept


def safe_tail(messages: Sequence[_Message], count: int) -> list[_Message]:
    """Return the last messages, a few more where a result would be parted from its call.

    Args:
        messages: Inspect's, or mappings in the OpenAI chat form.
        count: At least so many, if there are as many.
    """
    kept: list[_Message] = []
    for group in reversed(groups(messages)):
        if len(kept) >= count:
            break
        kept = [*group, *kept]
    return kept


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def split(
    messages: Sequence[ChatMessage],
    head_tokens: int,
    tail_tokens: int,
    counter: TokenCounter,
    *,
    keep_last: bool = True,
) -> Window:
    """Split a conversation into head, span and tail.

    Args:
        messages: The conversation.
        head_tokens: Tokens kept after the leading system messages, which are always kept.
        tail_tokens: Tokens kept at the end. With a budget above zero the last group is kept even
            if it alone is larger, since nothing can go on from a state without its last turn.
        counter: Counts the tokens.
        keep_last: Whether that exception for the last group is made.

    Returns:
        The three parts. The head is filled first; a short conversation may leave no span.
    """
    pieces = groups(messages)
    start = 0
    while start < len(pieces) and pieces[start][0].role == "system":
        start += 1
    spent = 0
    while start < len(pieces):
        spent += counter.messages(pieces[start])
        if spent > head_tokens:
            break
        start += 1
    end = len(pieces)
    spent = 0
    while end > start and tail_tokens > 0:
        spent += counter.messages(pieces[end - 1])
        if spent > tail_tokens and not (keep_last and end == len(pieces)):
            break
        end -= 1
    return Window(
        head=[message for piece in pieces[:start] for message in piece],
        span=[message for piece in pieces[start:end] for message in piece],
        tail=[message for piece in pieces[end:] for message in piece],
    )


def filled_tail(
    messages: Sequence[ChatMessage], tokens: int, slack: int, counter: TokenCounter
) -> list[ChatMessage]:
    """Return the end of a conversation, cut within a message where whole ones leave too much room.

    Args:
        messages: What may be kept.
        tokens: Room in tokens; never exceeded.
        slack: Room that may stay empty. What is larger is filled with the beginning of the group
            that did not fit.
        counter: Counts the tokens.
    """
    kept: list[ChatMessage] = []
    for group in reversed(groups(messages)):
        size = counter.messages(group)
        if size <= tokens:
            kept = [*group, *kept]
            tokens -= size
            continue
        if tokens > slack:
            kept = [*(clipped_group(group, tokens, counter) or []), *kept]
        break
    return kept
