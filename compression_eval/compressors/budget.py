"""How the tokens of a state are divided, and a state that comes out at a wanted size.

Arms can only be compared at equal retained tokens if they retain equally many. With a target, the
summary gets its part of it, what it leaves free goes to the tail, and the tail is filled to within
a message. The rule is written out in the documentation of the strategies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.model import ChatMessage, ChatMessageUser

from compression_eval.compressors.arguments import SummaryArguments, WindowArguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.summarising import Span, carrier, find_span
from compression_eval.compressors.tokens import TokenCounter
from compression_eval.compressors.window import Window, filled_tail, split

_SLACK = 0.05
"""Share of a target that may stay unused rather than be filled with a part of a message."""

_LEAST_SUMMARY = 100
"""Tokens below which a summary is not worth asking for; empty headings alone take 60."""


@dataclass(frozen=True)
class SummaryPlan:
    """What is summarised, how long the summary may be, and what goes around it."""

    span: Span
    summary_tokens: int
    """Budget of the summary's text, without the message that it stands in."""
    target_tokens: int | None
    keep_tail: bool
    counter: TokenCounter

    def state(self, message: ChatMessage) -> list[ChatMessage]:
        """Return the state around the message that carries the summary.

        With a target, room that the summary left free is filled from the end of what was
        summarised, so that part stands in the state twice: in the summary and word for word.

        Raises:
            CompressionError: The summary alone is over the target.
        """
        span = self.span
        if self.target_tokens is None:
            return [*span.head, message, *span.tail]
        room = self.target_tokens - self.counter.messages([*span.head, message])
        if room < 0:
            raise CompressionError(
                "error", f"the summary is over target_tokens ({self.target_tokens}) by {-room}"
            )
        if not self.keep_tail:
            return [*span.head, message]
        rest = [*span.dropped, *span.tail]
        tail = filled_tail(rest, room, int(_SLACK * self.target_tokens), self.counter)
        return [*span.head, message, *tail]


def plan_summary(
    messages: Sequence[ChatMessage],
    carrier_key: str,
    arguments: SummaryArguments,
    counter: TokenCounter,
) -> SummaryPlan:
    """Divide the budget of a summarising strategy and find what it is to summarise.

    Without a target, head, summary and tail have the budgets that the arguments give. With one,
    what it leaves after the head and the frame of the summary's message is divided between
    summary and tail in the proportion of ``summary_tokens`` to ``tail_tokens``.

    Args:
        messages: The conversation, perhaps with a message from an earlier compression.
        carrier_key: Metadata key that marks such a message.
        arguments: The budgets.
        counter: Counts the tokens.

    Raises:
        CompressionError: There is nothing to summarise, or the target leaves no room for it.
    """
    target = arguments.target_tokens
    if target is None:
        span = find_span(
            messages, carrier_key, arguments.head_tokens, arguments.tail_tokens, counter
        )
        return SummaryPlan(span, arguments.summary_tokens, None, True, counter)
    parts = arguments.summary_tokens + arguments.tail_tokens
    frame = counter.message(carrier("", {}))
    room = _room(messages, arguments, target, counter, least=frame + _LEAST_SUMMARY) - frame
    summary = max(_LEAST_SUMMARY, room * arguments.summary_tokens // parts)
    span = find_span(
        messages, carrier_key, arguments.head_tokens, room - summary, counter, keep_last=False
    )
    return SummaryPlan(span, summary, target, arguments.tail_tokens > 0, counter)


def plan_window(
    messages: Sequence[ChatMessage],
    arguments: WindowArguments,
    mark: ChatMessageUser,
    counter: TokenCounter,
) -> Window:
    """Split a conversation for a strategy that keeps head and tail and writes nothing.

    Args:
        messages: The conversation.
        arguments: The budgets. With a target, the tail gets what head and mark leave of it.
        mark: What will stand between the two.
        counter: Counts the tokens.

    Raises:
        CompressionError: The target leaves no room, or the conversation is not larger than it.
    """
    target = arguments.target_tokens
    if target is None:
        return split(messages, arguments.head_tokens, arguments.tail_tokens, counter)
    frame = counter.message(mark)
    room = _room(messages, arguments, target, counter, least=frame) - frame
    window = split(messages, arguments.head_tokens, 0, counter)
    tail = filled_tail(window.span, room, int(_SLACK * target), counter)
    return Window(window.head, window.span[: len(window.span) - len(tail)], tail)


def _room(
    messages: Sequence[ChatMessage],
    arguments: WindowArguments,
    target: int,
    counter: TokenCounter,
    *,
    least: int,
) -> int:
    """Return what the head leaves of a target."""
    if counter.messages(messages) <= target:
        raise CompressionError(
            "not_applied", f"the conversation is not larger than target_tokens ({target})"
        )
    head = counter.messages(split(messages, arguments.head_tokens, 0, counter).head)
    if target - head < least:
        raise CompressionError(
            "error",
            f"target_tokens ({target}) is too small: system prompt and head take {head}, "
            f"and {least} more are needed",
        )
    return target - head
