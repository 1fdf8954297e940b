"""The local compaction of Codex CLI: recent user messages word for word, and a handoff summary.

Source: ``codex-rs/core/src/compact.rs`` of the public repository. Its prompt and the prefix of the
summary are written anew here.
"""

from inspect_ai.model import ChatMessage, ChatMessageUser, Model
from inspect_ai.tool import ToolInfo
from pydantic import NonNegativeInt

from compression_eval.compressors.budget import CUT_KEY, fitted, groups, joined, split_system
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.strategy import carried, strategy
from compression_eval.compressors.summarising import ProductStrategy, asked_after, completion
from compression_eval.compressors.tokens import token_counter
from compression_eval.inspect_models import stop_reason


@strategy
class CodexCompaction(ProductStrategy):
    """Keep recent user messages and replace everything else by a summary after them."""

    summary = "Codex CLI's local compaction: recent user messages, then a handoff summary"
    name = "codex"

    user_tokens: NonNegativeInt = 20_000
    """Tokens of user messages kept, newest first; the one that no longer fits is shortened."""

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return system messages, user messages, summary; and the message with the summary.

        Over the model's window, the oldest messages are dropped and the call is repeated, dropping
        twice as many each time, so that a long conversation does not cost a call per message.
        """
        system, conversation = split_system(messages)
        _, body = carried(conversation, self.key)
        if all(message.role == "user" for message in body):
            raise CompressionError(
                "not_applied", "there are only user messages, and those are kept"
            )
        pieces = groups(conversation)
        left_out, step = 0, 1
        while True:
            shown = [*system, *joined(pieces[left_out:])]
            output = await asked_after(model, shown, tools, self.instructions())
            if stop_reason(output) != "model_length" or left_out >= len(pieces) - 1:
                break
            left_out = min(left_out + step, len(pieces) - 1)
            step *= 2
        message = self.message(completion(output))
        return [*system, *self._recent(body), message], message

    def _recent(self, messages: list[ChatMessage]) -> list[ChatMessageUser]:
        """Return the newest user messages within the budget, in order; the oldest may be cut."""
        count = token_counter().count
        kept: list[ChatMessageUser] = []
        left = self.user_tokens
        for message in reversed([m for m in messages if isinstance(m, ChatMessageUser)]):
            if left <= 0:
                break
            tokens = count(message.text)
            if tokens <= left:
                kept.append(message)
            elif text := fitted(message.text, left, count, "ends"):
                metadata = {**(message.metadata or {}), CUT_KEY: True}
                kept.append(message.model_copy(update={"content": text, "metadata": metadata}))
            left -= tokens
        return kept[::-1]
