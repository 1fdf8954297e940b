"""Cut texts so that they fit a budget: the longest ones give way first, to a common length."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ContentText

from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.tokens import TokenCounter, message_text

CUT_KEY = "compression_eval_cut"
"""Metadata key of a message that was kept, but not to its end."""

T = TypeVar("T")

_LEAST_CHARACTERS = 10
_HEADINGS = re.compile(r"^(?=#{1,6} )", re.MULTILINE)


def clipped_group(
    group: Sequence[ChatMessage], budget: int, counter: TokenCounter
) -> list[ChatMessage] | None:
    """Return the messages of a group with their longest texts cut until they fit a budget.

    Texts are what the messages say and the string values in the arguments of tool calls. The
    beginnings are kept. A message that was cut is marked in its metadata and keeps its id.

    Args:
        group: Messages that stay together, such as a tool call and its result.
        budget: Tokens they may take.
        counter: Counts the tokens.

    Returns:
        The messages, or None if the budget is too small for anything worth keeping.
    """

    def fitting(characters: int) -> list[ChatMessage] | None:
        messages = [_clipped_message(message, characters) for message in group]
        return messages if counter.messages(messages) <= budget else None

    most = sum(len(message_text(message)) for message in group)
    return _largest(fitting, most=most)


def clipped_sections(text: str, budget: int, count: Callable[[str], int]) -> str | None:
    """Return a Markdown text with its longest sections cut until it fits a budget.

    Args:
        text: Sections begin at headings.
        budget: Tokens it may take.
        count: Counts the tokens of a text.

    Returns:
        The text as it is if it fits; None if the budget is too small for anything worth keeping.
    """
    if count(text) <= budget:
        return text
    sections = [part.strip() for part in _HEADINGS.split(text) if part.strip()]

    def fitting(characters: int) -> str | None:
        joined = "\n\n".join(_clipped(section, characters) for section in sections)
        return joined if count(joined) <= budget else None

    return _largest(fitting, most=max(map(len, sections), default=0))


def _largest(fitting: Callable[[int], T | None], *, most: int) -> T | None:
    """Return what the greatest number of characters up to ``most`` gives that fits."""
    best = fitting(_LEAST_CHARACTERS)
    if best is None:
        return None
    low, high = _LEAST_CHARACTERS, max(most, _LEAST_CHARACTERS)
    while low < high:
        middle = (low + high + 1) // 2
        found = fitting(middle)
        if found is None:
            high = middle - 1
        else:
            best, low = found, middle
    return best


def _clipped(text: str, characters: int) -> str:
    mark = f"\n{prompt('cut')}"
    if len(text) <= characters + len(mark):
        return text
    return text[:characters].rstrip() + mark


def _clipped_message(message: ChatMessage, characters: int) -> ChatMessage:
    update: dict[str, Any] = {}
    content = message.content
    if isinstance(content, str):
        update["content"] = _clipped(content, characters)
    else:
        update["content"] = [
            part.model_copy(update={"text": _clipped(part.text, characters)})
            if isinstance(part, ContentText)
            else part
            for part in content
        ]
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        update["tool_calls"] = [
            dataclasses.replace(call, arguments=_clipped_values(call.arguments, characters))
            for call in message.tool_calls
        ]
    if all(getattr(message, name) == value for name, value in update.items()):
        return message
    update["metadata"] = {**(message.metadata or {}), CUT_KEY: True}
    return message.model_copy(update=update)


def _clipped_values(value: Any, characters: int) -> Any:
    if isinstance(value, str):
        return _clipped(value, characters)
    if isinstance(value, Mapping):
        return {name: _clipped_values(item, characters) for name, item in value.items()}
    if isinstance(value, list):
        return [_clipped_values(item, characters) for item in value]
    return value
