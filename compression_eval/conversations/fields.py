"""Typed access to JSON of unknown shape: a field may be missing or of any type.

Each function takes a value and the keys that lead to a field, from the outside in.
"""

import json
import re
from typing import Any

from compression_eval.fixtures.models import MAX_NESTING, broken_text, deeper_than

_LABEL = re.compile(r"[\w.:-]{1,40}", re.ASCII)
_SHOWN_CHARACTERS = 60


def value_of(value: Any, *keys: str) -> Any:
    """Return a field, whatever it is; None if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_of(value: Any, *keys: str) -> str:
    """Return a field's text; empty if there is none."""
    found = value_of(value, *keys)
    return found if isinstance(found, str) else ""


def mapping_of(value: Any, *keys: str) -> dict[str, Any]:
    """Return a field that is an object; empty if there is none."""
    found = value_of(value, *keys)
    return found if isinstance(found, dict) else {}


def list_of(value: Any, *keys: str) -> list[Any]:
    """Return a field that is a list; empty if there is none."""
    found = value_of(value, *keys)
    return found if isinstance(found, list) else []


def count_of(value: Any, *keys: str) -> int | None:
    """Return a field that is a whole number of at least 0; None if there is none."""
    found = value_of(value, *keys)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        return None
    return found


def identifier(value: Any, *keys: str) -> str:
    """Return a field that names something, a text or a whole number, as text; empty if none."""
    found = value_of(value, *keys)
    if isinstance(found, str):
        return found
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else ""


def label(value: Any) -> str:
    """Return what a format calls a line, fit for an account: a short name, never content."""
    if isinstance(value, str) and _LABEL.fullmatch(value):
        return value
    return "unnamed" if value is None or value == "" else "other"


def origin(*parts: str) -> str:
    """Return names and versions that a file gives itself, fit for one line."""
    text = " ".join(part for part in parts if part)[:_SHOWN_CHARACTERS]
    return "".join(character if character.isprintable() else " " for character in text).strip()


def as_text(value: Any) -> str:
    """Return a value as text: texts as they are, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[nested too deeply]"


def from_json(text: Any) -> Any:
    """Return what a text with JSON holds; None if it holds none."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def clean(text: str) -> str:
    """Return text that can be written as UTF-8: halves of surrogate pairs become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
