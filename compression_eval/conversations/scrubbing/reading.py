r"""What a text contains: JSON in it decoded, what the passes find there, and what that teaches.

JSON that is in a text is decoded first, to any depth: on JSON as it is written a rule meets
``\n/Users/NAME``, takes the ``n`` for a letter before the path, and misses it. What is changed is
written back the way it was, and every byte between stays.

A rule that looks for a form does not find it behind ``%40``, ``\u0040``, ``&#64;``, ``ghp\_`` or
a colour code. So each text is also read with these undone. What is found there counts only where
something was undone, and is replaced in the text as it stands, disguise included.

Not undone is what only somebody who hides a value writes: it reversed, in capitals, spaced out, cut
in pieces that code joins, in letters of another script, or packed.
"""

import base64
import html
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from hashlib import blake2b
from heapq import merge
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from compression_eval.conversations.scrubbing.passes import PASSES, names_of_code, teach_opened
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
_MAX_VALUE_CHARACTERS = 4000


Lesson = tuple[str, Learnt | str, str]
"""A pass, a value for it or a mere text, and the sign that shows it."""

_Result = TypeVar("_Result")


class Found(NamedTuple):
    """What is found in a text in which no JSON is decoded."""

    hits: Mapping[str, Sequence[Hit]]
    """By the names of the passes; those that found nothing are left out."""
    is_disguised: bool
    """Whether there are escapes or encodings in it."""


class Reading(NamedTuple):
    """What a whole text contains."""

    lessons: tuple[Lesson, ...]
    is_silent: bool
    """Whether nothing is found in any of its parts."""
    is_disguised: bool
    """Whether there are escapes or encodings in it."""


class Reader:
    """Reads texts with some passes.

    What is found depends on the text alone, so it is remembered: every text is read to learn from
    it, to replace what it contains, and to audit what was made. Of the text only a digest is kept.
    """

    def __init__(self, passes: tuple[str, ...]) -> None:
        self._passes = [name for name in PASSES if name in passes]
        self._found: dict[bytes, Found] = {}
        self._readings: tuple[dict[bytes, Reading], ...] = ({}, {})

    def search(self, part: str) -> Found:
        """Return what is found in a text in which no JSON is decoded."""
        return _remembered(self._found, part, self._search)

    def read(self, text: str, *, of_call: bool = False) -> Reading:
        """Return what is found in a text, JSON in it decoded.

        Args:
            text: Any text.
            of_call: Whether it is the arguments of a call, which show where a session works.
        """
        known = self._readings[of_call]
        return _remembered(known, text, partial(self._read, of_call=of_call))

    def _search(self, part: str) -> Found:
        view = None if isinstance(part, _Flattened) else shown(part)
        found: dict[str, Sequence[Hit]] = {}
        for name in self._passes:
            hits = [*PASSES[name].search(part)]
            if view:
                hits += view.hits(PASSES[name].search(view.text))
            if hits:
                found[name] = tuple(hits)
        return Found(found, bool(view))

    def _read(self, text: str, *, of_call: bool) -> Reading:
        lessons: dict[Lesson, None] = {}
        is_silent, is_disguised = True, False
        for document in _documents(text):
            found = self.search(document)
            is_disguised |= found.is_disguised
            is_silent &= not found.hits
            for name, hits in found.hits.items():
                for lesson in PASSES[name].teach(document, hits):
                    lessons[name, *lesson] = None
                if name == "user_names" and of_call:
                    for lesson in teach_opened(document):
                        lessons[name, *lesson] = None
            for lesson in names_of_code(document):
                if of_call or lesson[1] != FOLDER:
                    lessons["handles", *lesson] = None
        return Reading(tuple(lessons), is_silent, is_disguised)


@cache
def reader_for(passes: tuple[str, ...]) -> Reader:
    """Return the reader for some passes; all conversations share what it remembers."""
    return Reader(passes)


def _remembered(known: dict[bytes, _Result], text: str, find: Callable[[str], _Result]) -> _Result:
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    found = known.get(key)
    if found is None:
        if len(known) >= MAX_REMEMBERED:
            del known[next(iter(known))]
        found = known[key] = find(text)
    return found


def rewritten_text(text: str, rewrite: Callable[[str], str]) -> str:
    """Return a text with every decoded string in it rewritten, object keys too."""

    def literal(found: re.Match[str]) -> str:
        if found["value"]:
            return rewrite(found[0])
        before: str = json.loads(found[0])
        after = rewritten_text(before, rewrite)
        if after == before:
            return found[0]
        written = json.dumps(after, ensure_ascii=bool(_ESCAPED_NON_ASCII.search(found[0])))
        return written.replace("/", "\\/") if _ESCAPED_SLASH.search(found[0]) else written

    if _may_be_json(text):
        if _decoded(text) is not None:
            return _LITERAL.sub(literal, text)
        if _is_json_lines(text):
            lines = text.split("\n")
            return "\n".join(rewritten_text(line, rewrite) for line in lines)
    return rewrite(text)


def _documents(text: str) -> Iterator[str]:
    """Yield what the rules read to learn from a text: its decoded strings, and names with values.

    A value in JSON often tells what it is by its key alone, so each JSON document also comes as
    lines of the form ``key = "value"``, with lines of braces around the members of an object.
    """
    if _may_be_json(text):
        if (data := _decoded(text)) is not None:
            yield from _flattened(data)
            return
        if _is_json_lines(text):
            for line in text.split("\n"):
                yield from _documents(line)
            return
    yield text


def _flattened(data: object) -> Iterator[str]:
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
            yield from _documents(value)
        if key:
            yield from _documents(key)
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


_ESCAPED = re.compile(
    r"""
    (?=[\x1b\\\[%&\x00\xad\u200b-\u200d\u2060\ufeff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a])(?:
    # colour codes, also written out or without their escape; what cannot be seen; joined lines
    (?P<gone>\x1b\[[0-9;?]{0,20}[A-Za-z]
        |\\(?:x1[bB]|u001[bB]|033|e)\[[0-9;]{0,20}m
        |\[(?:\d{1,3};){0,4}\d{1,3}m
        |[\x00\xad\u200b-\u200d\u2060\ufeff]+|\\\r?\n)
    |(?P<percent>(?:%[0-9A-Fa-f]{2})+)
    |(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|amp|commat|lowbar);)
    |(?P<number>\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-3][0-7]{2}))
    |(?<=[A-Za-z0-9])\\(?P<mark>[_-])|\\(?P<slash>/)
    |(?P<wide>[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]{2}[\uff01-\uff5e]*))
    """,
    re.VERBOSE,
)
_CODED = re.compile(r"[\"'=,:`][ ]?(?P<coded>[A-Za-z0-9+/]{20,8000}+={0,2})(?![\w+/=-])")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\[^\s\"'`]*\Z|[A-Za-z]--[\w-]*\Z")
_NEAR = 200
"""So many characters around what was undone are read with it."""
_CUT = "\n\x1f\n"
"""Stands between parts that are not read; nothing that contains it is a value."""


class View:
    """What is around all that was undone in a text.

    Args:
        text: The text.
        undone: What was undone, by its edges in the text, in order.
    """

    def __init__(self, text: str, undone: Iterable[tuple[int, int, str]]) -> None:
        self._original = text
        self._starts, self._ends = array("I"), array("I")
        """The edges, in the text, of what each character of the view was made from."""
        parts: list[str] = []

        def keep(start: int, end: int) -> None:
            parts.append(text[start:end])
            self._starts.extend(range(start, end))
            self._ends.extend(range(start + 1, end + 1))

        def add(part: str, start: int, end: int) -> None:
            parts.append(part)
            self._starts.extend([start] * len(part))
            self._ends.extend([end] * len(part))

        place = 0
        for start, end, part in undone:
            if start - place > 2 * _NEAR:
                if parts:
                    keep(place, place + _NEAR)
                place = start - _NEAR
                add(_CUT, place, place)
            keep(place, start)
            add(part, start, end)
            place = end
        keep(place, min(place + _NEAR, len(text)))
        self.text = "".join(parts)

    def hits(self, found: Iterable[Hit]) -> Iterator[Hit]:
        """Yield those hits in the view that the text does not show, as places in the text.

        A hit next to something undone is one, too: before that a letter may have been there.
        """
        for hit in found:
            start, end = self._starts[hit.start], self._ends[hit.end - 1]
            around = self.text[max(0, hit.start - 1) : hit.end + 1]
            is_cut = _CUT[1] in self.text[max(0, hit.start - 2) : hit.end + 2]
            if not is_cut and around != self._original[max(0, start - 1) : end + 1]:
                value = self.text[hit.start : hit.end]
                yield replace(hit, start=start, end=end, value=value)


@lru_cache(maxsize=2)
def shown(text: str) -> View | None:
    """Return a text with everything undone; None if there is nothing to undo."""
    places = list(merge(_undone_by(_ESCAPED, text, 0), _undone_by(_CODED, text, "coded")))
    return View(text, places) if places else None


def _undone_by(
    form: re.Pattern[str], text: str, group: int | str
) -> Iterator[tuple[int, int, str]]:
    for found in form.finditer(text):
        part = _undone(found)
        if part is not None:
            yield *found.span(group), part


def _undone(found: re.Match[str]) -> str | None:
    """Return what something stands for; None if it stands for itself."""
    kind, written = found.lastgroup or "", found[found.lastgroup or 0]
    before = found.string[max(0, found.start() - _NEAR) : found.start()]
    if kind in ("mark", "number") and _WINDOWS_PATH.search(before):
        return None  # a folder begins there
    if kind == "number":
        code = int(written[1:], 8) if written[1] in "0123" else int(written[2:], 16)
        return chr(code) if chr(code).isprintable() else None
    if kind in ("percent", "coded"):
        return _readable(unquote_to_bytes(written) if kind == "percent" else _unpacked(written))
    if kind == "wide":
        return "".join(chr(ord(character) - 0xFEE0) for character in written)
    return {"gone": "", "entity": html.unescape(written)}.get(kind, written)


def _unpacked(written: str) -> bytes | None:
    """Return what Base64 or hexadecimal digits hold."""
    try:
        return bytes.fromhex(written)
    except ValueError:
        pass
    try:
        return base64.b64decode(written + "=" * (-len(written) % 4), validate=True)
    except ValueError:
        return None


def _readable(data: bytes | None) -> str | None:
    try:
        text = data.decode("utf-8") if data else ""
    except UnicodeDecodeError:
        return None
    return text if text and all(one.isprintable() or one in "\n\r\t" for one in text) else None
