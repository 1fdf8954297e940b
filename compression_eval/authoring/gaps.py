"""Ask for a name by a line that it stands in, with a gap in its place.

A line is only quoted if one thing alone fits the gap in the whole history, so that the question has
one answer however many similar lines there are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from compression_eval.authoring.history import History
from compression_eval.authoring.runs import quotable
from compression_eval.authoring.templates import wordings
from compression_eval.fixtures.artifacts.events import Call
from compression_eval.fixtures.artifacts.tools import (
    TEXT_KEYS,
    command_of,
    deed_of,
    new_texts,
    paths_of,
    text_of,
)

_SIDE = 70
"""Characters shown on each side of a gap."""
_LONGEST_LINE = 2_000
_MOST_LINES = 60_000
_LONGEST_FILL = 60
_FEWEST_WORDS = 3
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t|\||: | {2})")
_ITEM = re.compile(r"\s*(?:[-*+•#>|]|\d+[.)]|[A-Z][.)])\s")
_WORDS = re.compile(r"[A-Za-z]{3,}|[\u3040-\u30ff\u4e00-\u9fff]{2}")
_SOURCES = ("command", "user", "assistant", "written", "output", "file")
"""Kinds of lines, those that people remember best first."""


@dataclass(frozen=True)
class Line:
    """One line of the history that can be quoted."""

    message: int
    source: str
    text: str
    detail: dict[str, str] = field(default_factory=dict)
    """What else the question has to name: the command or the file."""


@dataclass(frozen=True)
class Gap:
    """A line with a gap that only one thing fits."""

    template: str
    message: int
    values: dict[str, str]


class Lines:
    """The lines of a history.

    Args:
        history: Where to look.
    """

    def __init__(self, history: History) -> None:
        self._mark = wordings(history.language).gap
        self.lines: list[Line] = []
        for line in _lines(history):
            if len(self.lines) >= _MOST_LINES:
                break
            text = line.text.strip()
            if text and len(text) <= _LONGEST_LINE and text.isprintable():
                self.lines.append(Line(line.message, line.source, text, line.detail))
        self._joined = "\n" + "\n".join(line.text for line in self.lines) + "\n"

    def gap(self, name: str, before: int, sources: tuple[str, ...] = _SOURCES) -> Gap | None:
        """Return the best line to ask for a name by; None if there is none without doubt.

        Args:
            name: What is asked for.
            before: Only lines of earlier messages are quoted.
            sources: Kinds of lines that may be quoted, the better first.
        """
        whole = re.compile(rf"(?<![\w/.@-]){re.escape(name)}(?![\w/-]|\.\w)")
        fitting = [
            line
            for line in self.lines
            if line.message < before and line.source in sources and name in line.text
        ]
        for line in sorted(fitting, key=lambda line: sources.index(line.source)):
            places = list(whole.finditer(line.text))
            if len(places) != 1 or line.text.count(name) != 1:
                continue
            left, right = self._around(line.text, *places[0].span())
            words = _WORDS.findall(f"{left} {right}")
            fewest = 1 if line.source == "command" else _FEWEST_WORDS
            quoted = f"{left}{self._mark}{right}"
            if len(words) < fewest or not _can_be_quoted(quoted, line):
                continue
            if self._fits_only(name, left.removeprefix("…"), right.removesuffix("…")):
                values = {**line.detail, "line": quoted, "gap": f"{self._mark}"}
                return Gap(f"gap_{line.source}", line.message, values)
        return None

    @staticmethod
    def _around(text: str, start: int, end: int) -> tuple[str, str]:
        left, right = text[:start], text[end:]
        if len(left) > _SIDE:
            piece = left[-_SIDE:]
            left = "…" + (piece.partition(" ")[2] or piece)
        if len(right) > _SIDE:
            piece = right[:_SIDE]
            right = (piece.rpartition(" ")[0] or piece) + "…"
        return left, right

    def _fits_only(self, name: str, left: str, right: str) -> bool:
        """Return whether nothing else stands between these two texts in any line."""
        anchor = left or right
        at = self._joined.find(anchor)
        while at >= 0:
            start = self._joined.rfind("\n", 0, at) + 1
            end = self._joined.find("\n", at)
            if left:
                rest = self._joined[at + len(left) : end]
                found = rest.find(right) if right else len(rest)
                fill = rest[:found] if found >= 0 else ""
            else:
                fill = self._joined[start:at]
            if fill and len(fill) <= _LONGEST_FILL and fill.strip() != name:
                return False
            at = self._joined.find(anchor, at + 1)
        return True


def _can_be_quoted(text: str, line: Line) -> bool:
    values = (text, *line.detail.values())
    if line.source in ("user", "assistant"):
        return text.count("`") % 2 == 0 and not any(mark in text for mark in "“”「」")
    return not any("`" in value for value in values)


def _lines(history: History) -> Iterator[Line]:
    calls: dict[int, list[Call]] = {}
    for call in history.calls:
        calls.setdefault(call.message, []).append(call)
    for index, message in enumerate(history.messages):
        if message.role == "assistant" or message.typed:
            for text in _paragraphs(message.typed or message.text):
                yield Line(index, message.role, text)
        if message.role == "user" and message.typed != message.text:
            # Nobody is asked what the user wrote by these, but they count as places of a name.
            for text in _paragraphs(message.text):
                yield Line(index, "injected", text)
        for call in calls.get(index, ()):
            yield from _call_lines(history, call)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a text, each on one line; code keeps its lines."""
    parts: list[str] = []
    code = False
    for line in text.split("\n"):
        bare = line.strip()
        fence = bare.startswith("```")
        if parts and (code or fence or not bare or _ITEM.match(line)):
            yield " ".join(parts)
            parts = []
        code = code != fence
        if bare and not fence:
            parts.append(bare)
    if parts:
        yield " ".join(parts)


def _call_lines(history: History, call: Call) -> Iterator[Line]:
    deed = deed_of(call.name)
    # Of several results it is not recorded here which is whose; any of them comes after the call.
    result = call.result or ""
    after = call.message + 1
    if deed == "shell":
        given = command_of(call.arguments)
        command = quotable(given) if isinstance(given, str) else None
        if command:
            yield Line(call.message, "command", command)
            for text in result.split("\n"):
                yield Line(after, "output", text, {"command": command})
    paths = [history.reading_path(path) for path in paths_of(call.arguments)]
    if len(paths) != 1:
        return
    if deed == "read" or (deed == "editor" and call.arguments.get("command") == "view"):
        for text in result.split("\n"):
            yield Line(after, "file", _NUMBERED.sub("", text), {"path": paths[0]})
    elif deed in ("write", "edit", "editor"):
        written = text_of(call.arguments, TEXT_KEYS) or new_texts(call.arguments)
        for text in written.split("\n"):
            yield Line(call.message, "written", text, {"path": paths[0]})
