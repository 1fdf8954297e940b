"""One plain view of a conversation, whether it comes as Inspect messages or as JSON Lines."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, ContentText

_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class Call:
    """A tool call: the tool's name and its decoded arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Utterance:
    """One message: its number in the conversation, who said it, the text and the tool calls."""

    index: int
    role: str
    text: str
    calls: tuple[Call, ...] = ()


def from_messages(messages: Iterable[ChatMessage]) -> list[Utterance]:
    """Return one utterance per message, numbered from 0; reasoning and media are left out."""
    result = []
    for index, message in enumerate(messages):
        calls: tuple[Call, ...] = ()
        if isinstance(message, ChatMessageAssistant):
            calls = tuple(
                Call(call.function, dict(call.arguments)) for call in message.tool_calls or []
            )
        text = message.text
        if message.role == "tool" and message.error is not None and not text.strip():
            text = message.error.message
        result.append(Utterance(index, message.role, text, calls))
    return result


def from_records(records: Iterable[dict[str, Any]]) -> list[Utterance]:
    """Return the utterances among decoded JSON Lines: objects that have ``role`` and ``text``.

    Anything that has not the expected type is left out; it is data from a conversation, and a
    summary of the rest is worth more than an error.
    """
    result = []
    for at, record in enumerate(records):
        role, text = record.get("role"), record.get("text")
        if role not in _ROLES or not isinstance(text, str | None):
            continue
        index = record.get("index")
        calls = record.get("calls")
        result.append(
            Utterance(
                index if isinstance(index, int) else at,
                str(role),
                text or "",
                tuple(_calls(calls)) if isinstance(calls, list) else (),
            )
        )
    return result


def _calls(items: list[Any]) -> Iterator[Call]:
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            continue
        arguments = item.get("arguments")
        if isinstance(arguments, str):
            arguments = decoded(arguments)
        yield Call(item["name"], arguments if isinstance(arguments, dict) else {})


def decoded(line: str) -> dict[str, Any] | None:
    """Return the JSON object that a line holds, or None if it holds none."""
    line = line.strip()
    if not (line.startswith("{") and line.endswith("}")):
        return None
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_lines(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that stand alone on a line of a text, in order.

    Only a line feed ends a line: other separators may stand unescaped inside JSON.
    """
    return [value for line in text.split("\n") if (value := decoded(line)) is not None]


def user_records(messages: Iterable[ChatMessage]) -> list[list[dict[str, Any]]]:
    """Return the JSON objects of each user message that has any, part by part of its content."""
    result = []
    for message in messages:
        if isinstance(message, ChatMessageUser):
            records = [record for part in _parts(message) for record in json_lines(part)]
            if records:
                result.append(records)
    return result


def _parts(message: ChatMessageUser) -> list[str]:
    if isinstance(message.content, str):
        return [message.content]
    return [part.text for part in message.content if isinstance(part, ContentText)]


def last_request(messages: Iterable[ChatMessage]) -> tuple[int, list[str]]:
    """Return the position of the last user message and its text parts; (-1, []) if none."""
    result: tuple[int, list[str]] = (-1, [])
    for at, message in enumerate(messages):
        if isinstance(message, ChatMessageUser):
            result = (at, _parts(message))
    return result


def leaves(value: object) -> Iterator[tuple[str, str]]:
    """Yield (key, text) for every scalar of nested JSON, the key being the nearest one above."""
    yield from _leaves("", value)


def _leaves(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(str(name), item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(key, item)
    elif value is not None:
        yield key, str(value)
