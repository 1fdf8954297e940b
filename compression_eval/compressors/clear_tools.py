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
from pydantic import Field

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.products import nothing_to_do
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.tokens import token_counter

_KEY = "compression_eval_cleared"


class ClearToolsArguments(Arguments):
    """The parameters of the server's edit, by the same names."""

    keep: int = Field(default=3, ge=0)
    """Tool uses left alone, newest first; those of excluded tools count too."""
    exclude_tools: list[str] = Field(default_factory=list)
    """Tools whose uses are never cleared."""
    clear_tool_inputs: bool | list[str] = False
    """Whether the arguments of the calls go as well: of all tools, or of those named."""
    clear_at_least: int | None = Field(default=None, gt=0)
    """Tokens that must come free; with less to gain nothing is cleared at all."""


class ClearTools(CompactionStrategy):
    """Replace the results of older tool uses, and if asked their arguments, by a placeholder.

    Args:
        arguments: What is kept and what goes.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: ClearToolsArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="edit", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,  # noqa: ARG002
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages with older tool uses cleared.

        Raises:
            CompressionError: There is nothing to clear, or less than `clear_at_least`.
        """
        clearing = _positions(messages, self.arguments)
        changed = [
            self._cleared(message, clearing.get(index, ()))
            for index, message in enumerate(messages)
        ]
        pairs = [(old, new) for old, new in zip(messages, changed, strict=True) if new is not old]
        if not pairs:
            raise nothing_to_do(
                "nothing to clear: no tool use is older than those kept, not excluded and not "
                "cleared already"
            )
        counter = token_counter()
        gained = sum(counter.message(old) - counter.message(new) for old, new in pairs)
        wanted = self.arguments.clear_at_least
        if wanted is not None and gained < wanted:
            raise nothing_to_do(f"{gained} tokens could be cleared; clear_at_least is {wanted}")
        return changed, None

    def _cleared(self, message: ChatMessage, uses: Sequence[str]) -> ChatMessage:
        """Return a message with some of its uses cleared; the same object if none changes."""
        if isinstance(message, ChatMessageTool) and uses:
            return ChatMessageTool(
                content=prompt("cleared_result"),
                tool_call_id=message.tool_call_id,
                function=message.function,
                metadata={**(message.metadata or {}), _KEY: True},
            )
        if isinstance(message, ChatMessageAssistant) and uses:
            calls = [
                replace(call, arguments={})
                if call.id in uses and self._clears_input(call.function)
                else call
                for call in message.tool_calls or []
            ]
            if any(
                new.arguments != old.arguments
                for new, old in zip(calls, message.tool_calls or [], strict=True)
            ):
                return message.model_copy(update={"id": f"{message.id}-c", "tool_calls": calls})
        return message

    def _clears_input(self, tool: str) -> bool:
        inputs = self.arguments.clear_tool_inputs
        return inputs if isinstance(inputs, bool) else tool in inputs


def _positions(
    messages: Sequence[ChatMessage], arguments: ClearToolsArguments
) -> dict[int, list[str]]:
    """Return, by position of call and result messages, the ids of the uses to be cleared."""
    made: dict[str, tuple[int, str]] = {}
    uses: list[tuple[int, int, str, str, bool]] = []
    for index, message in enumerate(messages):
        if isinstance(message, ChatMessageAssistant):
            made.update({call.id: (index, call.function) for call in message.tool_calls or []})
        elif isinstance(message, ChatMessageTool) and message.tool_call_id in made:
            identifier = message.tool_call_id
            at, tool = made.pop(identifier)
            uses.append((at, index, identifier, tool, _KEY in (message.metadata or {})))
    result: dict[int, list[str]] = {}
    for at, index, identifier, tool, cleared in uses[: max(len(uses) - arguments.keep, 0)]:
        if tool in arguments.exclude_tools or cleared:
            continue
        for position in (at, index):
            result.setdefault(position, []).append(identifier)
    return result


COMPRESSOR = Compressor(
    "clear-tools",
    "Anthropic's tool clearing done locally: all but the newest tool results go",
    ClearToolsArguments,
    ClearTools,
    calls_model=False,
)
