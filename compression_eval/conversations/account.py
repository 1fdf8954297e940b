"""The account of an import: what became of every line or event of the input.

A reader enters each line before it looks inside, so that none can be forgotten; a line that is
not settled at the end is a defect of the reader and is shown as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from compression_eval.conversations.drafts import Draft
    from compression_eval.conversations.sources import Value

NO_THINKING = "thinking is left out"
REPLACED_BYTES = "bytes that are not UTF-8 were replaced"

Fate = Literal["message", "merged", "skipped", "unknown", "unaccounted"]


@dataclass(frozen=True)
class Entry:
    """What became of one line or event."""

    place: str
    """Where it stands, as ``line 12`` or ``event 5``."""
    kind: str
    """What the format calls it, as ``attachment:queued_command``."""
    fate: Fate
    messages: tuple[int, ...] = ()
    """Indices of the fixture's messages that it became or was merged into."""
    reason: str = ""
    """Why it was skipped, or what is not known about it."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Parts of it that were not carried over: kind and reason."""

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.messages))
        outcome = {
            "message": f"became message {numbers}",
            "merged": f"merged into message {numbers}",
            "skipped": f"skipped: {self.reason}",
            "unknown": f"unknown: {self.reason}",
            "unaccounted": "not accounted for (please report this)",
        }[self.fate]
        parts = "".join(f"; without {kind}: {reason}" for kind, reason in self.left_out)
        return f"{self.place} ({self.kind}): {outcome}{parts}"


@dataclass(eq=False)
class Line:
    """One line or event of the input, on its way to being settled.

    A line that was never entered is of no account: it is for what is read a second time.
    """

    place: str = ""
    kind: str = ""
    drafts: list[Draft] = field(default_factory=list)
    merged_into: list[Draft] = field(default_factory=list)
    reason: str | None = None
    unknown: bool = False
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def became(self, draft: Draft) -> Draft:
        """Say that this line is the origin of a message; may be said of several messages."""
        self.drafts.append(draft)
        return draft

    def merge(self, *drafts: Draft) -> None:
        """Say that this line added to, or repeats, messages that have their origin elsewhere."""
        self.merged_into.extend(drafts)

    def merge_or_skip(self, drafts: Iterable[Draft], reason: str) -> None:
        """Say what this line repeats, or, if there is nothing, why it is skipped."""
        self.merge(*drafts)
        if not self.merged_into:
            self.skip(reason)

    def skip(self, reason: str) -> None:
        """Say why nothing of this line is in the fixture; the reason holds no content."""
        self.reason = reason

    def is_unknown(self, what: str) -> None:
        """Say that this line is of a kind that the reader does not know."""
        self.unknown, self.reason = True, what

    def leave_out(self, part: str, reason: str) -> None:
        """Say that a part of this line was not carried over."""
        self.left_out.append((part, reason))

    def leave_out_thinking(self) -> None:
        """Say, once, that the thinking of this line was not carried over."""
        part = ("thinking", NO_THINKING)
        if part not in self.left_out:
            self.left_out.append(part)


@dataclass
class Ledger:
    """All lines of one conversation, and what was done to its messages afterwards."""

    lines: list[Line] = field(default_factory=list)
    dropped: dict[Draft, str] = field(default_factory=dict)
    """Messages that no fixture can hold, with the reason."""
    added: dict[Draft, str] = field(default_factory=dict)
    """Messages that no line stands for, with the reason."""

    def enter(self, place: str, kind: str) -> Line:
        """Enter a line or event; it has to be settled by one of its methods."""
        line = Line(place, kind)
        self.lines.append(line)
        return line

    def enter_value(self, value: Value, kind: str) -> Line:
        """Enter a value of a file; the line of one that cannot be read is settled."""
        line = self.enter(value.place, "unreadable" if value.problem else kind)
        if value.problem:
            line.skip(value.problem)
        if value.replaced:
            line.leave_out("bytes", REPLACED_BYTES)
        return line

    def entries(self, numbers: Mapping[Draft, int]) -> Iterator[Entry]:
        """Yield what became of every line, in order.

        Args:
            numbers: Index in the fixture of every message that is in it.
        """
        for line in self.lines:
            said = [*line.drafts, *line.merged_into]
            became = tuple(numbers[draft] for draft in line.drafts if draft in numbers)
            merged = tuple(numbers[draft] for draft in line.merged_into if draft in numbers)
            gone = (self.dropped[draft] for draft in said if draft in self.dropped)
            reason = line.reason or next(gone, None) if not line.unknown else line.reason or ""
            fate: Fate = "unaccounted"
            if became or merged:
                fate, reason = "message" if became else "merged", ""
            elif line.unknown:
                fate = "unknown"
            elif reason is not None:
                fate = "skipped"
            parts = tuple(line.left_out)
            yield Entry(line.place, line.kind, fate, became or merged, reason or "", parts)


@dataclass(frozen=True)
class Account:
    """What became of the input of one fixture."""

    entries: tuple[Entry, ...]
    added: tuple[tuple[int, str], ...]
    """Messages that no line stands for, with the reason."""

    def counts(self) -> Counter[tuple[Fate, str, str]]:
        """Count the entries by fate, kind and reason."""
        return Counter((entry.fate, entry.kind, entry.reason) for entry in self.entries)

    def unsettled(self) -> list[Entry]:
        """Return the entries that are unknown or not accounted for."""
        return [entry for entry in self.entries if entry.fate in ("unknown", "unaccounted")]
