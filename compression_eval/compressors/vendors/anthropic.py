"""Anthropic's own context management: compaction on demand, its threshold edit, tool clearing.

Sources: Anthropic's documentation of compaction and context editing, and the parameter types of its
package.
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ChatMessageUser,
    Model,
    messages_from_anthropic,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field, NonNegativeInt

from compression_eval.compressors.budget import split
from compression_eval.compressors.clear_tools import ClearToolsCompaction
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.strategy import Strategy, Text, strategy
from compression_eval.compressors.summarising import carrier
from compression_eval.compressors.vendors.anthropic_api import (
    BLOCK,
    ON_DEMAND_BETA,
    ask,
    compaction_block,
    no_summary,
    require_client,
    require_client_that_answers,
)

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCompactionBlock

MIN_TRIGGER = 50_000
"""Minimum trigger that the server accepts."""

_SummaryTokens = Annotated[int, Field(ge=4_096, le=20_000)]


@strategy
class AnthropicNativeCompaction(Strategy):
    """Have Anthropic summarise a conversation now, and send its signed block back.

    There is no trigger. The block must be sent back unchanged, alone and first, in place of what it
    summarises, and each later request needs the beta: an agent needs `exact_replay` to continue;
    see the documentation. Source: ``compaction={"type": "summarize"}`` of
    `client.beta.messages.create`.
    """

    summary = "Anthropic's compaction on demand; its signed block is sent back"
    check_model: ClassVar[Any] = staticmethod(require_client_that_answers)

    signed: ClassVar[bool] = True
    """Whether the signed block is to be replayed, or its text alone."""

    instructions: Annotated[str, Field(min_length=1, max_length=16_384)] | None = None
    """Replaces the server's own instructions to its summariser."""
    max_tokens: _SummaryTokens = 16_384
    """Most tokens of the summary."""
    tail_tokens: NonNegativeInt = 0
    """Tokens at the end that are not sent to be summarised but follow the block word for word."""

    preserve_prefix = False  # the summarised messages must be removed

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the message that carries the summary, then the tail; and that message.

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
        compaction = {"type": "summarize"}
        if self.instructions:
            compaction["instructions"] = self.instructions
        reply = await ask(
            model,
            [*window.head, *window.span],
            tools,
            beta=ON_DEMAND_BETA,
            max_tokens=self.max_tokens,
            compaction=compaction,
        )
        block = compaction_block(reply, "the compaction block has no content")
        if block is None:
            raise no_summary(reply)
        if self.signed and not block.signature:
            raise CompressionError(
                "error", "the block came without its signature, so it cannot be sent back"
            )
        kept = {BLOCK: block.model_dump(mode="json", exclude_none=True)} if self.signed else {}
        message = carrier((block.content or "").strip(), kept)
        return [message, *window.tail], message


@strategy
class AnthropicTextCompaction(AnthropicNativeCompaction):
    """Have Anthropic summarise a conversation now, and keep its text, which any model can read."""

    summary = "Anthropic's compaction on demand; its summary as text, for any model"
    check_model = staticmethod(require_client)
    signed = False


@strategy
class AnthropicEditCompaction(Strategy):
    """Have the server compact a conversation and keep the block it returns.

    Source: ``compact_20260112``. Asked to pause, the server returns only the block; later requests
    ignore everything before one. Inspect's provider replays such a block by itself, with the beta
    and the edit that the server requires, but only the block's text.
    """

    summary = (
        "Anthropic's threshold edit compact_20260112: the server's block stands for everything"
    )
    check_model = staticmethod(require_client_that_answers)

    trigger_tokens: Annotated[int, Field(ge=MIN_TRIGGER)] = MIN_TRIGGER
    """Input tokens from which on the server compacts; a shorter conversation is left as it is."""
    instructions: Text | None = None
    """What the server's summariser is told; by the documentation it replaces the server's own."""
    max_tokens: _SummaryTokens = 16_384
    """Most tokens of the reply."""

    preserve_prefix = False  # the server ignores messages before a block

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the message that carries the block.

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
        beta = "compact-2026-01-12"
        reply = await ask(model, messages, tools, beta=beta, max_tokens=self.max_tokens, edit=edit)
        block = compaction_block(
            reply, "the server compacted, but its block has no content: its summary failed"
        )
        if block:
            return [await _replayed_by_inspect(block)], None
        ran = any(entry.type == "compaction" for entry in reply.usage.iterations or [])
        if ran or reply.stop_reason in ("compaction", "model_context_window_exceeded"):
            raise no_summary(reply)
        raise CompressionError(
            "not_applied",
            f"the server did not compact: the conversation is below the trigger of "
            f"{self.trigger_tokens} tokens (stop reason {reply.stop_reason})",
        )


async def _replayed_by_inspect(block: "BetaCompactionBlock") -> ChatMessage:
    """Return a block as Inspect's own message, if its replay loses nothing."""
    fields = block.model_dump(mode="json", exclude_none=True)
    wire: Any = [{"role": "assistant", "content": [fields]}]
    (message,) = await messages_from_anthropic(wire)
    kept = {
        name
        for part in (message.content if isinstance(message.content, list) else [])
        for name in getattr(part, "data", {}).get("compaction_metadata", {})
    }
    if lost := sorted(set(fields) - kept - {"type"}):
        raise CompressionError(
            "unsupported",
            f"the block has {', '.join(lost)}, which Inspect's Anthropic provider drops when it "
            "sends the block back; the vendor wants it unchanged",
        )
    return message


@strategy
class AnthropicClearToolsCompaction(ClearToolsCompaction):
    """Ask the server how much it clears, and clear the same.

    Source: ``clear_tool_uses_20250919``. The server never returns what it cleared, only counts. So
    it decides whether and how much is cleared, and `ClearToolsCompaction` does the same to the
    state; if the two counts differ, the state fails.
    """

    summary = "Anthropic's clear_tool_uses_20250919: the server says which old tool results go"
    calls_model = True
    check_model = staticmethod(require_client)

    trigger: Literal["tool_uses", "input_tokens"] = "tool_uses"
    """What the trigger counts. The server's default is ``input_tokens``."""
    trigger_value: Annotated[int, Field(ge=1)] = 1
    """From where on the server clears. Its own default is 100000 input tokens."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages with older tool uses cleared, after one request for a single token.

        Raises:
            CompressionError: ``not_applied`` if the server cleared nothing, ``error`` if its count
                is not that of the local equal.
        """
        edit: dict[str, Any] = {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": self.trigger, "value": self.trigger_value},
            "keep": {"type": "tool_uses", "value": self.keep},
            "clear_tool_inputs": self.clear_tool_inputs,
        }
        if self.clear_at_least is not None:
            edit["clear_at_least"] = {"type": "input_tokens", "value": self.clear_at_least}
        if self.exclude_tools:
            edit["exclude_tools"] = self.exclude_tools
        beta = "context-management-2025-06-27"
        reply = await ask(model, messages, tools, beta=beta, max_tokens=1, edit=edit)
        cleared = sum(
            edit.cleared_tool_uses
            for edit in (reply.context_management.applied_edits if reply.context_management else [])
            if edit.type == "clear_tool_uses_20250919"
        )
        if not cleared:
            raise CompressionError(
                "not_applied", "the server cleared nothing: the edit did not fire"
            )
        # The server decides by itself whether clearing frees enough.
        result = self.cleared(messages, None)
        before, after = _placeholders(messages), _placeholders(result)
        # It is undocumented whether results cleared by an earlier compression are counted again.
        if cleared not in (after, after - before):
            raise CompressionError(
                "error",
                f"the server cleared {cleared} tool uses, the local equal {after - before}: "
                "the state it answers from cannot be reproduced",
            )
        return result, None


def _placeholders(messages: list[ChatMessage]) -> int:
    placeholder = prompt("cleared_result")
    return sum(isinstance(m, ChatMessageTool) and m.text == placeholder for m in messages)
