"""Anthropic's ``clear_tool_uses_20250919``: the server clears older tool results on each request.

Source: the context editing page of Anthropic's documentation and the parameter types of its
package, beta ``context-management-2025-06-27``. The server never returns what it cleared, it only
counts. So the server decides here whether and how much is cleared, and the local equal
(`ClearToolsCompaction`) does the same to the state; if the two counts differ, the state fails.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field, NonNegativeInt, PositiveInt, validate_call

from compression_eval.compressors.clear_tools import ClearToolsCompaction
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.vendors.anthropic_api import ask_for_edit, require_client

if TYPE_CHECKING:
    from anthropic.types.beta import BetaMessage


class AnthropicClearToolsCompaction(CompactionStrategy):
    """Have the server say what it clears, and clear that.

    Args:
        keep: Tool uses left alone, newest first; those of excluded tools count too.
        exclude_tools: Tools whose uses are never cleared.
        clear_tool_inputs: Whether the arguments of the calls go as well: of all tools, or of those
            named.
        clear_at_least: Tokens that must come free; with less to gain nothing is cleared at all.
        trigger: What the trigger counts. The server's default is ``input_tokens``.
        trigger_value: From where on the server clears. Its own default is 100000 input tokens.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    @validate_call
    def __init__(
        self,
        *,
        keep: NonNegativeInt = 3,
        exclude_tools: list[str] = [],  # noqa: B006 - the check makes a copy
        clear_tool_inputs: bool | list[str] = False,
        clear_at_least: PositiveInt | None = None,
        trigger: Literal["tool_uses", "input_tokens"] = "tool_uses",
        trigger_value: Annotated[int, Field(ge=1)] = 1,
        threshold: int | float = 0.9,
    ) -> None:
        super().__init__(type="edit", threshold=threshold, memory=False)
        # The server judges by itself whether enough comes free.
        self.local = ClearToolsCompaction(
            keep=keep, exclude_tools=exclude_tools, clear_tool_inputs=clear_tool_inputs
        )
        self.edit: dict[str, Any] = {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": trigger, "value": trigger_value},
            "keep": {"type": "tool_uses", "value": keep},
            "clear_tool_inputs": clear_tool_inputs,
        }
        if clear_at_least is not None:
            self.edit["clear_at_least"] = {"type": "input_tokens", "value": clear_at_least}
        if exclude_tools:
            self.edit["exclude_tools"] = exclude_tools

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one request for a single token.

        Raises:
            CompressionError: ``not_applied`` if the server cleared nothing, ``error`` if its count
                is not that of the local equal.
        """
        require_client(model)
        reply = await ask_for_edit(
            model, messages, tools, self.edit, beta="context-management-2025-06-27", max_tokens=1
        )
        cleared = _cleared(reply)
        if not cleared:
            raise CompressionError(
                "not_applied", "the server cleared nothing: the edit did not fire"
            )
        result, _ = await self.local.compact(model, messages, tools)
        before, after = _placeholders(messages), _placeholders(result)
        # Whether results that an earlier compression cleared are counted again is not documented.
        if cleared not in (after, after - before):
            raise CompressionError(
                "error",
                f"the server cleared {cleared} tool uses, the local equal {after - before}: "
                "the state it answers from cannot be reproduced",
            )
        return result, None


def _cleared(reply: "BetaMessage") -> int:
    """Return how many tool uses the server says it cleared."""
    applied = reply.context_management.applied_edits if reply.context_management else []
    return sum(
        edit.cleared_tool_uses for edit in applied if edit.type == "clear_tool_uses_20250919"
    )


def _placeholders(messages: list[ChatMessage]) -> int:
    placeholder = prompt("cleared_result")
    return sum(isinstance(m, ChatMessageTool) and m.text == placeholder for m in messages)
