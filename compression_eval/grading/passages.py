"""Whether a quote of a reader occurs in a state, and can support a fact at all."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspect_ai.model import ChatMessage

from compression_eval.facts.records import Region
from compression_eval.record import render_messages
from compression_eval.text.lookup import Text, joins

MIN_CHARACTERS = 3
"""Minimum letters and digits of a fact's quotes that hold no whole word of the fact."""

MIN_WORDS = 4
"""Minimum words of a quote that may paraphrase a fact."""

_ESCAPES_AND_SPACE = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+[nrt]|\\+|\s+")
"""What copying may add to or remove from a passage: white space, and the backslashes of the JSON in
which the reader sees it, or in which it holds tool calls."""

_UNSPACED = "\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"(?=([{_UNSPACED}]{{2}}))|[^\W_{_UNSPACED}]+")
"""Words; of scripts without blanks each pair of characters that stand together."""

_FILLING = {
    *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "from", "has", "in", "is"),
    *("it", "its", "not", "of", "on", "or", "that", "the", "this", "to", "was", "were", "with"),
}
"""Words that carry no content."""


class Passages:
    """The text of a state, in which quotes are looked for.

    Args:
        context: The messages of the state.
        regions: The region of each of them.
    """

    def __init__(self, context: Sequence[ChatMessage], regions: Sequence[Region]) -> None:
        # A log that was recovered from its events may lack messages: then no region is known.
        known = regions if len(regions) == len(context) else [None] * len(context)
        # The first line of a message as it is shown names its role, which no message says.
        self._texts: list[tuple[Region | None, _Folded]] = [
            (region, _folded(render_messages([message]).partition("\n")[2]))
            for message, region in zip(context, known, strict=True)
        ]

    def places(self, quote: str) -> list[Region | None]:
        """Return the region of each message that contains a quote, None if it is unknown."""
        wanted = _folded(quote)
        return [region for region, text in self._texts if text.holds(wanted)]


def says_anything(quote: str) -> bool:
    """Return whether a quote has more than white space and escapes."""
    return bool(_folded(quote).text)


def may_show(quotes: Sequence[str], forms: Sequence[str], *, stated: bool) -> bool:
    """Return whether quotes can support a fact at all, so that a reader cannot quote just anything.

    For a stated fact they must contain it in some notation, share a content word with it, or be
    long enough to paraphrase it. For a derived one they need not.
    """
    quoted = [_words(quote) for quote in quotes]
    of_fact: set[str] = set().union(*(_words(form) for form in forms))
    shared = of_fact & set().union(*quoted)
    if shared - _FILLING or Text("\n".join(quotes)).has_any(forms):
        return True
    if stated:
        return any(len(words) >= MIN_WORDS for words in quoted)
    return sum(map(str.isalnum, "".join(quotes))) >= MIN_CHARACTERS


def _words(text: str) -> list[str]:
    return [match[1] or match[0] for match in _WORDS.finditer(text.casefold())]


@dataclass(frozen=True)
class _Folded:
    """A text without the white space and escapes that copying may change, and their places."""

    text: str
    gaps: Mapping[int, bool]
    """By the place in the text that they stood before: whether they may stand inside a word, as a
    line break may."""

    def holds(self, wanted: "_Folded") -> bool:
        """Return whether this text contains another one as whole words."""
        at = self.text.find(wanted.text)
        while at >= 0:
            if self._holds_at(wanted, at):
                return True
            at = self.text.find(wanted.text, at + 1)
        return False

    def _holds_at(self, wanted: "_Folded", start: int) -> bool:
        end = start + len(wanted.text)
        if any(place not in self.gaps and self._inside(place) for place in (start, end)):
            return False
        for at in range(start + 1, end):
            here, there = self.gaps.get(at), wanted.gaps.get(at - start)
            one_sided = (here is None) != (there is None)
            if one_sided and not (here or there) and self._inside(at):
                return False
        return True

    def _inside(self, place: int) -> bool:
        """Return whether a place is between two characters of a word."""
        return 0 < place < len(self.text) and all(map(joins, self.text[place - 1 : place + 1]))


def _folded(text: str) -> _Folded:
    parts: list[str] = []
    gaps: dict[int, bool] = {}
    length = end = 0
    for match in _ESCAPES_AND_SPACE.finditer(text):
        parts.append(text[end : match.start()] + (chr(int(match[1], 16)) if match[1] else ""))
        length += len(parts[-1])
        end = match.end()
        if not match[1]:
            loose = match[0].startswith("\\") or len(match[0].splitlines()) > 1 or "\n" in match[0]
            gaps[length] = gaps.get(length, False) or loose
    return _Folded("".join([*parts, text[end:]]), gaps)
