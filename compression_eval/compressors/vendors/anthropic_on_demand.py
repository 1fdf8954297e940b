"""Anthropic's compaction on demand: a signed block with a readable summary.

Source: ``compaction={"type": "summarize"}`` of `client.beta.messages.create` in Anthropic's
package, beta ``compact-2026-09-04``. There is no trigger. The block must go back unchanged, alone,
first, in place of what it summarises, and each later request needs the beta. ``anthropic-native``
does that (see `exact_replay`); ``anthropic-text-projection`` takes the summary's text only, so that
any model can answer. The two are never pooled.
"""

from typing import Annotated, Any, ClassVar

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo
from pydantic import Field, NonNegativeInt, validate_call

from compression_eval.compressors.budget import split
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.summarising import carrier
from compression_eval.compressors.vendors.anthropic_api import (
    BLOCK,
    ON_DEMAND_BETA,
    ask,
    compaction_block,
    end_of_summary,
    require_client,
    require_client_that_answers,
)


class AnthropicNativeCompaction(CompactionStrategy):
    """Have Anthropic summarise a conversation now, and send its signed block back.

    An agent needs `exact_replay` to go on with the block; see the documentation.

    Args:
        instructions: Replaces the server's own instructions to its summariser.
        max_tokens: Most tokens of the summary.
        tail_tokens: Tokens at the end that are not sent to be summarised but follow the block word
            for word.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    signed: ClassVar[bool] = True
    """Whether the signed block is to be replayed, or its text alone."""

    @validate_call
    def __init__(
        self,
        *,
        instructions: Annotated[str, Field(min_length=1, max_length=16_384)] | None = None,
        max_tokens: Annotated[int, Field(ge=4_096, le=20_000)] = 16_384,
        tail_tokens: NonNegativeInt = 0,
        threshold: int | float = 0.9,
    ) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.instructions = instructions
        self.max_tokens = max_tokens
        self.tail_tokens = tail_tokens

    @property
    def preserve_prefix(self) -> bool:
        """False: the summarised messages must go."""
        return False

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one request.

        Returns:
            The message that carries the summary (and the signed block in its metadata), then the
            tail; and that message.

        Raises:
            CompressionError: ``unsupported`` without such an endpoint or if the answers come from
                elsewhere, ``empty`` for success without content, ``error`` for a block without its
                signature.
        """
        (require_client_that_answers if self.signed else require_client)(model)
        window = split(messages, 0, self.tail_tokens)
        if not window.span:
            raise CompressionError(
                "not_applied", f"everything fits the tail of {self.tail_tokens} tokens"
            )
        covered = [*window.head, *window.span]
        compaction: dict[str, Any] = {"type": "summarize"}
        if self.instructions:
            compaction["instructions"] = self.instructions
        reply = await ask(
            model,
            covered,
            tools,
            beta=ON_DEMAND_BETA,
            max_tokens=self.max_tokens,
            fed=len(covered),
            compaction=compaction,
        )
        block = compaction_block(reply, "the compaction block has no content")
        if block is None:
            raise end_of_summary(reply)
        metadata: dict[str, Any] = {}
        if self.signed:
            if not block.signature:
                raise CompressionError(
                    "error", "the block came without its signature, so it cannot be sent back"
                )
            metadata[BLOCK] = block.model_dump(mode="json", exclude_none=True)
        message = carrier((block.content or "").strip(), metadata)
        return [message, *window.tail], message


class AnthropicTextCompaction(AnthropicNativeCompaction):
    """Have Anthropic summarise a conversation now, and take its text, which any model can read."""

    signed = False
