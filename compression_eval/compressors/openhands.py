"""The summarising condenser of OpenHands: first events kept, a middle range forgotten.

Source: ``LLMSummarizingCondenser`` of the public ``software-agent-sdk``. The package itself cannot
be used here: it needs Python 3.12 and brings an ``openai`` older than the one that Inspect needs.
The prompt is written anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field, model_validator

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.fitting import fitted
from compression_eval.compressors.products import (
    ProductArguments,
    asked_about,
    filled,
    nothing_to_do,
)
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.summarising import completion
from compression_eval.compressors.window import groups

_KEY = "compression_eval_openhands"
_RESET_ATTEMPTS = 5
_RESET_SCALE = 0.8


class OpenHandsArguments(ProductArguments):
    """The condenser's settings, with its defaults."""

    max_size: int = Field(default=240, gt=0)
    """Events from which the condenser would fire by itself; half of it is its target then."""
    keep_first: int = Field(default=2, ge=0)
    """Events kept at the start; the system prompt is one."""
    minimum_progress: float = Field(default=0.1, gt=0, lt=1)
    """Share of the events that must go, or everything is summarised instead."""

    @model_validator(mode="after")
    def _leaves_a_tail(self) -> Self:
        if self.max_size // 2 - self.keep_first - 1 <= 0:
            raise ValueError("keep_first must be less than half of max_size, less one")
        return self


@dataclass(frozen=True)
class Forgetting:
    """Where the range that is forgotten begins and ends, in groups of messages."""

    start: int
    end: int
    events: int
    """Events in the range."""


class OpenHands(CompactionStrategy):
    """Replace a range of events after the first ones by a summary.

    A forced compression is what the condenser calls a request: about half of the events are kept.

    Args:
        arguments: Sizes, prompt and focus.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: OpenHandsArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one model call.

        If the range would be too small, everything is summarised; that call alone is repeated, with
        ever shorter messages, if it fails.

        Args:
            model: Writes the summary.
            messages: The conversation, perhaps with the summary of an earlier compression.
            tools: Not used.

        Returns:
            First events, summary, last events; and the message with the summary.

        Raises:
            CompressionError: There are fewer events than are kept, or no usable reply.
        """
        arguments = self.arguments
        pieces = groups(messages)
        total = sum(_events(piece) for piece in pieces)
        if total <= arguments.keep_first + 1:
            raise nothing_to_do(f"{total} events, of which {arguments.keep_first} are kept first")
        forgotten = forget(pieces, arguments)
        if forgotten.events >= max(arguments.minimum_progress * total, 1):
            head, tail = pieces[: forgotten.start], pieces[forgotten.end :]
            span = _joined(pieces[forgotten.start : forgotten.end])
            text = await self._summary(model, span)
        else:
            head, tail = [], []
            text = await self._reset(model, messages)
        message = ChatMessageUser(
            content=filled("openhands_carrier", summary=text), metadata={_KEY: text}
        )
        return [*_joined(head), message, *_joined(tail)], message

    async def _summary(self, model: Model, messages: Sequence[ChatMessage]) -> str:
        """Return the summary of some messages; an earlier one among them is given as such."""
        header: dict[str, Any] = {}
        said = []
        for message in messages:
            if _KEY in (message.metadata or {}):
                header["previous_summary"] = (message.metadata or {})[_KEY]
            else:
                said.append(message)
        output = await asked_about(model, said, header, self.arguments.instructions("openhands"))
        return completion(output)

    async def _reset(self, model: Model, messages: list[ChatMessage]) -> str:
        """Return a summary of everything, from messages made shorter after every failure."""
        said = [message for message in messages if message.role != "system"]
        limit = max((len(message.text) for message in said), default=0)
        for _ in range(_RESET_ATTEMPTS - 1):
            try:
                return await self._summary(model, [_shortened(m, limit) for m in said])
            except CompressionError:
                limit = int(limit * _RESET_SCALE)
        return await self._summary(model, [_shortened(m, limit) for m in said])


def forget(pieces: Sequence[Sequence[ChatMessage]], arguments: OpenHandsArguments) -> Forgetting:
    """Return the range to be forgotten, from and to places where no call loses its result.

    Args:
        pieces: The conversation in groups that stay together.
        arguments: How much is kept.
    """
    sizes = [_events(piece) for piece in pieces]
    total = sum(sizes)
    target = total // 2
    if total > arguments.max_size:
        target = min(target, arguments.max_size // 2)
    last = max(target - arguments.keep_first - 1, 0)
    start = end = len(sizes)
    passed = 0
    for index, size in enumerate(sizes):
        if passed >= arguments.keep_first:
            start = min(start, index)
        if passed >= total - last:
            end = min(end, index)
        passed += size
    end = max(start, end)
    return Forgetting(start, end, sum(sizes[start:end]))


def _events(piece: Sequence[ChatMessage]) -> int:
    """Return as how many events OpenHands would hold a group: a call is an event of its own."""
    return sum(
        max(len(message.tool_calls or []), 1) if isinstance(message, ChatMessageAssistant) else 1
        for message in piece
    )


def _joined(pieces: Sequence[Sequence[ChatMessage]]) -> list[ChatMessage]:
    return [message for piece in pieces for message in piece]


def _shortened(message: ChatMessage, limit: int) -> ChatMessage:
    if len(message.text) <= limit or _KEY in (message.metadata or {}):
        return message
    return message.model_copy(update={"content": fitted(message.text, limit, len, "ends")})


COMPRESSOR = Compressor(
    "openhands",
    "OpenHands' summarising condenser: first and last events kept, the range between summarised",
    OpenHandsArguments,
    OpenHands,
    calls_model=True,
)
