"""Typed access to JSON of unknown shape, and texts that are fit for a fixture or an account.

Readers take fields from files that anybody may have written: a field may be missing or of any type.
`Json` returns it typed, or as if it were missing.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from compression_eval.fixtures.models import (
    MAX_NESTING,
    ToolDefinition,
    broken_text,
    deeper_than,
)

_LABEL = re.compile(r"[\w.:-]{1,40}", re.ASCII)
_SHOWN_CHARACTERS = 60
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""Parameters of a tool that takes one text; calls of such are recorded as ``{"input": …}``."""


class Json(dict[str, Any]):
    """A JSON object of unknown shape: a field may be missing or of any type.

    Each method takes the keys that lead to a field, from the outside in.
    """

    @classmethod
    def of(cls, value: Any) -> "Json":
        """Return a value that is an object; empty if it is something else."""
        if isinstance(value, cls):
            return value
        return cls(value) if isinstance(value, dict) else cls()

    def at(self, key: str, *inner: str) -> Any:
        """Return a field, whatever it is; None if there is none."""
        value = self.get(key)
        for each in inner:
            value = value.get(each) if isinstance(value, dict) else None
        return value

    def text(self, *keys: str) -> str:
        """Return a field's text; empty if there is none."""
        value = self.at(*keys)
        return value if isinstance(value, str) else ""

    def first(self, *keys: str) -> str:
        """Return the first of some fields that is a text and not empty; empty if there is none."""
        return next(filter(None, map(self.text, keys)), "")

    def name(self, *keys: str) -> str:
        """Return a field that names something, a text or a whole number, as text."""
        value = self.at(*keys)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return value if isinstance(value, str) else ""

    def count(self, *keys: str) -> int | None:
        """Return a field that is a whole number of at least 0; None if there is none."""
        value = self.at(*keys)
        whole = isinstance(value, int) and not isinstance(value, bool)
        return value if whole and value >= 0 else None

    def json(self, *keys: str) -> str:
        """Return a field as text: a text as it is, anything else as JSON."""
        return as_text(self.at(*keys))

    def entry(self, *keys: str) -> "Json":
        """Return a field that is an object; empty if there is none."""
        return Json.of(self.at(*keys))

    def listed(self, *keys: str) -> list[Any]:
        """Return a field that is a list; empty if there is none."""
        value = self.at(*keys)
        return value if isinstance(value, list) else []

    def entries(self, *keys: str) -> list["Json"]:
        """Return the items of a field that is a list; what is no object becomes an empty one."""
        return entries(self.listed(*keys))


def entries(values: Any) -> list[Json]:
    """Return the items of a list; what is no object becomes an empty one."""
    return [Json.of(value) for value in values] if isinstance(values, list) else []


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
    """Return what a text with JSON contains; None if it contains none."""
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

    What is no JSON object, or one nested too deeply, becomes ``{"input": text}``, the form in
    which tools with one free argument are recorded elsewhere.
    """
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = arguments
    if not isinstance(value, dict) or deeper_than(value, MAX_NESTING):
        value = {"input": value if isinstance(value, str) else arguments}
    broken = broken_text(value) is not None
    cleaned: dict[str, Any] = from_json(clean(as_text(value))) if broken else value
    return cleaned


def tool_definitions(values: Iterable[Any]) -> tuple[list[ToolDefinition], int]:
    """Return the tools that a file defines, and how many it names without a schema.

    They may be of the OpenAI chat form (``{"type": "function", "function": {…}}``), of the flat
    forms (``name`` with ``parameters``, ``input_schema`` or ``inputSchema``), custom tools with one
    free text, or groups of such under ``tools``.
    """
    found: dict[str, ToolDefinition] = {}
    without = 0
    groups = map(Json.of, values)
    for tool in (item for group in groups for item in group.entries("tools") or [group]):
        inner = tool.entry("function") or tool
        schemas = map(inner.at, ("parameters", "input_schema", "inputSchema", "schema"))
        known = {"custom": _FREE_TEXT, "function": {}}.get(tool.text("type"))
        schema = next((value for value in schemas if isinstance(value, dict)), known)
        names = {key: inner.text(key) for key in ("name", "description")}
        function = from_json(clean(as_text({**names, "parameters": schema})))
        try:
            definition = ToolDefinition.model_validate({"type": "function", "function": function})
        except ValidationError:
            definition = None
        if schema is None or definition is None:
            without += 1
        else:
            found[definition.function.name] = definition
    return list(found.values()), without
