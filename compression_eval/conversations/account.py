"""The account of an import: what became of every line or event of the input.

A reader enters each line before it looks inside, so that none can be forgotten; a line that is
not settled at the end is a defect of the reader and is shown as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from compression_eval.conversations.drafts import Draft

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
    """One line or event of the input, on its way to being settled."""

    place: str
    kind: str
    drafts: list[Draft] = field(default_factory=list)
    merged_into: list[Draft] = field(default_factory=list)
    reason: str | None = None
    unknown: bool = False
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def became(self, draft: Draft) -> Draft:
        """Say that this line is the origin of a message; may be said of several messages."""
        self.drafts.append(draft)
        return draft

    def merge(self, draft: Draft) -> None:
        """Say that this line added to, or repeats, a message that has its origin elsewhere."""
        self.merged_into.append(draft)

    def skip(self, reason: str) -> None:
        """Say why nothing of this line is in the fixture; the reason holds no content."""
        self.reason = reason

    def is_unknown(self, what: str) -> None:
        """Say that this line is of a kind that the reader does not know."""
        self.unknown, self.reason = True, what

    def leave_out(self, part: str, reason: str) -> None:
        """Say that a part of this line was not carried over."""
        self.left_out.append((part, reason))


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

    def entries(self, numbers: Mapping[Draft, int]) -> Iterator[Entry]:
        """Yield what became of every line, in order.

        Args:
            numbers: Index in the fixture of every message that is in it.
        """
        for line in self.lines:
            yield _entry(line, numbers, self.dropped)


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


def _entry(line: Line, numbers: Mapping[Draft, int], dropped: Mapping[Draft, str]) -> Entry:
    became = tuple(numbers[draft] for draft in line.drafts if draft in numbers)
    merged = tuple(numbers[draft] for draft in line.merged_into if draft in numbers)
    gone = [dropped[draft] for draft in (*line.drafts, *line.merged_into) if draft in dropped]
    parts = tuple(line.left_out)
    if became:
        return Entry(line.place, line.kind, "message", became, left_out=parts)
    if merged:
        return Entry(line.place, line.kind, "merged", merged, left_out=parts)
    if line.unknown:
        return Entry(line.place, line.kind, "unknown", reason=line.reason or "", left_out=parts)
    reason = line.reason or (gone[0] if gone else None)
    if reason is not None:
        return Entry(line.place, line.kind, "skipped", reason=reason, left_out=parts)
    return Entry(line.place, line.kind, "unaccounted", left_out=parts)
