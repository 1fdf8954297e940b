"""Which columns of a row hold a conversation, and in which form its messages are."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compression_eval.conversations.fields import label
from compression_eval.conversations.formats import formats
from compression_eval.conversations.readers.sharegpt import is_turn
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError, shorten

PARTS: dict[str, tuple[str, ...]] = {
    "messages": ("messages", "conversations", "conversation", "trajectory", "input"),
    "session": ("session_id", "conversation_id", "instance_id", "id"),
    "model": ("model", "model_name"),
    "system": ("system", "system_prompt"),
    "tools": ("tools",),
}
"""The parts of a conversation, and the columns in which they are looked for unless named."""

_MESSAGE_FORMS = ("openai-responses", "anthropic", "openai-chat")


@dataclass(frozen=True)
class Form:
    """A row's conversation, as the reader of a format wants it."""

    format: str
    value: dict[str, Any]
    columns: tuple[str, ...]
    """The columns that it was taken from."""


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse parts that a conversation does not have.

    Raises:
        DataError: One is unknown.
    """
    for part in columns:
        if part not in PARTS:
            raise DataError(
                f"--column: unknown part {shorten(part)}, expected one of {', '.join(PARTS)}"
            )


def columns_for(place: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, str]:
    """Return which column holds each part, for those that are there.

    Raises:
        DataError: A column that was named is not there, or none holds messages.
    """
    for part, column in columns.items():
        if column not in row:
            raise DataError(
                f"{place}: --column {part}: there is no column {shorten(column)}, "
                f"there are {_names(row)}"
            )
    found = dict(columns)
    for part, names in PARTS.items():
        there = next((name for name in names if name in row), None)
        if part not in found and there is not None:
            found[part] = there
    if "messages" not in found:
        raise DataError(
            f"{place}: no column holds messages, there are {_names(row)}; "
            "name it with --column messages=COLUMN"
        )
    return found


def form_of(
    row: Mapping[str, Any],
    columns: Mapping[str, str],
    source: Callable[[Any], SourceFile],
) -> Form | str:
    """Return the conversation of a row, or why there is none.

    Args:
        row: Its columns.
        columns: Which of them hold the parts.
        source: Makes a source of a value, for what tells the forms apart.
    """
    messages = _decoded(row.get(columns["messages"]))
    if not isinstance(messages, list) or not messages:
        return "its column for messages holds no list of messages"
    parts = {part: _decoded(row.get(column)) for part, column in columns.items()}
    model = parts.get("model")
    system, tools = parts.get("system"), parts.get("tools")
    session = parts.get("session")
    frame = {
        "model": model if isinstance(model, str) else "",
        "tools": tools if isinstance(tools, list) else [],
    }
    used = tuple(columns.values())
    name = str(session) if isinstance(session, str | int) else ""
    if any(is_turn(message) for message in messages):
        turns = [{"from": "system", "value": system}] if isinstance(system, str) else []
        return Form(
            "hermes-jsonl", {**frame, "id": name, "conversations": [*turns, *messages]}, used
        )
    return _of_messages(messages, frame, system, name, used, source)


def _of_messages(
    messages: list[Any],
    frame: dict[str, Any],
    system: Any,
    name: str,
    used: tuple[str, ...],
    source: Callable[[Any], SourceFile],
) -> Form | str:
    known = formats()
    for form in _MESSAGE_FORMS:
        if not known[form].recognise(source(messages)):
            continue
        if form == "openai-responses":
            value = {**frame, "input": messages}
            if isinstance(system, str):
                value["instructions"] = system
        elif form == "anthropic":
            value = {**frame, "messages": messages}
            if system:
                value["system"] = system
        else:
            before = [{"role": "system", "content": system}] if isinstance(system, str) else []
            value = {**frame, "messages": [*before, *messages], "session_id": name}
        return Form(form, value, used)
    kinds = sorted({label(_role(message)) for message in messages[:50]})
    return f"its messages are of no known form (roles: {', '.join(kinds)})"


def other_columns(row: Mapping[str, Any], form: Form) -> int:
    """Return how many columns of a row hold something that is no part of its conversation."""
    return sum(
        column not in form.columns and value is not None and value != ""
        for column, value in row.items()
    )


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _decoded(value: Any) -> Any:
    """Return what a column holds; tables often hold lists as JSON text."""
    if isinstance(value, str) and value[:64].lstrip().startswith(("[", "{")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _names(row: Mapping[str, Any]) -> str:
    return ", ".join(shorten(str(name)) for name in list(row)[:20]) or "none"
