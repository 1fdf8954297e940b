"""Controls: compressions with a known meaning, against which the others are read."""

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import NonNegativeInt, PositiveInt, validate_call

from compression_eval.compressors.budget import (
    DEFAULT_TAIL_TOKENS,
    filled_tail,
    room_in_target,
    split,
)
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.tokens import token_counter


class FullContext(CompactionStrategy):
    """Keep everything: the ceiling. An agent that has to shrink its context cannot use it."""

    def __init__(self) -> None:
        super().__init__(type="trim", memory=False)

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages as they are."""
        return list(messages), None


class NoContext(CompactionStrategy):
    """Keep the system prompt only: what can be guessed.

    Args:
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="trim", threshold=threshold, memory=False)

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the system messages."""
        return [message for message in messages if message.role == "system"], None


class TailOnly(CompactionStrategy):
    """Keep the head and tail that a summarising arm keeps, and nothing in between.

    Args:
        head_tokens: Tokens kept at the start, beyond the system messages.
        tail_tokens: Tokens kept at the end; with a budget above 0 at least the last turn is kept.
        target_tokens: Wanted tokens of the whole state, system prompt included; it is filled as
            far as it goes. With it, ``tail_tokens`` (and ``summary_tokens``, where there is a
            summary) are no longer budgets: only their proportion counts, by which the target is
            divided. ``tail`` gives all of it to the tail.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    @validate_call
    def __init__(
        self,
        *,
        head_tokens: NonNegativeInt = 0,
        tail_tokens: NonNegativeInt = DEFAULT_TAIL_TOKENS,
        target_tokens: PositiveInt | None = None,
        threshold: int | float = 0.9,
    ) -> None:
        super().__init__(type="trim", threshold=threshold, memory=False)
        self.head_tokens = head_tokens
        self.tail_tokens = tail_tokens
        self.target_tokens = target_tokens

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head and tail, with a mark where the rest was.

        Raises:
            CompressionError: The target leaves no room, or the conversation is not larger.
        """
        mark = ChatMessageUser(content=prompt("carrier_empty"))
        target = self.target_tokens
        if target is None:
            window = split(messages, self.head_tokens, self.tail_tokens)
            head, tail = window.head, window.tail
        else:
            frame = token_counter().message(mark)
            room = room_in_target(messages, target, self.head_tokens, frame)
            window = split(messages, self.head_tokens, 0)
            head, tail = window.head, filled_tail(window.span, room, target)
        if [*head, *tail] == messages:
            return messages, None
        return [*head, mark, *tail], None
