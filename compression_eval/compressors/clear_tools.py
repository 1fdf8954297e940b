"""The local equivalent of Anthropic's ``clear_tool_uses_20250919``: clears older tool uses.

Source: the context editing page of Anthropic's documentation and the parameter types of its SDK.
The trigger is left out because compression is forced here.
"""

from dataclasses import replace

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    Model,
)
from inspect_ai.tool import ToolCall, ToolInfo
from pydantic import Field, NonNegativeInt, PositiveInt

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.strategy import Strategy, strategy
from compression_eval.compressors.tokens import token_counter

_KEY = "compression_eval_cleared"


@strategy
class ClearToolsCompaction(Strategy):
    """Replace the results of older tool uses, and optionally their arguments, by a placeholder."""

    summary = "Anthropic's tool clearing done locally: all but the newest tool results go"
    calls_model = False
    kind = "edit"

    keep: NonNegativeInt = 3
    """Tool uses left alone, newest first; those of excluded tools count too."""
    exclude_tools: list[str] = Field(default_factory=list)
    """Tools whose uses are never cleared."""
    clear_tool_inputs: bool | list[str] = False
    """Whether the arguments of the calls go as well: of all tools, or of those named."""
    clear_at_least: PositiveInt | None = None
    """Tokens that must come free; with less to gain nothing is cleared at all."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages with older tool uses cleared."""
        return self.cleared(messages, self.clear_at_least), None

    def cleared(self, messages: list[ChatMessage], at_least: int | None) -> list[ChatMessage]:
        """Return the messages with older tool uses cleared, if that frees enough tokens."""
        calls: dict[str, tuple[int, ToolCall]] = {}
        uses: list[tuple[int, ToolCall, int, ChatMessageTool]] = []
        for position, message in enumerate(messages):
            if isinstance(message, ChatMessageAssistant):
                calls.update({call.id: (position, call) for call in message.tool_calls or []})
            elif isinstance(message, ChatMessageTool) and message.tool_call_id in calls:
                # A later call may reuse an id.
                uses.append((*calls.pop(message.tool_call_id), position, message))
        changed = list(messages)
        for called_at, call, answered_at, result in uses[: max(len(uses) - self.keep, 0)]:
            if call.function in self.exclude_tools or _KEY in (result.metadata or {}):
                continue
            changed[answered_at] = ChatMessageTool(
                content=prompt("cleared_result"),
                tool_call_id=result.tool_call_id,
                function=result.function,
                metadata={**(result.metadata or {}), _KEY: True},
            )
            inputs = self.clear_tool_inputs
            if call.arguments and (inputs is True or (inputs and call.function in inputs)):
                changed[called_at] = _without_input(changed[called_at], call, messages[called_at])
        pairs = [(old, new) for old, new in zip(messages, changed, strict=True) if new is not old]
        if not pairs:
            raise CompressionError(
                "not_applied",
                "nothing to clear: no tool use is older than those kept, not excluded and not "
                "cleared already",
            )
        counter = token_counter()
        gained = sum(counter.message(old) - counter.message(new) for old, new in pairs)
        if at_least is not None and gained < at_least:
            raise CompressionError(
                "not_applied", f"{gained} tokens could be cleared; clear_at_least is {at_least}"
            )
        return changed


def _without_input(message: ChatMessage, call: ToolCall, original: ChatMessage) -> ChatMessage:
    """Return a message with the arguments of one of its calls cleared, under a new id."""
    original_calls = message.tool_calls or [] if isinstance(message, ChatMessageAssistant) else []
    calls = [replace(each, arguments={}) if each is call else each for each in original_calls]
    return message.model_copy(update={"id": f"{original.id}-c", "tool_calls": calls})
