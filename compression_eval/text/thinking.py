"""Split what a model thinks from what it says, where no server has done so.

A block of thinking begins with its opening mark, at the start of a line or after a sentence, and
ends with the closing mark or with the text. A closing mark alone ends thinking that the prompt's
template has opened, so nothing before it was said. Marks in code, between quotation marks, and
those that stand apart in the middle of a line are mentions: an answer may be about such marks.

The time taken grows with the length of the text, whatever it holds.
"""

import json
import re
from bisect import bisect_right
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

_FENCE = re.compile(r" {0,3}(?P<mark>```+(?=[^`]*$)|~~~+)(?P<info>.*)", re.DOTALL)
_TICKS = re.compile("`+")
_LINE_ENDS = re.compile(r"[ \t\r]*(?:\n|\Z)")
_BLANK_LINE = re.compile(r"[ \t\r]*\n[ \t\r]*\n")

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


class _Marks(NamedTuple):
    any: re.Pattern[str]
    """Opening marks as groups ``o0`` and up, closing ones that may be alone as ``c0`` and up."""
    closing: list[re.Pattern[str]]
    """For each opening mark."""


def split_thinking(text: str) -> Split:
    """Split a model's text into what it said and what it thought."""
    marks = _marks()
    found = marks.any.search(text)
    if found is None or _is_json(text):
        return Split(text, [], False)
    code = _Code(text)
    said: list[str] = []
    thoughts: list[str] = []
    place = 0  # up to where the text is split
    while found:
        name = found.lastgroup or ""
        start, end = found.span(name)
        first = found["lead"] is not None or start == place
        if code.holds(start) or not _meant(text, start, end, first, opens=name[0] == "o"):
            found = marks.any.search(text, end)
            continue
        if name[0] == "c":
            said, thoughts = [], [text[:end]]
        else:
            said.append(text[place : found.start()])
            closings = marks.closing[int(name[1:])].finditer(text, end)
            closed = (
                each.end()
                for each in closings
                if not code.holds(each.start()) and not _quoted(text, *each.span())
            )
            end = next(closed, -1)
            thoughts.append(text[found.start() : end] if end >= 0 else text[found.start() :])
            if end < 0:
                return Split("".join(said).strip(), thoughts, True)
        place = rest.end() if (rest := _LINE_ENDS.match(text, end)) else end
        found = marks.any.search(text, place)
    if not thoughts:
        return Split(text, [], False)
    return Split("".join([*said, text[place:]]).strip(), thoughts, False)


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
    """The parts of a text that are code in Markdown: closed fences, and spans within a line."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        fence, fenced_from, at = "", 0, 0
        for line in text.splitlines(keepends=True):
            mark = _FENCE.match(line)
            if not fence and mark:
                fence, fenced_from = mark["mark"], at
            elif not fence:
                self._spans(line, at)
            elif mark and mark["mark"].startswith(fence) and not mark["info"].strip():
                self._add(fenced_from, at + len(line))
                fence = ""
            at += len(line)

    def holds(self, place: int) -> bool:
        """Return whether a place is within code."""
        number = bisect_right(self._starts, place) - 1
        return number >= 0 and place < self._ends[number]

    def _spans(self, line: str, at: int) -> None:
        opened: re.Match[str] | None = None
        for ticks in _TICKS.finditer(line):
            if opened is None:
                opened = ticks
            elif opened[0] == ticks[0]:
                self._add(at + opened.start(), at + ticks.end())
                opened = None

    def _add(self, start: int, end: int) -> None:
        self._starts.append(start)
        self._ends.append(end)


@cache
def _marks() -> _Marks:
    source = (files(__package__) / "thinking.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(source)
    marks = [
        (rf"<{re.escape(tag)}(?:\s[^<>]*)?>", rf"</{re.escape(tag)}\s*>", key == "prefilled_tags")
        for key in ("prefilled_tags", "tags")
        for tag in data[key].split()
    ]
    marks += [(each["opens"], each["closes"], each["alone"]) for each in data["marks"]]
    groups = [f"(?P<o{number}>{opens})" for number, (opens, _, _) in enumerate(marks)]
    groups += [
        f"(?P<c{number}>{closes})" for number, (_, closes, alone) in enumerate(marks) if alone
    ]
    return _Marks(
        re.compile(rf"(?im)(?P<lead>^[ \t]*)?(?=[<\[◁a])(?:{'|'.join(groups)})"),
        [re.compile(f"(?i){closes}") for _, closes, _ in marks],
    )
