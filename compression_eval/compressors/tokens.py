"""Count the tokens of messages, the same way for every arm.

`fixtures.tokens` decides how texts are counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from inspect_ai.model import ChatMessage

from compression_eval.fixtures.conversation import message_text
from compression_eval.fixtures.tokens import MESSAGE_OVERHEAD, text_counter

OPAQUE_TOKENS = "compression_eval_opaque_tokens"
"""Metadata key of a message that only its vendor can read: the tokens that the vendor reports."""


@dataclass(frozen=True)
class TokenCounter:
    """Counts tokens of texts and messages; ``name`` says how."""

    name: str
    count: Callable[[str], int]

    def message(self, message: ChatMessage) -> int:
        """Return the tokens of one message: text, reasoning and tool calls, plus its frame.

        An opaque part counts as the vendor reported, since no tokenizer can read it.
        """
        opaque = int((message.metadata or {}).get(OPAQUE_TOKENS, 0))
        return self.count(message_text(message)) + opaque + MESSAGE_OVERHEAD

    def messages(self, messages: Sequence[ChatMessage]) -> int:
        """Return the tokens of a list of messages."""
        return sum(self.message(message) for message in messages)


def is_opaque(message: ChatMessage) -> bool:
    """Return whether only its vendor can read a message."""
    return OPAQUE_TOKENS in (message.metadata or {})


@cache
def token_counter() -> TokenCounter:
    """Return the counter of this process; always the same one.

    It caches texts, because every arm and replicate counts the same messages.
    """
    plain = text_counter()
    return TokenCounter(plain.name, lru_cache(maxsize=16_384)(plain.count))
