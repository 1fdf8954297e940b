"""Controls: compressions with a known meaning, against which the others are read."""

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy, Model
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.arguments import WindowArguments
from compression_eval.compressors.budget import plan_window
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.tokens import token_counter


class FullContext(CompactionStrategy):
    """Keep everything: the ceiling."""

    def __init__(self) -> None:
        super().__init__(type="trim", memory=False)

    async def compact(
        self,
        model: Model,  # noqa: ARG002
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages as they are."""
        return list(messages), None


class NoContext(CompactionStrategy):
    """Keep the system prompt only: what can be guessed."""

    def __init__(self) -> None:
        super().__init__(type="trim", memory=False)

    async def compact(
        self,
        model: Model,  # noqa: ARG002
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the system messages."""
        return [message for message in messages if message.role == "system"], None


class TailOnly(CompactionStrategy):
    """Keep the head and tail that a summarising arm keeps, and nothing in between.

    Args:
        arguments: The budgets of the arm that this is a control for.
    """

    def __init__(self, arguments: WindowArguments) -> None:
        super().__init__(type="trim", memory=False)
        self.arguments = arguments

    async def compact(
        self,
        model: Model,  # noqa: ARG002
        messages: list[ChatMessage],
        tools: list[ToolInfo],  # noqa: ARG002
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return head and tail, with a mark where the rest was."""
        mark = ChatMessageUser(content=prompt("carrier_empty"))
        window = plan_window(messages, self.arguments, mark, token_counter())
        if [*window.head, *window.tail] == messages:
            return messages, None
        return [*window.head, mark, *window.tail], None
