"""Strategies that call no model: controls, masking of tool results, and clearing of tool uses.

Sources: SWE-agent's history processor that keeps the last N observations, and "The Complexity Trap"
(Lindenbauer et al., 2025), for `MaskingCompaction`; the context editing page of Anthropic's
documentation (``clear_tool_uses_20250919``) for `ClearToolsCompaction`, whose trigger is left out
because compression is forced here.
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

from compression_eval.compressors.budget import filled_tail, room_in_target, split, split_system
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import filled, prompt
from compression_eval.compressors.strategy import Strategy, WindowStrategy, strategy
from compression_eval.compressors.tokens import token_counter

_MASKED = "compression_eval_masked"
_CLEARED = "compression_eval_cleared"
"""Metadata keys of tool results that were replaced."""


@strategy
class FullContext(Strategy):
    """Keep everything: the ceiling. An agent that has to shrink its context cannot use it."""

    summary = "control: keeps everything"
    exempt = True
    kind = "trim"

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages as they are."""
        return list(messages), None


@strategy
class NoContext(Strategy):
    """Keep the system prompt only: the floor, what can be guessed."""

    summary = "control: keeps the system prompt only"
    exempt = True
    kind = "trim"

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the system prompt, without system messages that came later."""
        return split_system(messages)[0], None


@strategy
class TailOnly(WindowStrategy):
    """Keep the head and tail that a summarising arm keeps, and nothing in between."""

    summary = "control: the last messages, and no summary of the others"
    kind = "trim"

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head and tail, with a mark where the rest was."""
        mark = ChatMessageUser(content=prompt("carrier_empty"))
        target = self.target_tokens
        if target is None:
            window = split(messages, self.head_tokens, self.tail_tokens)
            head, tail = window.head, window.tail
        else:
            frame = token_counter().message(mark)
            room = room_in_target(messages, target, self.head_tokens, frame)
            window = split(messages, self.head_tokens, 0)
            head, tail = window.head, filled_tail(window.span, room, target)
        if [*head, *tail] == messages:
            return messages, None
        return [*head, mark, *tail], None


@strategy
class MaskingCompaction(Strategy):
    """Replace all but the newest tool results by a note with their number of lines.

    The agent's reasoning and actions stay verbatim; only its observations go.
    """

    summary = "older tool results become a note with their number of lines"
    kind = "edit"

    keep: NonNegativeInt = 10
    """Tool results kept whole, newest first."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages with older tool results masked."""
        results = [m for m in messages if isinstance(m, ChatMessageTool)]
        old = results[: max(len(results) - self.keep, 0)]
        masked = {id(m): _masked(m) for m in old if _MASKED not in (m.metadata or {})}
        if not masked:
            raise CompressionError(
                "not_applied",
                f"nothing to mask: of {len(results)} tool results the last "
                f"{self.keep} are kept, and older ones are masked already",
            )
        return [masked.get(id(message), message) for message in messages], None


def _masked(message: ChatMessageTool) -> ChatMessageTool:
    lines = len(message.text.splitlines())
    return _replaced(message, filled("masked_result", lines=lines), _MASKED, lines)


def _replaced(message: ChatMessageTool, text: str, key: str, value: object) -> ChatMessageTool:
    """Return a new result for the same call, with a mark in its metadata."""
    return ChatMessageTool(
        content=text,
        tool_call_id=message.tool_call_id,
        function=message.function,
        metadata={**(message.metadata or {}), key: value},
    )


@strategy
class ClearToolsCompaction(Strategy):
    """Replace the results of older tool uses, and optionally their arguments, by a placeholder."""

    summary = "Anthropic's tool clearing done locally: older tool results are removed"
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
            if call.function in self.exclude_tools or _CLEARED in (result.metadata or {}):
                continue
            changed[answered_at] = _replaced(result, prompt("cleared_result"), _CLEARED, True)
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
        if self.clear_at_least is not None and gained < self.clear_at_least:
            raise CompressionError(
                "not_applied",
                f"{gained} tokens could be cleared; clear_at_least is {self.clear_at_least}",
            )
        return changed, None


def _without_input(message: ChatMessage, call: ToolCall, original: ChatMessage) -> ChatMessage:
    """Return a message with the arguments of one of its calls cleared, under a new id."""
    original_calls = message.tool_calls or [] if isinstance(message, ChatMessageAssistant) else []
    calls = [replace(each, arguments={}) if each is call else each for each in original_calls]
    return message.model_copy(update={"id": f"{original.id}-c", "tool_calls": calls})
