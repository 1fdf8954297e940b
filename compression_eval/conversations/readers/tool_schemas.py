"""Tool definitions of several forms, as a fixture has them."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from compression_eval.conversations.cleaning import clean
from compression_eval.conversations.fields import as_text, list_of, mapping_of, text_of
from compression_eval.fixtures.models import ToolDefinition

_FREE_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""Parameters of a tool that takes one text; calls of such are recorded as ``{"input": …}``."""


def tool_definitions(values: list[Any]) -> tuple[list[ToolDefinition], int]:
    """Return the tools that a file defines, and how many it names without a schema.

    Args:
        values: Of the OpenAI chat form (``{"type": "function", "function": {…}}``), of the flat
            forms (``name`` with ``parameters``, ``input_schema`` or ``inputSchema``), custom tools
            with one free text, and groups of such under ``tools``.
    """
    found: dict[str, ToolDefinition] = {}
    without = 0
    for value in _flat(values):
        definition = _definition(value)
        if definition is None:
            without += 1
        else:
            found[definition.function.name] = definition
    return list(found.values()), without


def _flat(values: list[Any]) -> Iterator[Any]:
    for value in values:
        yield from list_of(value, "tools") or [value]


def _definition(value: Any) -> ToolDefinition | None:
    inner = mapping_of(value, "function") or (value if isinstance(value, dict) else {})
    name = text_of(inner, "name")
    schema = next(
        (
            mapping_of(inner, key)
            for key in ("parameters", "input_schema", "inputSchema", "schema")
            if isinstance(inner.get(key), dict)
        ),
        None,
    )
    if schema is None:
        if text_of(value, "type") == "custom":
            schema = _FREE_TEXT
        elif text_of(value, "type") == "function":
            schema = {}
        else:
            return None
    function = {
        "name": name,
        "description": text_of(inner, "description"),
        "parameters": schema,
    }
    try:
        cleaned = json.loads(clean(as_text(function)))
        return ToolDefinition.model_validate({"type": "function", "function": cleaned})
    except (ValidationError, ValueError):
        return None
