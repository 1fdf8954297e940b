"""Observation masking: all but the last tool results become a one-line note.

Source: SWE-agent's history processor that keeps the last N observations, and "The Complexity Trap"
(Lindenbauer et al., 2025), which found it as good as summarising by a model. The agent's reasoning
and actions stay verbatim; only its observations go.
"""

from inspect_ai.model import ChatMessage, ChatMessageTool, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import NonNegativeInt

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled
from compression_eval.compressors.strategy import Strategy, strategy

_KEY = "compression_eval_masked"


@strategy
class MaskingCompaction(Strategy):
    """Replace all but the newest tool results by a note with their number of lines."""

    summary = "tool results but for the last few become a note with their number of lines"
    calls_model = False
    kind = "edit"

    keep: NonNegativeInt = 10
    """Tool results kept whole, newest first."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages with older tool results masked."""
        results = [m for m in messages if isinstance(m, ChatMessageTool)]
        old = results[: max(len(results) - self.keep, 0)]
        masked = {id(m): _masked(m) for m in old if _KEY not in (m.metadata or {})}
        if not masked:
            raise CompressionError(
                "not_applied",
                f"nothing to mask: of {len(results)} tool results the last "
                f"{self.keep} are kept, and older ones are masked already",
            )
        return [masked.get(id(message), message) for message in messages], None


def _masked(message: ChatMessageTool) -> ChatMessageTool:
    lines = len(message.text.splitlines())
    return ChatMessageTool(
        content=filled("masked_result", lines=lines),
        tool_call_id=message.tool_call_id,
        function=message.function,
        metadata={**(message.metadata or {}), _KEY: lines},
    )
