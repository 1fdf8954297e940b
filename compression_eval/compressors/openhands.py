"""OpenHands' summarising condenser: the first events are kept, a middle range is forgotten.

Source: ``LLMSummarizingCondenser`` of the public ``software-agent-sdk``. The package itself cannot
be used here: it needs Python 3.12 and brings an ``openai`` older than the one that Inspect needs.
The prompt is written anew.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import Field, NonNegativeInt, PositiveInt

from compression_eval.compressors.budget import fitted, groups, joined
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import carried, strategy
from compression_eval.compressors.summarising import ProductStrategy, asked_about

_RESET_ATTEMPTS = 5
_RESET_SCALE = 0.8


@strategy
class OpenHandsCompaction(ProductStrategy):
    """Replace a range of events after the first ones by a summary.

    A forced compression corresponds to the condenser's request: about half of the events are kept.
    """

    summary = (
        "OpenHands' summarising condenser: first and last events kept, the range between summarised"
    )
    name = "openhands"

    max_size: PositiveInt = 240
    """Events from which the condenser would fire by itself; half of it is its target then."""
    keep_first: NonNegativeInt = 2
    """Events kept at the start; the system prompt is one."""
    minimum_progress: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of the events that must go, or everything is summarised instead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_size // 2 - self.keep_first - 1 <= 0:
            raise ValueError("keep_first must be less than half of max_size, less one")

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return first events, summary, last events; and the message with the summary.

        If the range would be too small, everything is summarised; only that call is repeated on
        failure, with ever shorter messages.
        """
        pieces = groups(messages)
        sizes = [sum(map(_events, piece)) for piece in pieces]
        total = sum(sizes)
        if total <= self.keep_first + 1:
            raise CompressionError(
                "not_applied", f"{total} events, of which {self.keep_first} are kept first"
            )
        target = min(total // 2, self.max_size // 2) if total > self.max_size else total // 2
        kept_last = max(target - self.keep_first - 1, 0)
        # Number of events before each group: no call loses its result.
        before = [0, *accumulate(sizes)][:-1]
        start = sum(passed < self.keep_first for passed in before)
        end = max(sum(passed < total - kept_last for passed in before), start)
        if sum(sizes[start:end]) >= max(self.minimum_progress * total, 1):
            head, tail = joined(pieces[:start]), joined(pieces[end:])
            text = await self._summary(model, joined(pieces[start:end]))
        else:
            head, tail = [], []
            text = await self._reset(model, messages)
        message = self.message(text)
        return [*head, message, *tail], message

    async def _summary(self, model: Model, messages: Sequence[ChatMessage]) -> str:
        """Return the summary of the messages; an earlier summary among them is marked as such."""
        earlier, events = carried(messages, self.key)
        header = {"previous_summary": earlier} if earlier else {}
        return await asked_about(model, events, header, self.instructions())

    async def _reset(self, model: Model, messages: list[ChatMessage]) -> str:
        """Return a summary of everything, shortening the messages after every failure."""
        conversation = [message for message in messages if message.role != "system"]
        limit = max((len(message.text) for message in conversation), default=0)
        for _ in range(_RESET_ATTEMPTS - 1):
            try:
                return await self._summary(model, self._shortened(conversation, limit))
            except CompressionError:
                limit = int(limit * _RESET_SCALE)
        return await self._summary(model, self._shortened(conversation, limit))

    def _shortened(self, messages: Sequence[ChatMessage], limit: int) -> list[ChatMessage]:
        return [
            message
            if len(message.text) <= limit or self.key in (message.metadata or {})
            else message.model_copy(update={"content": fitted(message.text, limit, len, "ends")})
            for message in messages
        ]


def _events(message: ChatMessage) -> int:
    """Return the number of OpenHands events of a message: each call is an event of its own."""
    return max(len(getattr(message, "tool_calls", None) or []), 1)
