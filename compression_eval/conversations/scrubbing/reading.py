r"""What a text holds: JSON in it decoded, what the passes find there, and what that teaches.

JSON that stands in a text is decoded first, to any depth: on JSON as it is written a rule meets
``\n/Users/NAME``, takes the ``n`` for a letter before the path, and misses it. What is changed is
written back the way it was, and every byte between stays.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, TypeVar

from compression_eval.conversations.scrubbing.disguises import shown
from compression_eval.conversations.scrubbing.passes import (
    PASSES,
    REMOTE_OWNER,
    names_of_code,
    teach_opened,
)
from compression_eval.conversations.scrubbing.rules import Hit
from compression_eval.conversations.scrubbing.vocabulary import FOLDER, Learnt

MAX_REMEMBERED = 100_000
"""Texts of which a reader keeps its results, the latest: some 20 MB, whatever is imported."""

_LITERAL = re.compile(
    r'"(?:[^"\\\x00-\x1f]|\\.)*"'
    r'(?P<value>(?<=[iI][dD]")\s*:\s*\d{4,20}(?![\d.eE])|(?<="login")\s*:\s*"[\w-]{1,39}")?'
)
"""A text in JSON; with its value if it is a key that alone says that the value is an account's."""
_ESCAPED_NON_ASCII = re.compile(r"\\u(?:00[89a-fA-F]|0[1-9a-fA-F]|[1-9a-fA-F])")
_ESCAPED_SLASH = re.compile(r"(?<!\\)(?:\\\\)*\\/")
_MAX_DEPTH = 8
_MAX_VALUE_CHARACTERS = 4000


@dataclass(frozen=True)
class Found:
    """What is found in a text in which no JSON is decoded."""

    hits: Mapping[str, Sequence[Hit]]
    """By the names of the passes; those that found nothing are left out."""
    is_disguised: bool = False
    """Whether there are escapes or encodings in it."""


Lesson = tuple[str, Learnt | str, str]
"""A pass, a value for it or a mere text, and the sign that shows it."""

_NOTHING = Found({})
_DISGUISED = Found({}, is_disguised=True)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Reading:
    """What a whole text holds."""

    lessons: tuple[Lesson, ...] = ()
    opened: tuple[Lesson, ...] = ()
    """What it teaches beside that where it is the arguments of a call."""
    is_silent: bool = True
    """Whether nothing is found in any of its parts."""
    is_disguised: bool = False
    """Whether there are escapes or encodings in it."""


_SILENT = Reading()


class Reader:
    """Reads texts with some passes.

    What is found depends on the text alone, so it is remembered: every text is read to learn from
    it, to replace what it holds, and to audit what was made. Of the text only a digest is kept.
    """

    def __init__(self, passes: tuple[str, ...], *, remote_owners: bool) -> None:
        self._passes = [name for name in PASSES if name in passes]
        self._remote_owners = remote_owners
        self._found: dict[bytes, Found] = {}
        self._readings: dict[bytes, Reading] = {}

    def search(self, part: str) -> Found:
        """Return what is found in a text in which no JSON is decoded."""
        return _remembered(self._found, part, self._search)

    def read(self, text: str) -> Reading:
        """Return what is found in a text, JSON in it decoded."""
        return _remembered(self._readings, text, self._read)

    def _search(self, part: str) -> Found:
        view = None if isinstance(part, _Flattened) else shown(part)
        found: dict[str, Sequence[Hit]] = {}
        for name in self._passes:
            hits = [*PASSES[name].search(part)]
            if view:
                hits += view.hits(PASSES[name].search(view.text))
            if name == "handles" and not self._remote_owners:
                hits = [hit for hit in hits if hit.rule != REMOTE_OWNER]
            if hits:
                found[name] = tuple(hits)
        if found:
            return Found(found, bool(view))
        return _DISGUISED if view else _NOTHING

    def _read(self, text: str) -> Reading:
        lessons: dict[Lesson, None] = {}
        opened: dict[Lesson, None] = {}
        is_silent, is_disguised = True, False
        for document in _documents(text):
            found = self.search(document)
            is_disguised |= found.is_disguised
            for name, hits in found.hits.items():
                is_silent = False
                teach = PASSES[name].teach
                taught = teach(document, hits) if teach else ()
                lessons.update(((name, learnt, sign), None) for learnt, sign in taught)
                if name == "user_names":
                    taught = teach_opened(document)
                    opened.update(((name, *lesson), None) for lesson in taught)
            for lesson in names_of_code(document):
                told = opened if lesson[1] == FOLDER else lessons
                told["handles", *lesson] = None
        if is_silent and not (lessons or opened or is_disguised):
            return _SILENT
        return Reading(tuple(lessons), tuple(opened), is_silent, is_disguised)


@cache
def reader_for(passes: tuple[str, ...], *, remote_owners: bool) -> Reader:
    """Return the reader for some passes; all conversations share what it remembers."""
    return Reader(passes, remote_owners=remote_owners)


def _remembered(known: dict[bytes, _Result], text: str, find: Callable[[str], _Result]) -> _Result:
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    found = known.get(key)
    if found is None:
        if len(known) >= MAX_REMEMBERED:
            del known[next(iter(known))]
        found = known[key] = find(text)
    return found


def rewritten_text(text: str, rewrite: Callable[[str], str], depth: int = 0) -> str:
    """Return a text with every decoded string in it rewritten, object keys too."""

    def literal(found: re.Match[str]) -> str:
        if found["value"]:
            return rewrite(found[0])
        before: str = json.loads(found[0])
        after = rewritten_text(before, rewrite, depth + 1)
        if after == before:
            return found[0]
        written = json.dumps(after, ensure_ascii=bool(_ESCAPED_NON_ASCII.search(found[0])))
        return written.replace("/", "\\/") if _ESCAPED_SLASH.search(found[0]) else written

    if depth < _MAX_DEPTH and _may_be_json(text):
        if _decoded(text) is not None:
            return _LITERAL.sub(literal, text)
        if _is_json_lines(text):
            lines = text.split("\n")
            return "\n".join(rewritten_text(line, rewrite, depth) for line in lines)
    return rewrite(text)


def _documents(text: str, depth: int = 0) -> Iterator[str]:
    """Yield what the rules read to learn from a text: its decoded strings, and names with values.

    A value in JSON often tells what it is by its key alone, so each JSON document also comes as
    lines of the form ``key = "value"``, with lines of braces around the members of an object.
    """
    if depth < _MAX_DEPTH and _may_be_json(text):
        if (data := _decoded(text)) is not None:
            yield from _flattened(data, depth)
            return
        if _is_json_lines(text):
            for line in text.split("\n"):
                yield from _documents(line, depth)
            return
    yield text


def _flattened(data: object, depth: int) -> Iterator[str]:
    lines: list[str] = []
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting:
        key, value = waiting.pop()
        if value is _END:
            lines.append(key)
            continue
        if isinstance(value, _Object):
            waiting += ("}", _END), *reversed(value), (f"{key} = {{", _END)
        elif isinstance(value, list):
            waiting.extend((key, item) for item in reversed(value))
        if isinstance(value, str):
            yield from _documents(value, depth + 1)
        if key:
            yield from _documents(key, depth + 1)
            written = "" if isinstance(value, list) else str(value)
            if written and len(written) <= _MAX_VALUE_CHARACTERS:
                lines.append(f'{key} = "{written}"')
    if lines:
        yield _Flattened("\n".join(lines))


class _Flattened(str):
    """A document as lines; what is disguised in it is read in its strings."""


_END = object()


class _Object(list[tuple[str, Any]]):
    """The members of an object, repeated keys too, which a mapping would lose."""


def _may_be_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", '"')


def _decoded(text: str) -> object:
    """Return the object, list or string that a text is as JSON; None if it is none."""
    try:
        data = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, list | str) else None


def _is_json_lines(text: str) -> bool:
    """Return whether there are several lines and each is JSON, or empty."""
    lines = [line for line in text.split("\n") if line.strip()]
    return len(lines) > 1 and all(
        _may_be_json(line) and _decoded(line) is not None for line in lines
    )
