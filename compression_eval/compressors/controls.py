"""Controls: compressions with a known meaning, to compare the others with."""

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.budget import filled_tail, room_in_target, split, split_system
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.strategy import Strategy, WindowStrategy, strategy
from compression_eval.compressors.tokens import token_counter


@strategy
class FullContext(Strategy):
    """Keep everything: the ceiling. An agent that has to shrink its context cannot use it."""

    summary = "control: keeps everything"
    calls_model = False
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
    calls_model = False
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

    summary = "control: keeps what a summarising arm keeps verbatim, without its summary"
    calls_model = False
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
