"""Anthropic's ``clear_tool_uses_20250919``: the server clears older tool results on each request.

Source: the context editing page of Anthropic's documentation and the parameter types of its
package, beta ``context-management-2025-06-27``. The server never returns what it cleared, it only
counts. So the server decides here whether and how much is cleared, and the local equal
(`clear_tools`) does the same to the state; if the two counts differ, the state fails.
"""

from typing import TYPE_CHECKING, Any, Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field

from compression_eval.compressors.clear_tools import ClearTools, ClearToolsArguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.vendors.anthropic_call import ask, require_client
from compression_eval.compressors.vendors.anthropic_edit import ending_with_user

if TYPE_CHECKING:
    from anthropic.types.beta import BetaMessage

BETA = "context-management-2025-06-27"


class AnthropicClearToolsArguments(ClearToolsArguments):
    """The parameters of the server's edit."""

    trigger: Literal["tool_uses", "input_tokens"] = "tool_uses"
    """What the trigger counts. The server's default is ``input_tokens``."""
    trigger_value: int = Field(default=1, ge=1)
    """From where on the server clears. Its own default is 100000 input tokens."""


class AnthropicClearTools(CompactionStrategy):
    """Have the server say what it clears, and clear that.

    Args:
        arguments: The parameters of the edit.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(
        self, arguments: AnthropicClearToolsArguments, *, threshold: int | float = 0.9
    ) -> None:
        super().__init__(type="edit", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation with one request for a single token.

        Args:
            model: A model of Anthropic.
            messages: The conversation.
            tools: Sent along, since a history with calls demands them.

        Raises:
            CompressionError: ``not_applied`` if the server cleared nothing, ``error`` if its count
                is not that of the local equal.
        """
        require_client(model)
        reply = await ask(
            model,
            ending_with_user(messages),
            tools,
            beta=BETA,
            max_tokens=1,
            fed=len(messages),
            context_management={"edits": [self._edit()]},
            **({"tool_choice": {"type": "none"}} if tools else {}),
        )
        cleared = _cleared(reply)
        local = ClearTools(
            ClearToolsArguments(
                keep=self.arguments.keep,
                exclude_tools=self.arguments.exclude_tools,
                clear_tool_inputs=self.arguments.clear_tool_inputs,
            )
        )
        result, _ = await local.compact(model, messages, tools)
        before, after = _placeholders(messages), _placeholders(result)
        # Whether results that an earlier compression cleared are counted again is not documented.
        if cleared not in (after, after - before):
            raise CompressionError(
                "error",
                f"the server cleared {cleared} tool uses, the local equal {after - before}: "
                "the state it answers from cannot be reproduced",
            )
        return result, None

    def _edit(self) -> dict[str, Any]:
        arguments = self.arguments
        edit: dict[str, Any] = {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": arguments.trigger, "value": arguments.trigger_value},
            "keep": {"type": "tool_uses", "value": arguments.keep},
            "clear_tool_inputs": arguments.clear_tool_inputs,
        }
        if arguments.clear_at_least is not None:
            edit["clear_at_least"] = {"type": "input_tokens", "value": arguments.clear_at_least}
        if arguments.exclude_tools:
            edit["exclude_tools"] = arguments.exclude_tools
        return edit


def _cleared(reply: "BetaMessage") -> int:
    """Return how many tool uses the server says it cleared.

    Raises:
        CompressionError: None.
    """
    applied = reply.context_management.applied_edits if reply.context_management else []
    cleared = sum(
        edit.cleared_tool_uses for edit in applied if edit.type == "clear_tool_uses_20250919"
    )
    if not cleared:
        raise CompressionError("not_applied", "the server cleared nothing: the edit did not fire")
    return cleared


def _placeholders(messages: list[ChatMessage]) -> int:
    placeholder = prompt("cleared_result")
    return sum(isinstance(m, ChatMessageTool) and m.text == placeholder for m in messages)


COMPRESSOR = Compressor(
    "anthropic-clear-tools",
    "Anthropic's clear_tool_uses_20250919: the server says which old tool results go",
    AnthropicClearToolsArguments,
    AnthropicClearTools,
    calls_model=True,
    check_model=require_client,
)
