"""Anthropic's compaction on demand: a signed block with a readable summary.

Source: ``compaction={"type": "summarize"}`` of `client.beta.messages.create` in Anthropic's
package, beta ``compact-2026-09-04``. There is no trigger. The block must go back unchanged, alone,
first, in place of what it summarises, and each later request needs the beta. ``anthropic-native``
does that (see `anthropic_replay`); ``anthropic-text-projection`` takes the summary's text only, so
that any model can answer. The two are never pooled.
"""

from typing import TYPE_CHECKING, Any

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import Field

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.summarising import carrier
from compression_eval.compressors.tokens import token_counter
from compression_eval.compressors.vendors.anthropic_call import (
    ask,
    end_of_summary,
    require_client,
    require_client_that_answers,
)
from compression_eval.compressors.vendors.anthropic_messages import BLOCK
from compression_eval.compressors.vendors.anthropic_replay import BETA
from compression_eval.compressors.window import split

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCompactionBlock, BetaMessage


class AnthropicOnDemandArguments(Arguments):
    """The parameters of a compaction request, and what is left out of it."""

    instructions: str | None = Field(default=None, min_length=1, max_length=16_384)
    """Replaces the server's own instructions to its summariser."""
    max_tokens: int = Field(default=16_384, ge=4_096, le=20_000)
    """Most tokens of the summary."""
    tail_tokens: int = Field(default=0, ge=0)
    """Tokens at the end that are not sent to be summarised but follow the block word for word."""


class AnthropicOnDemand(CompactionStrategy):
    """Have Anthropic summarise a conversation now.

    Args:
        arguments: Instructions and budgets.
        signed: Whether the signed block is to be replayed, or its text alone.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(
        self,
        arguments: AnthropicOnDemandArguments,
        *,
        signed: bool,
        threshold: int | float = 0.9,
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments
        self.signed = signed

    @property
    def preserve_prefix(self) -> bool:
        """False: the summarised messages must go."""
        return False

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one request.

        Args:
            model: A model of Anthropic.
            messages: The conversation, perhaps with the block of an earlier compression.
            tools: Sent along, as in the requests that the conversation came from.

        Returns:
            The message that carries the summary (and the signed block in its metadata), then the
            tail; and that message.

        Raises:
            CompressionError: ``unsupported`` without such an endpoint or if the answers come from
                elsewhere, ``empty`` for success without content, ``error`` for a block without its
                signature.
        """
        (require_client_that_answers if self.signed else require_client)(model)
        window = split(messages, 0, self.arguments.tail_tokens, token_counter())
        if not window.span:
            raise CompressionError(
                "not_applied", f"everything fits the tail of {self.arguments.tail_tokens} tokens"
            )
        covered = [*window.head, *window.span]
        compaction: dict[str, Any] = {"type": "summarize"}
        if self.arguments.instructions:
            compaction["instructions"] = self.arguments.instructions
        reply = await ask(
            model,
            covered,
            tools,
            beta=BETA,
            max_tokens=self.arguments.max_tokens,
            fed=len(covered),
            compaction=compaction,
        )
        block = _block(reply)
        metadata: dict[str, Any] = {}
        if self.signed:
            if not block.signature:
                raise CompressionError(
                    "error", "the block came without its signature, so it cannot be sent back"
                )
            metadata[BLOCK] = block.model_dump(mode="json", exclude_none=True)
        message = carrier((block.content or "").strip(), metadata)
        return [message, *window.tail], message


def _block(reply: "BetaMessage") -> "BetaCompactionBlock":
    """Return the block of a reply, or tell what is wrong with it."""
    blocks = [block for block in reply.content if block.type == "compaction"]
    if len(blocks) > 1:
        raise CompressionError("error", f"{len(blocks)} compaction blocks came back, not one")
    if not blocks:
        raise end_of_summary(reply)
    if not (blocks[0].content or "").strip():
        raise CompressionError("empty", "the compaction block has no content")
    return blocks[0]


COMPRESSORS = (
    Compressor(
        "anthropic-native",
        "Anthropic's compaction on demand; its signed block is sent back",
        AnthropicOnDemandArguments,
        lambda arguments: AnthropicOnDemand(arguments, signed=True),
        calls_model=True,
        check_model=require_client_that_answers,
    ),
    Compressor(
        "anthropic-text-projection",
        "Anthropic's compaction on demand; its summary as text, for any model",
        AnthropicOnDemandArguments,
        lambda arguments: AnthropicOnDemand(arguments, signed=False),
        calls_model=True,
        check_model=require_client,
    ),
)
