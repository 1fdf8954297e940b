"""Arguments of tool calls as a fixture wants them: always a JSON object."""

import json
from typing import Any

from compression_eval.conversations.cleaning import clean
from compression_eval.fixtures.models import MAX_NESTING, broken_text, deeper_than


def json_object(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call as an object, whatever the model wrote.

    Args:
        arguments: JSON text as a rule. Text that is no JSON object, or one nested too deeply,
            becomes ``{"input": text}``, the form in which tools with one free argument are
            recorded elsewhere.
    """
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = arguments
    if not isinstance(value, dict) or deeper_than(value, MAX_NESTING):
        value = {"input": value if isinstance(value, str) else arguments}
    cleaned: dict[str, Any] = _cleaned(value) if broken_text(value) is not None else value
    return cleaned


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value
