"""Count tokens the same way for every arm.

Ratios between arms only mean something if one tokenizer counts them all, whatever model runs, so
nothing here asks a provider. The tokenizer is ``o200k_base``. Its vocabulary comes from the
``bpe-openai`` package where that is installed (the ``tokenizer`` extra), else from tiktoken's
cache or download. Where neither can be had, tokens are estimated, and the name says so.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ContentData,
    ContentReasoning,
    ContentText,
)

ENCODING = "o200k_base"
ESTIMATE = f"estimate of {ENCODING} (its vocabulary could not be loaded)"

OPAQUE_TOKENS = "compression_eval_opaque_tokens"
"""Metadata key of a message that only its vendor can read; the tokens it reports for it."""

_MESSAGE_OVERHEAD = 4
"""Tokens that a chat template spends on a message's role and delimiters, about."""

_PIECES = re.compile(r"[぀-ヿ㐀-鿿가-힯]|[A-Za-z]+|\d+|\s+|[^\w\s]")


@dataclass(frozen=True)
class TokenCounter:
    """Counts tokens of texts and messages; ``name`` says how."""

    name: str
    count: Callable[[str], int]

    def message(self, message: ChatMessage) -> int:
        """Return the tokens of one message: text, reasoning and tool calls, plus its frame.

        An opaque part counts as what its vendor reported, since no tokenizer can read it.
        """
        opaque = int((message.metadata or {}).get(OPAQUE_TOKENS, 0))
        return self.count(message_text(message)) + opaque + _MESSAGE_OVERHEAD

    def messages(self, messages: Sequence[ChatMessage]) -> int:
        """Return the tokens of a list of messages."""
        return sum(self.message(message) for message in messages)


def content_text(message: ChatMessage) -> str:
    """Return the text of a message's content, reasoning included, without its tool calls."""
    parts: list[str] = []
    if isinstance(message.content, str):
        parts.append(message.content)
    else:
        for part in message.content:
            if isinstance(part, ContentText):
                parts.append(part.text)
            elif isinstance(part, ContentReasoning):
                parts.append(part.reasoning)
            elif isinstance(part, ContentData):
                parts.append(vendor_summary(part))
    return "\n".join(part for part in parts if part)


def message_text(message: ChatMessage) -> str:
    """Return all text of a message that costs tokens: content and tool calls."""
    parts = [content_text(message)]
    if isinstance(message, ChatMessageAssistant):
        for call in message.tool_calls or []:
            parts.append(f"{call.function} {json.dumps(call.arguments, ensure_ascii=False)}")
    return "\n".join(part for part in parts if part)


def vendor_summary(part: ContentData) -> str:
    """Return the text of a vendor's compaction block; empty if it is encrypted."""
    metadata = part.data.get("compaction_metadata")
    content = metadata.get("content") if isinstance(metadata, dict) else None
    return content if isinstance(content, str) else ""


def is_opaque(message: ChatMessage) -> bool:
    """Return whether a message holds something that only its vendor can read."""
    return OPAQUE_TOKENS in (message.metadata or {})


@cache
def token_counter() -> TokenCounter:
    """Return the counter of this process; always the same one."""
    exact = _exact()
    if exact is None:
        return TokenCounter(ESTIMATE, _estimate)
    return TokenCounter(ENCODING, lru_cache(maxsize=16_384)(exact))


def _exact() -> Callable[[str], int] | None:
    try:
        import bpe_openai

        bundled = bpe_openai.get_encoding(ENCODING)
    except ImportError:
        pass
    else:
        return lambda text: len(bundled.encode_ordinary(text))
    if os.environ.get("COMPRESSION_EVAL_TOKENIZER") == "estimate":
        return None
    try:
        import tiktoken

        encoding = tiktoken.get_encoding(ENCODING)
    except Exception:
        return None
    return lambda text: len(encoding.encode_ordinary(text))


def _estimate(text: str) -> int:
    """Estimate tokens from pieces of text.

    A CJK character or a punctuation mark counts as one, a word as one for each six letters, digits
    as one for each three: what ``o200k_base`` does to prose and source code on average.
    """
    total = 0.0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.isdigit():
            total += -(-len(piece) // 3)
        elif first.isspace():
            total += 0.0 if piece == " " else 1.0
        elif first.isascii() and first.isalpha():
            total += -(-len(piece) // 6)
        else:
            total += 0.75
    return round(total)
