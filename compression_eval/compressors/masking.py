"""Observation masking: tool results but for the last few become a note of one line.

Source: SWE-agent's history processor that keeps the last N observations, and "The Complexity Trap"
(Lindenbauer et al., 2025), which found it as good as summarising by a model. What the agent thought
and did stays word for word; only what it saw goes.
"""

from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.products import filled, nothing_to_do
from compression_eval.compressors.spec import Compressor

_KEY = "compression_eval_masked"


class MaskingArguments(Arguments):
    """What is kept."""

    keep: int = Field(default=10, ge=0)
    """Tool results kept whole, newest first."""


class Masking(CompactionStrategy):
    """Replace every tool result but the newest by a note that says how many lines it had.

    Args:
        arguments: How many are kept.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: MaskingArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="edit", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,  # noqa: ARG002
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages with older tool results masked.

        Raises:
            CompressionError: No result is older than those that are kept.
        """
        results = [index for index, message in enumerate(messages) if message.role == "tool"]
        old = set(results[: max(len(results) - self.arguments.keep, 0)])
        masked = [
            _masked(message)
            if index in old and isinstance(message, ChatMessageTool) and not _is_masked(message)
            else message
            for index, message in enumerate(messages)
        ]
        if all(new is given for new, given in zip(masked, messages, strict=True)):
            raise nothing_to_do(
                f"nothing to mask: of {len(results)} tool results the last "
                f"{self.arguments.keep} are kept, and older ones are masked already"
            )
        return masked, None


def _is_masked(message: ChatMessage) -> bool:
    return _KEY in (message.metadata or {})


def _masked(message: ChatMessageTool) -> ChatMessageTool:
    lines = len(message.text.splitlines())
    return ChatMessageTool(
        content=filled("masked_result", lines=lines),
        tool_call_id=message.tool_call_id,
        function=message.function,
        metadata={**(message.metadata or {}), _KEY: lines},
    )


COMPRESSOR = Compressor(
    "masking",
    "tool results but for the last few become a note with their number of lines",
    MaskingArguments,
    Masking,
    calls_model=False,
)
