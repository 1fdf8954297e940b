r"""A text as it is shown or run: escapes, encodings, colour codes undone, each place mapped back.

A rule that looks for a form does not find it behind ``%40``, ``\u0040``, ``&#64;``, ``ghp\_`` or
a colour code. So each text is also read with these undone. What is found there counts only where
something was undone, and is replaced in the text as it stands, disguise included.

Not undone is what only somebody who hides a value writes: it reversed, in capitals, spaced out, cut
in pieces that code joins, in letters of another script, or packed.
"""

import base64
import html
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from heapq import merge
from itertools import chain
from urllib.parse import unquote_to_bytes

from compression_eval.conversations.scrubbing.rules import Hit

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
"""Stands between parts that are not read; nothing that holds it is a value."""

_MAX_VIEWS = 4


class View:
    """What is around all that was undone in a text.

    It is made of pieces, of which each begins somewhere in the view, was made from a part of the
    text, and is that part or what was undone in it.

    Args:
        text: The text.
        undone: What was undone, by its edges in the text, in order.
    """

    def __init__(self, text: str, undone: Iterable[tuple[int, int, str]]) -> None:
        parts: list[str] = []
        self._begins, self._starts, self._ends = array("q"), array("q"), array("q")
        self._changed = bytearray()
        length = place = 0

        def add(part: str, start: int, end: int, *, changed: bool = False) -> None:
            nonlocal length
            self._begins.append(length)
            self._starts.append(start)
            self._ends.append(end)
            self._changed.append(changed)
            parts.append(part)
            length += len(part)

        for start, end, part in undone:
            if start - place > 2 * _NEAR:
                if parts:
                    add(text[place : place + _NEAR], place, place + _NEAR)
                place = start - _NEAR
                add(_CUT, place, place)
            if start > place:
                add(text[place:start], place, start)
            add(part, start, end, changed=True)
            place = end
        add(text[place : place + _NEAR], place, min(place + _NEAR, len(text)))
        self._begins.append(length)
        self.text = "".join(parts)

    def hits(self, found: Iterable[Hit]) -> Iterator[Hit]:
        """Yield those hits in the view that something undone is part of, as places in the text."""
        for hit in found:
            value = self.text[hit.start : hit.end]
            first = bisect_left(self._begins, hit.start)
            # A piece without a character, such as a colour code, stands before one that has some.
            while first and self._begins[first] >= hit.start:
                first -= 1
            last = min(bisect_right(self._begins, hit.end), len(self._changed))
            touched = any(
                self._changed[piece] and self._begins[piece + 1] >= hit.start
                for piece in range(first, last)
            )
            if touched and _CUT not in value:
                start, end = self._original(hit.start)[0], self._original(hit.end - 1)[1]
                yield replace(hit, start=start, end=end, value=value)

    def _original(self, place: int) -> tuple[int, int]:
        """Return the edges, in the text, of what a character of the view was made from."""
        piece = bisect_right(self._begins, place) - 1
        start = self._starts[piece]
        if self._changed[piece]:
            return start, self._ends[piece]
        start += place - self._begins[piece]
        return start, start + 1


@lru_cache(maxsize=_MAX_VIEWS)
def shown(text: str) -> View | None:
    """Return a text with everything undone; None if there is nothing to undo."""
    places = merge(_undone_by(_ESCAPED, text, 0), _undone_by(_CODED, text, "coded"))
    first = next(places, None)
    return View(text, chain((first,), places)) if first else None


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
        return _readable(unquote_to_bytes(written) if kind == "percent" else _decoded(written))
    if kind == "wide":
        return "".join(chr(ord(character) - 0xFEE0) for character in written)
    return {"gone": "", "entity": html.unescape(written)}.get(kind, written)


def _decoded(written: str) -> bytes | None:
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
