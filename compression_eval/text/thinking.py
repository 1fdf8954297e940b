"""Split what a model thinks from what it says, where no server has done so.

A block of thinking begins with its opening mark, at the start of a line or after a sentence, and
ends with the closing mark or with the text. A closing mark alone ends thinking that the prompt's
template has opened, so nothing before it was said. Marks in code, between quotation marks, and
those that stand apart in the middle of a line are mentions: an answer may be about such marks.
So is an opening mark that nothing closes, unless it is one that prompts' templates and special
tokens make, and is not the first word of a sentence after something was said.

The time taken grows with the length of the text, whatever it contains.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

import yaml

_FENCE = re.compile(r" {0,3}(?P<mark>```+(?=[^`]*$)|~~~+)(?P<info>.*)", re.DOTALL)
_TICKS = re.compile("`+")
_LINE_ENDS = re.compile(r"[ \t\r]*(?:\n|\Z)")
_BLANK_LINE = re.compile(r"[ \t\r]*\n[ \t\r]*\n")

_JOINED = re.compile(r"[ \t]*(?:and|or|[,/&+…]|\.\.\.)[ \t]*")
"""What joins the two marks of a pair where both are mentioned."""
_PROSE = re.compile(r"[ \t]+[a-z]")
"""How a line goes on that has begun with the mention of a mark."""

_QUOTES = "\"'`“”‘’"
_SENTENCE_ENDS = ".!?:…。！？："
_OPENING = " \t\n([{<«‹「『（《【"
"""Characters after which a closing mark is mentioned, not meant."""
_UNSPACED = re.compile("[\u3040-\u9fff\uf900-\ufaff\uac00-\ud7af]")
"""Letters of scripts that set no blank between a word and a mark."""


class Split(NamedTuple):
    """A model's text in two."""

    said: str
    """What is left without the thinking."""
    thoughts: list[str]
    """The parts that are thinking, with their marks, in order."""
    unclosed: bool
    """Whether the last part lacks its closing mark, and so goes to the end of the text."""


class _Mark(NamedTuple):
    opens: str
    closes: str
    alone: bool
    """Whether the closing mark ends thinking also where nothing opened it."""
    endless: bool
    """Whether the opening mark begins thinking also where nothing closes it."""


def split_thinking(text: str) -> Split:
    """Split a model's text into what it said and what it thought."""
    found = _ANY.search(text)
    if found is None or _is_json(text):
        return Split(text, [], False)
    code = _Code(text)
    said: list[str] = []
    thoughts: list[str] = []
    place = 0  # up to where the text is split
    spoken = False  # whether anything was said
    endless: set[str] = set()  # marks that nothing closes from here on
    while found:
        name = found.lastgroup or ""
        start, end = found.span(name)
        first = found["lead"] is not None or start == place
        meant = not code.holds(start) and _meant(text, start, end, first, opens=name[0] == "o")
        if meant and name[0] == "c":
            said, thoughts, spoken = [], [text[:end]], False
        elif meant:
            number = int(name[1:])
            spoken = spoken or bool(text[place:start].strip())
            closing = None if name in endless else _closing(text, _PAIRS[number], end, code)
            if closing is None:
                endless.add(name)
                begins = not spoken and not text.startswith((" ", "\t"), end)
                thinks = begins or _MARKS[number].endless
                if thinks and not (spoken and _PROSE.match(text, end)):
                    said.append(text[place : found.start()])
                    return Split("".join(said).strip(), [*thoughts, text[found.start() :]], True)
                meant = False
            elif _JOINED.fullmatch(text, end, closing.start()):
                end, meant = closing.end(), False
            else:
                said.append(text[place : found.start()])
                end = closing.end()
                thoughts.append(text[found.start() : end])
        if meant:
            place = end = rest.end() if (rest := _LINE_ENDS.match(text, end)) else end
            code.restart(place)
        else:
            spoken = True
        found = _ANY.search(text, end)
    if not thoughts:
        return Split(text, [], False)
    return Split("".join([*said, text[place:]]).strip(), thoughts, False)


def _closing(text: str, pair: re.Pattern[str], end: int, code: "_Code") -> re.Match[str] | None:
    """Return the mark that closes a block of thinking, or None.

    It is the first one outside of code. If there is none before another block opens, it is the
    first one: a fence that the thinking left open has taken in what follows.
    """
    earliest: re.Match[str] | None = None
    for mark in pair.finditer(text, end):
        if _quoted(text, *mark.span()):
            continue
        if mark["opens"] is None:
            if not code.holds(mark.start()):
                return mark
            earliest = earliest or mark
        elif earliest:
            break
    return earliest


def _meant(text: str, start: int, end: int, first: bool, *, opens: bool) -> bool:
    """Return whether a mark is one, and not mentioned.

    Args:
        text: The whole text.
        start: Where the mark begins.
        end: Where it ends.
        first: Whether it is the first thing in its line, or after another block.
        opens: Whether it is an opening mark.
    """
    if _quoted(text, start, end):
        return False
    if first:
        return True
    before = text[start - 1]
    if opens:
        return before in _SENTENCE_ENDS
    if _UNSPACED.match(before):
        return _LINE_ENDS.match(text, end) is not None
    return before not in _OPENING or _BLANK_LINE.match(text, end) is not None


def _is_json(text: str) -> bool:
    """Return whether all of a text is one JSON value, which may quote marks in its strings."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _quoted(text: str, start: int, end: int) -> bool:
    return start > 0 and text[start - 1] in _QUOTES and text[end : end + 1] in [*_QUOTES]


class _Code:
    """The parts of a text that are code in Markdown: closed fences, and spans within a line.

    Which they are depends on where reading starts: at first at the beginning.
    """

    def __init__(self, text: str) -> None:
        parts: list[tuple[int, int]] = []
        fences: list[tuple[int, int, str, bool]] = []
        at = 0
        for line in text.splitlines(keepends=True):
            if mark := _FENCE.match(line):
                fences.append((at, at + len(line), mark["mark"], not mark["info"].strip()))
            else:
                after: dict[str, int] = {}  # where the next run of as many ticks ends
                for ticks in reversed([*_TICKS.finditer(line)]):
                    if ticks[0] in after:
                        parts.append((at + ticks.start(), at + after[ticks[0]]))
                    after[ticks[0]] = ticks.end()
            at += len(line)
        closing: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}  # longer ones are farther
        for start, end, fence, bare in reversed(fences):
            later = closing[fence[0]]
            stop = next((stop for length, stop in reversed(later) if length >= len(fence)), None)
            if stop is not None:
                parts.append((start, stop))
            while bare and later and later[-1][0] <= len(fence):
                later.pop()
            if bare:
                later.append((len(fence), end))
        self._parts = sorted(parts)
        self.restart(0)

    def restart(self, place: int) -> None:
        """Read the text again from a place on, as if nothing were before it."""
        self._next = bisect_left(self._parts, (place, 0))
        self._starts: list[int] = []
        self._ends: list[int] = []

    def holds(self, place: int) -> bool:
        """Return whether a place is within code."""
        while self._next < len(self._parts) and self._parts[self._next][0] <= place:
            start, end = self._parts[self._next]
            self._starts.append(start)
            self._ends.append(end)
            self._next = bisect_left(self._parts, (end, 0), self._next)
        number = bisect_right(self._starts, place) - 1
        return number >= 0 and place < self._ends[number]


def _marks() -> Iterator[_Mark]:
    source = (files(__package__) / "thinking.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(source)
    for key in ("prefilled_tags", "tags"):
        for tag in map(re.escape, data[key].split()):
            known = key == "prefilled_tags"
            yield _Mark(rf"<{tag}(?:\s[^<>]*)?>", rf"</{tag}\s*>", known, known)
    for each in data["marks"]:
        yield _Mark(each["opens"], each["closes"], each["alone"], endless=True)


# Not read at the first reply, which others wait for.
_MARKS = list(_marks())
_GROUPS = [f"(?P<o{number}>{mark.opens})" for number, mark in enumerate(_MARKS)]
_GROUPS += [f"(?P<c{number}>{mark.closes})" for number, mark in enumerate(_MARKS) if mark.alone]
_ANY = re.compile(rf"(?im)(?P<lead>^[ \t]*)?(?=[<\[◁a])(?:{'|'.join(_GROUPS)})")
"""Opening marks as groups ``o0`` and up, closing ones that may be alone as ``c0`` and up."""
_PAIRS = [re.compile(f"(?i)(?P<opens>{mark.opens})|(?:{mark.closes})") for mark in _MARKS]
"""For each opening mark: it as the group ``opens``, or one that closes it."""
