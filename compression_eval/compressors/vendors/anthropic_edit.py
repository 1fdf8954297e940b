"""Anthropic's threshold edit ``compact_20260112``: the server compacts from its trigger on.

Source: the compaction page of Anthropic's documentation and `BetaCompact20260112EditParam` of its
package, beta ``compact-2026-01-12``. Asked to pause, the server returns nothing but the block; from
then on it ignores all that comes before one. Inspect's provider replays such a block by itself,
with the beta and the edit that the server demands, but only the block's text.
"""

from typing import TYPE_CHECKING, Annotated, Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    CompactionStrategy,
    Model,
    messages_from_anthropic,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field, validate_call

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.spec import Text
from compression_eval.compressors.vendors.anthropic_api import (
    ask_for_edit,
    compaction_block,
    end_of_summary,
    require_client_that_answers,
)

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCompactionBlock, BetaMessage

MIN_TRIGGER = 50_000
"""The server accepts no lower trigger."""


class AnthropicEditCompaction(CompactionStrategy):
    """Have the server compact a conversation and keep the block it returns.

    Args:
        trigger_tokens: Input tokens from which on the server compacts; a shorter conversation is
            left as it is.
        instructions: What the server's summariser is told; by the documentation it replaces the
            server's own.
        max_tokens: Most tokens of the reply.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    @validate_call
    def __init__(
        self,
        *,
        trigger_tokens: Annotated[int, Field(ge=MIN_TRIGGER)] = MIN_TRIGGER,
        instructions: Text | None = None,
        max_tokens: Annotated[int, Field(ge=4_096, le=20_000)] = 16_384,
        threshold: int | float = 0.9,
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.trigger_tokens = trigger_tokens
        self.instructions = instructions
        self.max_tokens = max_tokens

    @property
    def preserve_prefix(self) -> bool:
        """False: the server ignores what comes before a block."""
        return False

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one request.

        Returns:
            The message that carries the block.

        Raises:
            CompressionError: ``not_applied`` below the trigger, ``empty`` for a block without
                content, ``unsupported`` for a block that Inspect would not replay whole or for an
                answering model of another vendor.
        """
        require_client_that_answers(model)
        edit: dict[str, Any] = {
            "type": "compact_20260112",
            "trigger": {"type": "input_tokens", "value": self.trigger_tokens},
            "pause_after_compaction": True,
        }
        if self.instructions:
            edit["instructions"] = self.instructions
        reply = await ask_for_edit(
            model, messages, tools, edit, beta="compact-2026-01-12", max_tokens=self.max_tokens
        )
        block = compaction_block(
            reply, "the server compacted, but its block has no content: its summary failed"
        )
        if block is None:
            raise self._no_block(reply)
        return [await _carrier(block)], None

    def _no_block(self, reply: "BetaMessage") -> CompressionError:
        ran = any(entry.type == "compaction" for entry in reply.usage.iterations or [])
        if ran or reply.stop_reason in ("compaction", "model_context_window_exceeded"):
            return end_of_summary(reply)
        return CompressionError(
            "not_applied",
            f"the server did not compact: the conversation is below the trigger of "
            f"{self.trigger_tokens} tokens (stop reason {reply.stop_reason})",
        )


async def _carrier(block: "BetaCompactionBlock") -> ChatMessage:
    """Return a block as Inspect's own message, if nothing of it is lost on the way back."""
    fields = block.model_dump(mode="json", exclude_none=True)
    wire: Any = [{"role": "assistant", "content": [fields]}]
    (message,) = await messages_from_anthropic(wire)
    kept = {
        name
        for part in (message.content if isinstance(message.content, list) else [])
        for name in getattr(part, "data", {}).get("compaction_metadata", {})
    }
    lost = sorted(set(fields) - kept - {"type"})
    if lost:
        raise CompressionError(
            "unsupported",
            f"the block has {', '.join(lost)}, which Inspect's Anthropic provider drops when it "
            "sends the block back; the vendor wants it unchanged",
        )
    return message
