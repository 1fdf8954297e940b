r"""Reach every text as its writer meant it: JSON that stands in a text is decoded first.

On JSON as it is written a rule meets ``\n/Users/NAME``, takes the ``n`` for a letter before the
path, and misses it. So a text that is JSON, or JSON line by line, is taken apart into its
strings, to any depth; what is changed is written back the way it was, and every byte between
stays.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

_LITERAL = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ESCAPED_NON_ASCII = re.compile(r"\\u(?:00[89a-fA-F]|0[1-9a-fA-F]|[1-9a-fA-F])")
_ESCAPED_SLASH = re.compile(r"(?<!\\)(?:\\\\)*\\/")
_DEPTH = 8
_SHOWN_VALUE = 4000

Rewrite = Callable[[str], str]


class _Object(list[tuple[str, Any]]):
    """The members of an object, repeated keys too, which a mapping would lose."""


def rewrite_text(text: str, rewrite: Rewrite, depth: int = 0) -> str:
    """Return a text with every decoded string in it rewritten.

    Args:
        text: Any text; JSON in it is taken apart.
        rewrite: What is done to each string that is not itself JSON, and to each object key.
        depth: How many layers of JSON this one stands in.
    """
    if depth < _DEPTH and _may_be_json(text):
        if _is_json(text):
            return _LITERAL.sub(lambda found: _rewrite_literal(found[0], rewrite, depth), text)
        if _is_json_lines(text):
            lines = text.split("\n")
            return "\n".join(rewrite_text(line, rewrite, depth) for line in lines)
    return rewrite(text)


def documents(text: str, depth: int = 0) -> Iterator[str]:
    """Yield what the rules read to learn from a text: its decoded strings, and names with values.

    A value in JSON often tells what it is by its key alone, so each JSON document also comes as
    lines of the form ``key = "value"``.
    """
    if depth < _DEPTH and _may_be_json(text):
        if _is_json(text):
            yield from _flattened(json.loads(text, object_pairs_hook=_Object), depth)
            return
        if _is_json_lines(text):
            for line in text.split("\n"):
                yield from documents(line, depth)
            return
    yield text


def _rewrite_literal(literal: str, rewrite: Rewrite, depth: int) -> str:
    before: str = json.loads(literal)
    after = rewrite_text(before, rewrite, depth + 1)
    if after == before:
        return literal
    written = json.dumps(after, ensure_ascii=bool(_ESCAPED_NON_ASCII.search(literal)))
    return written.replace("/", "\\/") if _ESCAPED_SLASH.search(literal) else written


def _may_be_json(text: str) -> bool:
    start = text.lstrip()[:1] if text[:1].isspace() else text[:1]
    return start in ("{", "[", '"')


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list | str)
    except (ValueError, RecursionError):
        return False


def _is_json_lines(text: str) -> bool:
    """Return whether there are several lines and each is JSON, or empty."""
    lines = [line for line in text.split("\n") if line.strip()]
    return len(lines) > 1 and all(_may_be_json(line) and _is_json(line) for line in lines)


def _flattened(data: object, depth: int) -> Iterator[str]:
    lines: list[str] = []
    for key, value in _members(data, ""):
        if isinstance(value, str):
            yield from documents(value, depth + 1)
        if key:
            yield key
            shown = "" if isinstance(value, list) else str(value)
            if shown and len(shown) <= _SHOWN_VALUE:
                lines.append(f'{key} = "{shown}"')
    if lines:
        yield "\n".join(lines)


def _members(data: object, key: str) -> Iterator[tuple[str, object]]:
    """Yield every value in nested JSON with the key it stands under."""
    waiting: list[tuple[str, object]] = [(key, data)]
    while waiting:
        name, value = waiting.pop()
        yield name, value
        if isinstance(value, _Object):
            waiting.extend(reversed(value))
        elif isinstance(value, list):
            waiting.extend((name, item) for item in reversed(value))
