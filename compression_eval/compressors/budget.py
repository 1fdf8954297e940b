"""Select the messages kept verbatim, by budgets in tokens, and cut texts to fit a budget.

A call and its results are never separated. Arms are only comparable at equal retained tokens: with
a target, the summary gets its part, the tail gets what the summary leaves, and the tail is filled
up to a part of a message. The documentation of the strategies states the rule.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any, Literal, TypeVar

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ContentText

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled, prompt
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.conversation import message_text

WINDOW_BUDGETS = ("head_tokens", "tail_tokens", "target_tokens")
"""Arguments of strategies that keep a head and a tail, which their control takes too."""


@dataclass(frozen=True)
class Knob:
    """The argument that sets the size of a strategy's states; a larger one gives larger states."""

    argument: str
    lowest: Callable[[Mapping[str, Any]], int] = lambda _: 1
    """Returns the smallest valid number, given the other arguments."""
    value: Callable[[int], Any] = lambda number: number
    """Returns the argument for a number."""
    highest: int | None = None
    """The largest number; the tokens of the longest history if None."""


KNOBS = {
    "pi": Knob("keep_recent_tokens"),
    "openhands": Knob("max_size", lowest=lambda given: 2 * (given.get("keep_first", 2) + 2)),
    "codex": Knob("user_tokens", lowest=lambda _: 0),
    "claude-code": Knob("files_tokens"),
    "langchain": Knob("keep", value=lambda number: ["tokens", number]),
    "masking": Knob("keep", lowest=lambda _: 0),
    "clear-tools": Knob("keep", lowest=lambda _: 0),
    "edit": Knob("keep_tool_uses", lowest=lambda _: 0),
    "trim": Knob("preserve", lowest=lambda _: 0, value=lambda number: number / 100, highest=100),
}
"""The knobs of strategies that take no ``target_tokens``, by which sweeps fit their states."""

CUT_KEY = "compression_eval_cut"
"""Metadata key of a message that was kept in part."""

_SLACK = 0.05
"""Share of a target that may stay unused before a part of a message fills it."""

_MIN_CHARACTERS = 10
"""Minimum characters of a cut text; fewer carry no information."""

_HEADINGS = re.compile(r"^(?=#{1,6} )", re.MULTILINE)

_Message = TypeVar("_Message")
_T = TypeVar("_T")


def groups(messages: Sequence[_Message]) -> list[list[_Message]]:
    """Group messages that must stay together: a call with its results, or one message.

    A result that follows no call opens a group of its own.

    Args:
        messages: Inspect's, or mappings in the OpenAI chat form.
    """

    def field(value: object, name: str) -> Any:
        return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)

    result: list[list[_Message]] = []
    open_calls: set[str] = set()
    for message in messages:
        if field(message, "role") == "tool" and field(message, "tool_call_id") in open_calls:
            result[-1].append(message)
            continue
        result.append([message])
        open_calls = {field(call, "id") for call in field(message, "tool_calls") or ()}
    return result


def joined(pieces: Sequence[Sequence[_Message]]) -> list[_Message]:
    """Return the messages of groups as one list."""
    return list(chain.from_iterable(pieces))


def safe_head(messages: Sequence[_Message], count: int) -> list[_Message]:
    """Return the first messages, and more where a call would be separated from its results.

    Args:
        messages: Inspect's, or mappings in the OpenAI chat form.
        count: Minimum number of messages, if there are as many.
    """
    ends = accumulate((len(group) for group in groups(messages)), initial=0)
    return list(messages[: next((end for end in ends if end >= count), len(messages))])


def safe_tail(messages: Sequence[_Message], count: int) -> list[_Message]:
    """Return the last messages, and more where a result would be separated from its call.

    Args:
        messages: Inspect's, or mappings in the OpenAI chat form.
        count: Minimum number of messages, if there are as many.
    """
    sizes = accumulate((len(group) for group in reversed(groups(messages))), initial=0)
    kept = next((size for size in sizes if size >= count), len(messages))
    return list(messages[len(messages) - kept :])


def split_system(messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """Return the system prompt, which is the leading system messages, and all other messages."""
    start = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    return list(messages[:start]), list(messages[start:])


@dataclass(frozen=True)
class Window:
    """A conversation in three parts that together contain every message once, in order."""

    head: list[ChatMessage]
    """System messages at the start, then as much as fits into the head budget."""
    span: list[ChatMessage]
    """The messages to replace."""
    tail: list[ChatMessage]
    """The most recent messages, as much as fits into the tail budget."""


def split(
    messages: Sequence[ChatMessage], head_tokens: int, tail_tokens: int, *, keep_last: bool = True
) -> Window:
    """Split a conversation into head, span and tail; a short one may leave no span.

    The head is filled first, after the leading system messages, which are always kept. With a tail
    budget above zero the last group is kept even if it alone is larger (``keep_last``), since
    nothing can continue from a state without its last turn.
    """
    system, rest = split_system(messages)
    pieces = groups(rest)
    sizes = [token_counter().messages(piece) for piece in pieces]
    start = sum(spent <= head_tokens for spent in accumulate(sizes))
    kept = sum(spent <= tail_tokens for spent in accumulate(reversed(sizes[start:])))
    if keep_last and tail_tokens > 0 and start < len(pieces):
        kept = max(kept, 1)
    end = len(pieces) - kept
    return Window(
        head=[*system, *joined(pieces[:start])],
        span=joined(pieces[start:end]),
        tail=joined(pieces[end:]),
    )


def room_in_target(
    messages: Sequence[ChatMessage], target: int, head_tokens: int, frame: int, least: int = 0
) -> int:
    """Return the tokens that the head, and the frame of a summary's message, leave of a target.

    Raises:
        CompressionError: The conversation is not larger than the target, or too little is left.
    """
    counter = token_counter()
    if counter.messages(messages) <= target:
        raise CompressionError(
            "not_applied", f"the conversation is not larger than target_tokens ({target})"
        )
    head = counter.messages(split(messages, head_tokens, 0).head)
    room = target - head - frame
    if room < least:
        raise CompressionError(
            "error",
            f"target_tokens ({target}) is too small: it limits the whole state, of which system "
            f"prompt and head take {head}, and {frame + least} more are needed",
        )
    return room


def filled_tail(messages: Sequence[ChatMessage], room: int, target: int) -> list[ChatMessage]:
    """Return the end of a conversation that fits into a room, which is never exceeded.

    If more than a small share of the whole state's target would stay empty, it is filled with the
    beginning of the group that did not fit.
    """
    kept: list[ChatMessage] = []
    for group in reversed(groups(messages)):
        size = token_counter().messages(group)
        if size > room:
            if room > int(_SLACK * target):
                kept[:0] = _clipped_group(group, room) or []
            break
        kept[:0] = group
        room -= size
    return kept


def fitted(
    text: str, tokens: int, count: Callable[[str], int], keep: Literal["start", "ends"]
) -> str:
    """Return a text cut to a number of tokens, with a mark where something is missing.

    ``start`` cuts off the end, ``ends`` takes out the middle. Empty if not even the mark fits.
    """
    have = count(text)
    if have <= tokens:
        return text
    kept = int(len(text) * tokens / have)
    while kept > 0:
        mark = filled("left_out", count=len(text) - kept)
        half = (kept + 1) // 2 if keep == "ends" else kept
        result = f"{text[:half]}\n{mark}"
        if keep == "ends":
            result += f"\n{text[len(text) - (kept - half) :]}"
        if count(result) <= tokens:
            return result
        kept = int(kept * 0.9)
    return ""


def clipped_sections(text: str, budget: int) -> str | None:
    """Cut the longest sections of a Markdown text until it fits a budget in tokens.

    None if the budget is too small for anything useful.
    """
    count = token_counter().count
    if count(text) <= budget:
        return text
    sections = [part.strip() for part in _HEADINGS.split(text) if part.strip()]

    def fitting(characters: int) -> str | None:
        whole = "\n\n".join(_clipped(section, characters) for section in sections)
        return whole if count(whole) <= budget else None

    return _largest(fitting, max(map(len, sections), default=0))


def _clipped_group(group: Sequence[ChatMessage], budget: int) -> list[ChatMessage] | None:
    """Cut the longest texts of a group's messages until they fit a budget.

    Texts are the messages' contents and the string values of tool call arguments; their beginnings
    are kept. None if the budget is too small for anything useful.
    """

    def fitting(characters: int) -> list[ChatMessage] | None:
        messages = [_clipped_message(message, characters) for message in group]
        return messages if token_counter().messages(messages) <= budget else None

    return _largest(fitting, sum(len(message_text(message)) for message in group))


def _largest(fitting: Callable[[int], _T | None], most: int) -> _T | None:
    """Return the result of ``fitting`` for the most characters, up to ``most``, that fit."""
    best = fitting(_MIN_CHARACTERS)
    low, high = _MIN_CHARACTERS, most
    while best is not None and low < high:
        middle = (low + high + 1) // 2
        result = fitting(middle)
        if result is None:
            high = middle - 1
        else:
            best, low = result, middle
    return best


def _clipped(text: str, characters: int) -> str:
    mark = f"\n{prompt('cut')}"
    if len(text) <= characters + len(mark):
        return text
    return text[:characters].rstrip() + mark


def _clipped_message(message: ChatMessage, characters: int) -> ChatMessage:
    """Return a message with its texts cut, its id kept and a mark set; the same one if none is."""

    def clipped(value: Any) -> Any:
        if isinstance(value, str):
            return _clipped(value, characters)
        if isinstance(value, ContentText):
            return value.model_copy(update={"text": clipped(value.text)})
        if isinstance(value, Mapping):
            return {name: clipped(item) for name, item in value.items()}
        return [clipped(item) for item in value] if isinstance(value, list) else value

    update = {"content": clipped(message.content)}
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        update["tool_calls"] = [
            replace(call, arguments=clipped(call.arguments)) for call in message.tool_calls
        ]
    if all(getattr(message, name) == value for name, value in update.items()):
        return message
    update["metadata"] = {**(message.metadata or {}), CUT_KEY: True}
    return message.model_copy(update=update)
