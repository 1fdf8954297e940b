"""Which messages stay word for word, by budgets in tokens, and texts cut to fit a budget.

A call and its results are never parted. Arms can only be compared at equal retained tokens if they
retain equally many: with a target, the summary gets its part of it, what it leaves free goes to the
tail, and the tail is filled to within a message. The rule is written out in the documentation of
the strategies.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, ContentText

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled, prompt
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.message_text import message_text

DEFAULT_TAIL_TOKENS = 2_000
"""Tokens that our own strategies keep verbatim at the end, if nothing else is said."""

WINDOW_BUDGETS = ("head_tokens", "tail_tokens", "target_tokens")
"""Arguments of the strategies that keep a head and a tail, as a control for them takes them."""

CUT_KEY = "compression_eval_cut"
"""Metadata key of a message that was kept, but not to its end."""

_SLACK = 0.05
"""Share of a target that may stay unused rather than be filled with a part of a message."""

_MIN_SUMMARY = 100
"""Tokens below which a summary is not worth asking for; empty headings alone take 60."""

_MIN_CHARACTERS = 10
"""Of a text that is cut; less says nothing."""

_HEADINGS = re.compile(r"^(?=#{1,6} )", re.MULTILINE)

_Message = TypeVar("_Message")
_T = TypeVar("_T")


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


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


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


@dataclass(frozen=True)
class Window:
    """A conversation in three parts that together hold every message once, in order."""

    head: list[ChatMessage]
    """System messages at the start, then as much as the head budget holds."""
    span: list[ChatMessage]
    """What is to be replaced."""
    tail: list[ChatMessage]
    """The most recent messages, as much as the tail budget holds."""


def split(
    messages: Sequence[ChatMessage], head_tokens: int, tail_tokens: int, *, keep_last: bool = True
) -> Window:
    """Split a conversation into head, span and tail.

    Args:
        messages: The conversation.
        head_tokens: Tokens kept after the leading system messages, which are always kept.
        tail_tokens: Tokens kept at the end. With a budget above zero the last group is kept even
            if it alone is larger, since nothing can go on from a state without its last turn.
        keep_last: Whether that exception for the last group is made.

    Returns:
        The three parts. The head is filled first; a short conversation may leave no span.
    """
    counter = token_counter()
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


def plan_window(
    messages: Sequence[ChatMessage],
    mark: ChatMessageUser,
    *,
    head_tokens: int = 0,
    tail_tokens: int = DEFAULT_TAIL_TOKENS,
    target_tokens: int | None = None,
) -> Window:
    """Split a conversation for a strategy that keeps head and tail and writes nothing.

    Args:
        messages: The conversation.
        mark: What will stand between the two.
        head_tokens: Budget of the head.
        tail_tokens: Budget of the tail.
        target_tokens: Wanted size of the state; the tail gets what head and mark leave of it.

    Raises:
        CompressionError: The target leaves no room, or the conversation is not larger than it.
    """
    if target_tokens is None:
        return split(messages, head_tokens, tail_tokens)
    frame = token_counter().message(mark)
    room = _room(messages, head_tokens, target_tokens, least=frame) - frame
    window = split(messages, head_tokens, 0)
    tail = _filled_tail(window.span, room, int(_SLACK * target_tokens))
    return Window(window.head, window.span[: len(window.span) - len(tail)], tail)


@dataclass(frozen=True)
class SummaryPlan:
    """What is summarised, how long the summary may be, and what goes around it."""

    window: Window
    """Its span is what is to be summarised, without an earlier summary."""
    previous: ChatMessageUser | None
    """The message that carries the earlier summary."""
    summary_tokens: int
    """Budget of the summary's text, without the message that it stands in."""
    target_tokens: int | None = None
    keep_tail: bool = True

    def state(self, message: ChatMessage) -> list[ChatMessage]:
        """Return the state around the message that carries the summary.

        With a target, room that the summary left free is filled from the end of what was
        summarised, so that part stands in the state twice: in the summary and word for word.

        Raises:
            CompressionError: The summary alone is over the target.
        """
        start = [*self.window.head, message]
        if self.target_tokens is None:
            return [*start, *self.window.tail]
        room = self.target_tokens - token_counter().messages(start)
        if room < 0:
            raise CompressionError(
                "error", f"the summary is over target_tokens ({self.target_tokens}) by {-room}"
            )
        if not self.keep_tail:
            return start
        rest = [*self.window.span, *self.window.tail]
        return [*start, *_filled_tail(rest, room, int(_SLACK * self.target_tokens))]


def plan_summary(
    messages: Sequence[ChatMessage],
    carrier_key: str,
    frame: int,
    *,
    head_tokens: int,
    tail_tokens: int,
    summary_tokens: int,
    target_tokens: int | None,
) -> SummaryPlan:
    """Divide the budget of a summarising strategy and find what it is to summarise.

    Without a target, head, summary and tail have their own budgets. With one, what it leaves after
    the head and the frame of the summary's message is divided between summary and tail in the
    proportion of ``summary_tokens`` to ``tail_tokens``.

    Args:
        messages: The conversation, perhaps with a message from an earlier compression.
        carrier_key: Metadata key that marks such a message.
        frame: Tokens of such a message without its summary.
        head_tokens: Budget of the head.
        tail_tokens: Budget of the tail, or its part.
        summary_tokens: Budget of the summary, or its part.
        target_tokens: Wanted size of the state.

    Raises:
        CompressionError: There is nothing to summarise, or the target leaves no room for it.
    """
    keep_tail = tail_tokens > 0
    if target_tokens is not None:
        least = frame + _MIN_SUMMARY
        room = _room(messages, head_tokens, target_tokens, least=least) - frame
        share = room * summary_tokens // (summary_tokens + tail_tokens)
        summary_tokens = max(_MIN_SUMMARY, share)
        tail_tokens = room - summary_tokens
    carriers = [m for m in messages if carrier_key in (m.metadata or {})]
    previous = carriers[-1] if carriers else None
    window = split(
        [message for message in messages if message not in carriers],
        head_tokens,
        tail_tokens,
        keep_last=target_tokens is None,
    )
    if not window.span:
        raise CompressionError(
            "not_applied",
            f"nothing to summarise: the conversation fits the head and tail budgets "
            f"({head_tokens} and {tail_tokens} tokens)",
        )
    if not isinstance(previous, ChatMessageUser):
        previous = None
    return SummaryPlan(window, previous, summary_tokens, target_tokens, keep_tail)


def _room(messages: Sequence[ChatMessage], head_tokens: int, target: int, *, least: int) -> int:
    """Return what the head leaves of a target."""
    counter = token_counter()
    if counter.messages(messages) <= target:
        raise CompressionError(
            "not_applied", f"the conversation is not larger than target_tokens ({target})"
        )
    head = counter.messages(split(messages, head_tokens, 0).head)
    if target - head < least:
        raise CompressionError(
            "error",
            f"target_tokens ({target}) is too small: system prompt and head take {head}, "
            f"and {least} more are needed",
        )
    return target - head


def _filled_tail(messages: Sequence[ChatMessage], tokens: int, slack: int) -> list[ChatMessage]:
    """Return the end of a conversation, cut within a message where whole ones leave too much room.

    Args:
        messages: What may be kept.
        tokens: Room in tokens; never exceeded.
        slack: Room that may stay empty. What is larger is filled with the beginning of the group
            that did not fit.
    """
    kept: list[ChatMessage] = []
    for group in reversed(groups(messages)):
        size = token_counter().messages(group)
        if size <= tokens:
            kept = [*group, *kept]
            tokens -= size
            continue
        if tokens > slack:
            kept = [*(_clipped_group(group, tokens) or []), *kept]
        break
    return kept


def fitted(
    text: str, tokens: int, count: Callable[[str], int], keep: Literal["start", "ends"]
) -> str:
    """Return a text that takes no more than so many tokens, with a mark where something is missing.

    Args:
        text: The text.
        tokens: The most it may take.
        count: Counts the tokens of a text.
        keep: ``start`` cuts off the end, ``ends`` takes out the middle.

    Returns:
        The text itself if it fits; empty if not even the mark would.
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
    """Return a Markdown text with its longest sections cut until it fits a budget.

    Args:
        text: Sections begin at headings.
        budget: Tokens it may take.

    Returns:
        The text as it is if it fits; None if the budget is too small for anything worth keeping.
    """
    count = token_counter().count
    if count(text) <= budget:
        return text
    sections = [part.strip() for part in _HEADINGS.split(text) if part.strip()]

    def fitting(characters: int) -> str | None:
        joined = "\n\n".join(_clipped(section, characters) for section in sections)
        return joined if count(joined) <= budget else None

    return _largest(fitting, most=max(map(len, sections), default=0))


def _clipped_group(group: Sequence[ChatMessage], budget: int) -> list[ChatMessage] | None:
    """Return the messages of a group with their longest texts cut until they fit a budget.

    Texts are what the messages say and the string values in the arguments of tool calls. The
    beginnings are kept. A message that was cut is marked in its metadata and keeps its id.
    None if the budget is too small for anything worth keeping.
    """

    def fitting(characters: int) -> list[ChatMessage] | None:
        messages = [_clipped_message(message, characters) for message in group]
        return messages if token_counter().messages(messages) <= budget else None

    return _largest(fitting, most=sum(len(message_text(message)) for message in group))


def _largest(fitting: Callable[[int], _T | None], *, most: int) -> _T | None:
    """Return what the greatest number of characters up to ``most`` gives that fits."""
    best = fitting(_MIN_CHARACTERS)
    if best is None:
        return None
    low, high = _MIN_CHARACTERS, max(most, _MIN_CHARACTERS)
    while low < high:
        middle = (low + high + 1) // 2
        found = fitting(middle)
        if found is None:
            high = middle - 1
        else:
            best, low = found, middle
    return best


def _clipped(text: str, characters: int) -> str:
    mark = f"\n{prompt('cut')}"
    if len(text) <= characters + len(mark):
        return text
    return text[:characters].rstrip() + mark


def _clipped_message(message: ChatMessage, characters: int) -> ChatMessage:
    content = message.content
    update: dict[str, Any] = {}
    if isinstance(content, str):
        update["content"] = _clipped(content, characters)
    else:
        update["content"] = [
            part.model_copy(update={"text": _clipped(part.text, characters)})
            if isinstance(part, ContentText)
            else part
            for part in content
        ]
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        update["tool_calls"] = [
            dataclasses.replace(call, arguments=_clipped_values(call.arguments, characters))
            for call in message.tool_calls
        ]
    if all(getattr(message, name) == value for name, value in update.items()):
        return message
    update["metadata"] = {**(message.metadata or {}), CUT_KEY: True}
    return message.model_copy(update=update)


def _clipped_values(value: Any, characters: int) -> Any:
    if isinstance(value, str):
        return _clipped(value, characters)
    if isinstance(value, Mapping):
        return {name: _clipped_values(item, characters) for name, item in value.items()}
    if isinstance(value, list):
        return [_clipped_values(item, characters) for item in value]
    return value
