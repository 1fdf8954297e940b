"""The local compaction of Codex CLI: recent user messages word for word, and a handoff summary.

Source: ``codex-rs/core/src/compact.rs`` of the public repository. Its prompt and the prefix of the
summary are written anew here.
"""

from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    CompactionStrategy,
    Model,
    ModelOutput,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field

from compression_eval.compressors.clipping import CUT_KEY
from compression_eval.compressors.fitting import fitted
from compression_eval.compressors.products import (
    ProductArguments,
    asked_after,
    filled,
    nothing_to_do,
    set_apart,
)
from compression_eval.compressors.refusal import stop_reason
from compression_eval.compressors.spec import Compressor
from compression_eval.compressors.summarising import completion
from compression_eval.compressors.tokens import TokenCounter, token_counter
from compression_eval.compressors.window import groups

_KEY = "compression_eval_codex"


class CodexArguments(ProductArguments):
    """What is kept beside the summary."""

    user_tokens: int = Field(default=20_000, ge=0)
    """Tokens of user messages kept, newest first; the one that no longer fits is shortened."""


class Codex(CompactionStrategy):
    """Keep recent user messages and replace everything else by a summary after them.

    Args:
        arguments: Prompt, focus and budget.
        threshold: When an agent that uses this strategy compresses; see Inspect.
    """

    def __init__(self, arguments: CodexArguments, *, threshold: int | float = 0.9) -> None:
        super().__init__(type="summary", threshold=threshold, memory=False)
        self.arguments = arguments

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Compress a conversation.

        Args:
            model: Writes the summary; one call, and more if the conversation is over its window.
            messages: The conversation; the model also reads an earlier summary in it.
            tools: The tools it was had with.

        Returns:
            System messages, user messages, summary; and the message with the summary.

        Raises:
            CompressionError: Only user messages and a summary are there, or no usable reply.
        """
        conversation = set_apart(messages, _KEY)
        if all(message.role == "user" for message in conversation.body):
            raise nothing_to_do("there are only user messages, and those are kept")
        said = messages[len(conversation.system) :]
        output = await _asked(
            model, conversation.system, said, tools, self.arguments.instructions("codex")
        )
        text = completion(output)
        message = ChatMessageUser(
            content=filled("codex_carrier", summary=text), metadata={_KEY: text}
        )
        users = [m for m in conversation.body if isinstance(m, ChatMessageUser)]
        kept = recent(users, self.arguments.user_tokens, token_counter())
        return [*conversation.system, *kept, message], message


async def _asked(
    model: Model,
    system: list[ChatMessage],
    said: list[ChatMessage],
    tools: list[ToolInfo],
    instructions: str,
) -> ModelOutput:
    """Return the reply; over the model's window, the oldest messages are left out and it is asked
    again, twice as many each time, so that a long conversation does not cost a call per message.
    """  # noqa: D205 - one sentence
    pieces = groups(said)
    left_out, step = 0, 1
    while True:
        rest = [message for piece in pieces[left_out:] for message in piece]
        output = await asked_after(model, [*system, *rest], tools, instructions)
        if stop_reason(output) != "model_length" or left_out >= len(pieces) - 1:
            return output
        left_out = min(left_out + step, len(pieces) - 1)
        step *= 2


def recent(
    users: list[ChatMessageUser], budget: int, counter: TokenCounter
) -> list[ChatMessageUser]:
    """Return the newest user messages within a budget, in order; the oldest perhaps shortened.

    Args:
        users: User messages, oldest first.
        budget: Tokens of their texts.
        counter: Counts the tokens.
    """
    kept: list[ChatMessageUser] = []
    left = budget
    for message in reversed(users):
        if left <= 0:
            break
        tokens = counter.count(message.text)
        if tokens > left:
            if text := fitted(message.text, left, counter.count, "ends"):
                kept.append(
                    message.model_copy(
                        update={
                            "content": text,
                            "metadata": {**(message.metadata or {}), CUT_KEY: True},
                        }
                    )
                )
            break
        kept.append(message)
        left -= tokens
    return kept[::-1]


COMPRESSOR = Compressor(
    "codex",
    "Codex CLI's local compaction: recent user messages, then a handoff summary",
    CodexArguments,
    Codex,
    calls_model=True,
)
