"""The local equal of Anthropic's ``clear_tool_uses_20250919``: older tool uses are cleared.

Source: the context editing page of Anthropic's documentation and the parameter types of its SDK.
The trigger is left out because compression is forced here.
"""

from collections.abc import Sequence
from dataclasses import replace

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    CompactionStrategy,
    Model,
)
from inspect_ai.tool import ToolInfo
from pydantic import NonNegativeInt, PositiveInt, validate_call

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.tokens import token_counter

_KEY = "compression_eval_cleared"


class ClearToolsCompaction(CompactionStrategy):
    """Replace the results of older tool uses, and if asked their arguments, by a placeholder.

    Args:
        keep: Tool uses left alone, newest first; those of excluded tools count too.
        exclude_tools: Tools whose uses are never cleared.
        clear_tool_inputs: Whether the arguments of the calls go as well: of all tools, or of those
            named.
        clear_at_least: Tokens that must come free; with less to gain nothing is cleared at all.
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
        threshold: int | float = 0.9,
    ) -> None:
        super().__init__(type="edit", threshold=threshold, memory=False)
        self.keep = keep
        self.exclude_tools = exclude_tools
        self.clear_tool_inputs = clear_tool_inputs
        self.clear_at_least = clear_at_least

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages with older tool uses cleared.

        Raises:
            CompressionError: There is nothing to clear, or less than ``clear_at_least``.
        """
        uses = self._uses_to_clear(messages)
        changed = [
            self._cleared(message, {identifier for at, identifier in uses if at == position})
            for position, message in enumerate(messages)
        ]
        pairs = [(old, new) for old, new in zip(messages, changed, strict=True) if new is not old]
        if not pairs:
            raise CompressionError(
                "not_applied",
                "nothing to clear: no tool use is older than those kept, not excluded and not "
                "cleared already",
            )
        counter = token_counter()
        gained = sum(counter.message(old) - counter.message(new) for old, new in pairs)
        if self.clear_at_least is not None and gained < self.clear_at_least:
            raise CompressionError(
                "not_applied",
                f"{gained} tokens could be cleared; clear_at_least is {self.clear_at_least}",
            )
        return changed, None

    def _uses_to_clear(self, messages: Sequence[ChatMessage]) -> set[tuple[int, str]]:
        """Return the ids of the uses to be cleared, each with both positions of its messages."""
        calls: dict[str, tuple[int, str]] = {}
        uses: list[tuple[int, int, str, bool]] = []
        for position, message in enumerate(messages):
            if isinstance(message, ChatMessageAssistant):
                made = message.tool_calls or []
                calls.update({call.id: (position, call.function) for call in made})
            elif isinstance(message, ChatMessageTool) and message.tool_call_id in calls:
                # An id may stand for another call later on.
                called_at, tool = calls.pop(message.tool_call_id)
                free = tool not in self.exclude_tools and _KEY not in (message.metadata or {})
                uses.append((called_at, position, message.tool_call_id, free))
        return {
            (position, identifier)
            for called_at, answered_at, identifier, free in uses[: max(len(uses) - self.keep, 0)]
            for position in (called_at, answered_at)
            if free
        }

    def _cleared(self, message: ChatMessage, uses: set[str]) -> ChatMessage:
        """Return a message with some of its uses cleared; the same object if none changes."""
        if isinstance(message, ChatMessageTool) and uses:
            return ChatMessageTool(
                content=prompt("cleared_result"),
                tool_call_id=message.tool_call_id,
                function=message.function,
                metadata={**(message.metadata or {}), _KEY: True},
            )
        if isinstance(message, ChatMessageAssistant) and uses:
            before = message.tool_calls or []
            calls = [
                replace(call, arguments={})
                if call.id in uses and self._clears_input(call.function)
                else call
                for call in before
            ]
            if any(new.arguments != old.arguments for new, old in zip(calls, before, strict=True)):
                return message.model_copy(update={"id": f"{message.id}-c", "tool_calls": calls})
        return message

    def _clears_input(self, tool: str) -> bool:
        inputs = self.clear_tool_inputs
        return inputs if isinstance(inputs, bool) else tool in inputs
