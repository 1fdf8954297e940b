"""What the summarising strategies share: what they replace, and what they replace it by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, ModelOutput

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.refusal import NO_CHOICES, refused
from compression_eval.compressors.tokens import TokenCounter
from compression_eval.compressors.window import split


@dataclass(frozen=True)
class Span:
    """The part of a conversation to be summarised, and what stays around it."""

    head: list[ChatMessage]
    previous: ChatMessageUser | None
    """The message that carries the earlier summary."""
    dropped: list[ChatMessage]
    tail: list[ChatMessage]


def find_span(
    messages: Sequence[ChatMessage],
    carrier_key: str,
    head_tokens: int,
    tail_tokens: int,
    counter: TokenCounter,
    *,
    keep_last: bool = True,
) -> Span:
    """Find what is to be summarised; an earlier summary is set apart from the messages.

    Args:
        messages: The conversation, perhaps with a message from an earlier compression.
        carrier_key: Metadata key that marks such a message.
        head_tokens: Budget of the verbatim head.
        tail_tokens: Budget of the verbatim tail.
        counter: Counts the tokens.
        keep_last: Whether the last turn stays in the tail even if it alone is over the budget.

    Raises:
        CompressionError: Everything fits the head and tail, so there is nothing to summarise.
    """
    carriers = [m for m in messages if carrier_key in (m.metadata or {})]
    previous = carriers[-1] if carriers else None
    rest = [message for message in messages if message not in carriers]
    window = split(rest, head_tokens, tail_tokens, counter, keep_last=keep_last)
    if not window.span:
        raise CompressionError(
            "not_applied",
            f"nothing to summarise: the conversation fits the head and tail budgets "
            f"({head_tokens} and {tail_tokens} tokens)",
        )
    return Span(
        head=window.head,
        previous=previous if isinstance(previous, ChatMessageUser) else None,
        dropped=window.span,
        tail=window.tail,
    )


def request(instructions: str, protocol: str, data: str) -> list[ChatMessage]:
    """Return the messages of a summarising call: instructions as system, material as user."""
    return [
        ChatMessageSystem(content=f"{instructions.strip()}\n\n{prompt(protocol)}"),
        ChatMessageUser(content=data),
    ]


def completion(output: ModelOutput) -> str:
    """Return the text of a summarising call.

    Raises:
        CompressionError: The model refused, ran out of room, or said nothing.
    """
    if output.error:
        raise CompressionError("error", f"the summarising model failed: {output.error}")
    if output.empty:
        raise CompressionError("error", NO_CHOICES)
    if refused(output):
        raise CompressionError("aborted", "the summarising model refused")
    if output.stop_reason in ("max_tokens", "model_length"):
        raise CompressionError(
            "error", f"the summary was cut off (stop reason {output.stop_reason})"
        )
    text = output.completion.strip()
    if not text:
        raise CompressionError("empty", "the summarising model returned no text")
    return text


def carrier(text: str, metadata: dict[str, Any]) -> ChatMessageUser:
    """Return the message that stands in a state for what was removed."""
    return ChatMessageUser(content=f"{prompt('carrier')}\n\n{text}", metadata=metadata)
