"""Anthropic's threshold edit ``compact_20260112``: the server compacts from its trigger on.

Source: the compaction page of Anthropic's documentation and `BetaCompact20260112EditParam` of its
package, beta ``compact-2026-01-12``. Asked to pause, the server returns nothing but the block; from
then on it ignores all that comes before one. Inspect's provider replays such a block by itself,
with the beta and the edit that the server demands, but only the block's text.
"""

from typing import TYPE_CHECKING, Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    CompactionStrategy,
    Model,
    messages_from_anthropic,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.vendors.anthropic_call import (
    ask,
    end_of_summary,
    require_client_that_answers,
)

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCompactionBlock, BetaMessage

BETA = "compact-2026-01-12"
LEAST_TRIGGER = 50_000
"""The server accepts no lower trigger."""


class AnthropicEditArguments(Arguments):
    """The parameters of the server's edit."""

    trigger_tokens: int = Field(default=LEAST_TRIGGER, ge=LEAST_TRIGGER)
    """Input tokens from which on the server compacts; a shorter conversation is left as it is."""
    instructions: str | None = Field(default=None, min_length=1)
    """What the server's summariser is told; by the documentation it replaces the server's own."""
    max_tokens: int = Field(default=16_384, ge=4_096, le=20_000)
    """Most tokens of the reply."""


class AnthropicEdit(CompactionStrategy):
    """Have the server compact a conversation and keep the block it returns.

    Args:
        arguments: Trigger and instructions.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: AnthropicEditArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    @property
    def preserve_prefix(self) -> bool:
        """False: the server ignores what comes before a block."""
        return False

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one request.

        Args:
            model: A model of Anthropic.
            messages: The conversation, perhaps with the block of an earlier compression.
            tools: Sent along, since a history with calls demands them.

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
            "trigger": {"type": "input_tokens", "value": self.arguments.trigger_tokens},
            "pause_after_compaction": True,
        }
        if self.arguments.instructions:
            edit["instructions"] = self.arguments.instructions
        reply = await ask(
            model,
            ending_with_user(messages),
            tools,
            beta=BETA,
            max_tokens=self.arguments.max_tokens,
            fed=len(messages),
            context_management={"edits": [edit]},
            **({"tool_choice": {"type": "none"}} if tools else {}),
        )
        return [await _carrier(_block(reply, self.arguments.trigger_tokens))], None


def ending_with_user(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return a conversation that a model may go on with: newer ones refuse a prefilled reply."""
    if messages and messages[-1].role == "assistant":
        return [*messages, ChatMessageUser(content=prompt("anthropic_continue"))]
    return messages


def _block(reply: "BetaMessage", trigger: int) -> "BetaCompactionBlock":
    """Return the block of a reply, or tell what is wrong with it."""
    blocks = [block for block in reply.content if block.type == "compaction"]
    if len(blocks) > 1:
        raise CompressionError("error", f"{len(blocks)} compaction blocks came back, not one")
    if blocks:
        if not (blocks[0].content or "").strip():
            raise CompressionError(
                "empty", "the server compacted, but its block has no content: its summary failed"
            )
        return blocks[0]
    ran = any(entry.type == "compaction" for entry in reply.usage.iterations or [])
    if ran or reply.stop_reason in ("compaction", "model_context_window_exceeded"):
        raise end_of_summary(reply)
    raise CompressionError(
        "not_applied",
        f"the server did not compact: the conversation is below the trigger of {trigger} tokens "
        f"(stop reason {reply.stop_reason})",
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


COMPRESSOR = Compressor(
    "anthropic-edit",
    "Anthropic's threshold edit compact_20260112: the server's block stands for everything",
    AnthropicEditArguments,
    AnthropicEdit,
    calls_model=True,
    check_model=require_client_that_answers,
)
