"""What the agent fetched in a few calls that its session already held, after compactions and else.

1. `Session` numbers the calls of a conversation and notes at which call each line of a result, or
   of a text that the agent wrote, first was in it; per file it notes the lines that were shown or
   written, and which edits were new.
2. A window is ten calls. `Session.compactions` measures the one after each compaction, and next to
   it control windows of the same stretches of the session, away from every compaction.

What lines are compared by is their text without line numbers and outer space. Tokens are characters
divided by four. Nothing is said of why something was fetched again: clients attach files by
themselves, and demand a read before an edit.
"""

import hashlib
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median

from compression_eval.file_ops.calls import Call, calls_of_fixture
from compression_eval.file_ops.tools import (
    NEW_KEYS,
    OLD_KEYS,
    TEXT_KEYS,
    edits_of,
    read_calls,
    text_of,
)
from compression_eval.fixtures.models import Fixture, Message

WINDOW = 10
"""Calls of a window."""
MAX_CONTROLS = 12
"""Control windows on each side of a compaction."""
MIN_CONTROLS = 6
"""With fewer, nothing is said of a compaction."""
MAX_TO_EDIT = 80
"""Calls after which no more is waited for a new edit."""
CHARACTERS = 4
"""Of a token."""

_MIN_LINE, _MIN_FILE_LINE = 20, 8
_MIN_LINES = 12
_MAX_FILES = 3
_KNOWN, _NEW = 0.9, 0.5
_HEADER = re.compile(
    r"\s*(?:<system-reminder>|</?\w[\w-]*>|Chunk ID:|Wall time:|Process exited|Output:|Exit code"
    r"|Original token count:|\[exit code|Total output lines:|Here's the result of running)"
)
_NUMBERED = re.compile(r"\s*\d+(?:\t|→|  |: |\| ?|-)")
_TEMPORARY = re.compile(r"^(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm)/|/scratchpad/")


@dataclass(frozen=True)
class Reread:
    """A file whose text was shown again in a window though it had been shown or written before."""

    path: str
    lines: int
    """Distinct lines that were known."""
    of: int
    """Distinct lines of the result."""
    tokens: float
    calls_ago: int
    """Calls since the last time that the file was shown or written."""
    edits: int
    """Edits of the agent to it before the window."""


@dataclass(frozen=True)
class Window:
    """What was measured in one window."""

    start: int
    """Number of its first call."""
    held: float
    """Tokens of result lines that the session held before."""
    shown_again: float
    """Tokens of file text that was shown again, by the rule for re-reads."""
    by_call: Sequence[float] = ()
    """Tokens of `held` by the call that first showed them."""
    calls: Sequence[str] = ()
    """The identifiers of its calls."""
    rereads: Sequence[Reread] = ()
    edit_calls: int | None = None
    """Calls up to the first new edit; None if there was none in reach."""
    reach: int = 0
    """Calls in which a new edit was looked for: up to `MAX_TO_EDIT`, the next compaction or the
    end, and for a control no more than for the window that it is compared with."""

    def without_edit(self, reach: int) -> int:
        """Return the calls before the first new edit, or all of a reach that has none."""
        return reach if self.edit_calls is None else min(self.edit_calls, reach)


@dataclass(frozen=True)
class Compaction:
    """One compaction of a session, with the window after it and its controls."""

    cut: int
    """Messages before it."""
    kind: str
    trigger: str
    tokens_before: int | None
    tokens_after: int | None
    window: Window | None
    """None if fewer than `WINDOW` calls follow before the next compaction or the end."""
    before: Window | None
    """The last window before it; None if there is none since the compaction before."""
    controls: Sequence[Window]

    @property
    def usual(self) -> float | None:
        """The median of what its controls held; None with too few of them."""
        if len(self.controls) < MIN_CONTROLS:
            return None
        return median(control.held for control in self.controls)

    @property
    def told(self) -> bool:
        """Whether there is enough to say anything of it."""
        return self.window is not None and self.usual is not None


@dataclass
class _Step:
    """One call, with what it showed and what was written with it."""

    call: Call
    shown: list[str]
    """Distinct lines of its result."""
    opens: bool
    """Whether a message of the user came since the call before it."""
    said: list[str]
    """Texts of the agent since the call before it, and since the last compaction or message of the
    user between them."""
    said_before: list[str]
    """Texts of the agent between the call before it and those."""
    reads: list[str] = field(default_factory=list)
    """Files whose text its result shows."""
    writes: list[str] = field(default_factory=list)
    edit: bool = False
    """Whether it is a successful edit that no earlier one equals, outside of temporary folders."""


class Session:
    """One conversation, read for its windows.

    Args:
        fixture: The conversation, with its compactions.
    """

    def __init__(self, fixture: Fixture) -> None:
        self.fixture = fixture
        self._steps = _steps(fixture)
        self._first: dict[int, int] = {}
        self._known: dict[str, dict[int, int]] = defaultdict(dict)
        """By file, the call at which each of its lines was first shown or written."""
        self._latest: dict[str, list[int]] = defaultdict(list)
        self._edits: dict[str, list[int]] = defaultdict(list)
        self._note()

    def _note(self) -> None:
        for number, step in enumerate(self._steps):
            written = list(_written(step.call))
            for line in _lines(step.said_before, _MIN_LINE):
                self._first.setdefault(_key(line), number - 1)
            for line in (*step.shown, *_lines([*step.said, *written], _MIN_LINE)):
                self._first.setdefault(_key(line), number)
            for path in (*step.reads, *step.writes):
                own = self._known[path]
                texts = step.shown if path in step.reads else _lines(written, _MIN_FILE_LINE)
                for line in texts:
                    own.setdefault(_key(line), number)
                self._latest[path].append(number)
            for path in step.writes:
                self._edits[path].append(number)

    @property
    def calls(self) -> int:
        """Number of its calls."""
        return len(self._steps)

    @cached_property
    def boundaries(self) -> list[tuple[int, int]]:
        """Each compaction's place among those recorded, and the number of the first call after."""
        found: dict[int, int] = {}
        for place, each in enumerate(self.fixture.recorded_compactions):
            if each.kind != "clear":
                found.setdefault(each.cut, place)
        messages = [step.call.message for step in self._steps]
        return [(place, bisect_left(messages, cut)) for cut, place in sorted(found.items())]

    def compactions(self, *, shift: int = 0) -> Iterator[Compaction]:
        """Yield the compactions in order, each measured.

        Args:
            shift: Calls by which every compaction is moved, to see what comes of none.
        """
        starts = [min(max(0, start + shift), len(self._steps)) for _, start in self.boundaries]
        for index, (place, _) in enumerate(self.boundaries):
            recorded = self.fixture.recorded_compactions[place]
            start = starts[index]
            before = starts[index - 1] if index else 0
            end = starts[index + 1] if index + 1 < len(starts) else len(self._steps)
            whole = start + WINDOW <= end and start < len(self._steps)
            opens = whole and self._steps[start].opens
            window = self._measure(start, end) if whole else None
            controls = [
                self._measure(at, stop, window.reach)
                for low, high, stop in (
                    (max(before + WINDOW, (before + start) // 2), start - 2 * WINDOW, start),
                    (start + 2 * WINDOW, end - (2 if end < len(self._steps) else 1) * WINDOW, end),
                )
                for at in self._places(low, high, opens=opens)
                if window
            ]
            yield Compaction(
                cut=recorded.cut,
                kind=recorded.kind,
                trigger=recorded.trigger,
                tokens_before=recorded.tokens_before,
                tokens_after=recorded.tokens_after,
                window=window,
                before=self._measure(start - WINDOW, start) if start - WINDOW >= before else None,
                controls=controls,
            )

    def _places(self, low: int, high: int, *, opens: bool) -> list[int]:
        """Return the first calls of control windows, evenly spread and apart from each other."""
        real = [start for _, start in self.boundaries]  # others than the given ones if shifted
        fit = [
            at
            for at in range(max(0, low), min(high, len(self._steps) - WINDOW) + 1)
            if self._steps[at].opens == opens
            and not any(-2 * WINDOW < at - start < 2 * WINDOW for start in real)
        ]
        apart: list[int] = []
        for at in fit:
            if not apart or at - apart[-1] >= WINDOW:
                apart.append(at)
        step = max(1.0, len(apart) / MAX_CONTROLS)
        return [apart[int(number * step)] for number in range(min(MAX_CONTROLS, len(apart)))]

    def _measure(self, start: int, end: int, reach: int = MAX_TO_EDIT) -> Window:
        steps = self._steps[start : start + WINDOW]
        by_call, seen = [0.0] * len(steps), set[str]()
        for number, step in enumerate(steps):
            lines = {line for line in step.shown if len(line) >= _MIN_LINE} - seen
            seen |= lines
            held = sum(len(line) for line in lines if self._first[_key(line)] < start)
            by_call[number] = held / CHARACTERS
        rereads = list(self._rereads(start))
        reached = range(start, min(end, start + reach))
        return Window(
            start=start,
            held=sum(by_call),
            by_call=by_call,
            calls=[step.call.id for step in steps],
            shown_again=sum(each.tokens for each in rereads),
            rereads=rereads,
            edit_calls=next((at - start for at in reached if self._steps[at].edit), None),
            reach=len(reached),
        )

    def _rereads(self, start: int) -> Iterator[Reread]:
        """Yield the re-reads of a window by rule: known text of few files, not changed since."""
        seen: set[int] = set()
        for number in range(start, start + WINDOW):
            step = self._steps[number]
            lines = [line for line in step.shown if len(line) >= _MIN_FILE_LINE]
            if not 1 <= len(step.reads) <= _MAX_FILES or len(lines) < _MIN_LINES:
                continue
            keys = {_key(line): line for line in lines}
            known = {
                key: line
                for key, line in keys.items()
                if any(self._known[path].get(key, number) < start for path in step.reads)
            }
            fresh = [key for key in keys if key not in seen]
            seen.update(keys)
            changed = any(
                start <= at < number for path in step.reads for at in self._edits.get(path, ())
            )
            if changed or len(known) < _KNOWN * len(keys) or len(fresh) < _NEW * len(keys):
                continue
            path = max(step.reads, key=lambda each: len(self._known[each].keys() & keys))
            earlier = [at for at in self._latest[path] if at < start]
            yield Reread(
                path=path,
                lines=len(known),
                of=len(keys),
                tokens=sum(map(len, known.values())) / CHARACTERS,
                calls_ago=number - earlier[-1] if earlier else 0,
                edits=sum(at < start for at in self._edits.get(path, ())),
            )


def _key(line: str) -> int:
    return int.from_bytes(hashlib.blake2b(line.encode(errors="replace"), digest_size=8).digest())


def _lines(texts: Iterable[str], least: int) -> list[str]:
    """Return the distinct lines of texts, without numbers, outer space and what clients add."""
    found: dict[str, None] = {}
    for text in texts:
        for line in text.splitlines():
            if _HEADER.match(line):
                continue
            bare = _NUMBERED.sub("", line, count=1).strip()
            if len(bare) >= least:
                found[bare] = None
    return list(found)


def _written(call: Call) -> Iterator[str]:
    """Yield the texts in a call's arguments, at any depth."""
    waiting: list[object] = [call.arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _steps(fixture: Fixture) -> list[_Step]:
    calls = calls_of_fixture(fixture.messages)
    numbered = [replace(call, message=number) for number, call in enumerate(calls)]
    reads: dict[int, list[str]] = defaultdict(list)
    writes: dict[int, list[str]] = defaultdict(list)
    reading = read_calls(numbered)
    for event in reading.events:
        if event.action == "read":
            if (event.message, event.path) in reading.printed:
                reads[event.message].append(event.path)
        elif not event.folder and event.action != "deleted":
            writes[event.message].append(event.to or event.path)
    cuts = [each.cut for each in fixture.recorded_compactions]
    steps: list[_Step] = []
    edits: set[tuple[str, ...]] = set()
    place = 0
    for number, call in enumerate(calls):
        first, place = place, max(place, call.message + 1)
        between = fixture.messages[first : call.message + 1]
        breaks = [at for at, message in enumerate(between) if message.role == "user"]
        breaks += [cut - first for cut in cuts if first < cut <= call.message]
        since = max(breaks, default=0)
        steps.append(
            _Step(
                call=call,
                shown=_lines([call.result or ""], _MIN_FILE_LINE),
                opens=any(message.typed.strip() for message in between),
                said=_said(between[since:]),
                said_before=_said(between[:since]),
                reads=reads[number],
                writes=writes[number],
                edit=bool(writes[number]) and _is_new(call, writes[number], edits),
            )
        )
    return steps


def _said(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if message.role == "assistant"]


def _is_new(call: Call, paths: Sequence[str], edits: set[tuple[str, ...]]) -> bool:
    """Return whether an edit has texts that no earlier one had, outside of temporary folders."""
    parts: list[tuple[str, ...]] = [
        (old or "", new or "")
        for part in edits_of(call.arguments)
        for old, new in [(text_of(part, OLD_KEYS), text_of(part, (*NEW_KEYS, *TEXT_KEYS)))]
        if (old, new) != (None, None)
    ] or [("", *sorted(_written(call)))]  # a patch, or a command that writes
    made = {(path, *part) for path in paths if not _TEMPORARY.search(path) for part in parts}
    new = made - edits
    edits |= made
    return bool(new)
