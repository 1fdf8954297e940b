"""Typed access to JSON of unknown shape: a field may be missing or of any type."""

import json
import re
from typing import Any

_LABEL = re.compile(r"[\w.:-]{1,40}", re.ASCII)


def text_of(value: Any, key: str) -> str:
    """Return a field's text; empty if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def mapping_of(value: Any, key: str) -> dict[str, Any]:
    """Return a field that is an object; empty if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def list_of(value: Any, key: str) -> list[Any]:
    """Return a field that is a list; empty if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def count_of(value: Any, key: str) -> int | None:
    """Return a field that is a whole number of at least 0; None if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        return None
    return found


def label(value: Any) -> str:
    """Return what a format calls a line, fit for an account: a short name, never content."""
    if isinstance(value, str) and _LABEL.fullmatch(value):
        return value
    return "unnamed" if value is None or value == "" else "other"


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
