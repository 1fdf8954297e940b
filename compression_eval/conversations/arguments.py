"""Arguments of tool calls as a fixture wants them: always a JSON object."""

import json
from typing import Any

from compression_eval.conversations.cleaning import clean
from compression_eval.fixtures.models import broken_text

_DEEPEST = 200
"""Levels of nesting that are kept as JSON; deeper arguments are kept as text."""


def json_object(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call as an object, whatever the model wrote.

    Args:
        arguments: JSON text as a rule. Text that is no JSON object becomes ``{"input": text}``,
            the form in which tools with one free argument are recorded elsewhere.
    """
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = arguments
    if not isinstance(value, dict) or _deeper_than(value, _DEEPEST):
        value = {"input": value if isinstance(value, str) else arguments}
    cleaned: dict[str, Any] = _cleaned(value) if broken_text(value) is not None else value
    return cleaned


def _deeper_than(value: Any, levels: int) -> bool:
    """Return whether JSON is nested deeper than so many levels, however deep it is."""
    level = [value]
    for _ in range(levels):
        inside = (item for item in level if isinstance(item, dict | list))
        level = [
            inner
            for item in inside
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return any(isinstance(item, dict | list) for item in level)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value
