"""The summarising condenser of OpenHands: first events kept, a middle range forgotten.

Source: ``LLMSummarizingCondenser`` of the public ``software-agent-sdk``. The package itself cannot
be used here: it needs Python 3.12 and brings an ``openai`` older than the one that Inspect needs.
The prompt is written anew.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field, NonNegativeInt, PositiveInt, validate_call

from compression_eval.compressors.budget import fitted, groups
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled
from compression_eval.compressors.spec import Text
from compression_eval.compressors.summarising import asked_about, instructions

_KEY = "compression_eval_openhands"
_RESET_ATTEMPTS = 5
_RESET_SCALE = 0.8

_Pieces = Sequence[Sequence[ChatMessage]]


class OpenHandsCompaction(CompactionStrategy):
    """Replace a range of events after the first ones by a summary.

    A forced compression is what the condenser calls a request: about half of the events are kept.

    Args:
        prompt: Text that replaces the instructions to the summarising model.
        focus_topic: A topic that deserves the most room; added to the instructions.
        max_size: Events from which the condenser would fire by itself; half of it is its target
            then.
        keep_first: Events kept at the start; the system prompt is one.
        minimum_progress: Share of the events that must go, or everything is summarised instead.
        threshold: When an agent that uses this strategy compresses; see Inspect.

    Raises:
        ValueError: ``keep_first`` leaves no room in half of ``max_size``.
    """

    @validate_call
    def __init__(
        self,
        *,
        prompt: Text | None = None,
        focus_topic: Text | None = None,
        max_size: PositiveInt = 240,
        keep_first: NonNegativeInt = 2,
        minimum_progress: Annotated[float, Field(gt=0, lt=1)] = 0.1,
        threshold: int | float = 0.9,
    ) -> None:
        if max_size // 2 - keep_first - 1 <= 0:
            raise ValueError("keep_first must be less than half of max_size, less one")
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.prompt = prompt
        self.focus_topic = focus_topic
        self.max_size = max_size
        self.keep_first = keep_first
        self.minimum_progress = minimum_progress

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one model call.

        If the range would be too small, everything is summarised; that call alone is repeated, with
        ever shorter messages, if it fails.

        Returns:
            First events, summary, last events; and the message with the summary.

        Raises:
            CompressionError: There are fewer events than are kept, or no usable reply.
        """
        pieces = groups(messages)
        total = _events(pieces)
        if total <= self.keep_first + 1:
            raise CompressionError(
                "not_applied", f"{total} events, of which {self.keep_first} are kept first"
            )
        start, end = self._forgotten(pieces)
        if _events(pieces[start:end]) >= max(self.minimum_progress * total, 1):
            head, tail = pieces[:start], pieces[end:]
            text = await self._summary(model, _joined(pieces[start:end]))
        else:
            head, tail = [], []
            text = await self._reset(model, messages)
        message = ChatMessageUser(
            content=filled("openhands_carrier", summary=text), metadata={_KEY: text}
        )
        return [*_joined(head), message, *_joined(tail)], message

    def _forgotten(self, pieces: _Pieces) -> tuple[int, int]:
        """Return where the range that is forgotten begins and ends: no call loses its result."""
        sizes = [_events([piece]) for piece in pieces]
        total = sum(sizes)
        target = total // 2
        if total > self.max_size:
            target = min(target, self.max_size // 2)
        last = max(target - self.keep_first - 1, 0)
        start = end = len(sizes)
        passed = 0
        for index, size in enumerate(sizes):
            if passed >= self.keep_first:
                start = min(start, index)
            if passed >= total - last:
                end = min(end, index)
            passed += size
        return start, max(start, end)

    async def _summary(self, model: Model, messages: Sequence[ChatMessage]) -> str:
        """Return the summary of some messages; an earlier one among them is given as such."""
        header: dict[str, Any] = {}
        said = []
        for message in messages:
            if _KEY in (message.metadata or {}):
                header["previous_summary"] = (message.metadata or {})[_KEY]
            else:
                said.append(message)
        request = instructions("openhands", self.prompt, self.focus_topic)
        return await asked_about(model, said, header, request)

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


def _events(pieces: _Pieces) -> int:
    """Return as how many events OpenHands would hold some groups: a call is an event of its own."""
    return sum(
        max(len(message.tool_calls or []), 1) if isinstance(message, ChatMessageAssistant) else 1
        for message in _joined(pieces)
    )


def _joined(pieces: _Pieces) -> list[ChatMessage]:
    return [message for piece in pieces for message in piece]


def _shortened(message: ChatMessage, limit: int) -> ChatMessage:
    if len(message.text) <= limit or _KEY in (message.metadata or {}):
        return message
    return message.model_copy(update={"content": fitted(message.text, limit, len, "ends")})
