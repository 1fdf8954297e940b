"""What was replaced, and how often: for the person who looks whether a rule eats facts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.scrubbing.hits import shape

_SHOWN_SHAPES = 3


@dataclass
class Entry:
    """One rule's replacements of one kind."""

    replacements: int = 0
    digests: set[bytes] = field(default_factory=set, repr=False)
    """Digests of the values, to count different ones without keeping any."""
    shapes: list[str] = field(default_factory=list)
    """What the first few looked like, masked."""


@dataclass
class Report:
    """Replacements by pass, rule and kind."""

    entries: dict[tuple[str, str, str], Entry] = field(default_factory=dict)

    def note(self, passage: str, rule: str, kind: str, value: str, digest: bytes) -> None:
        """Count one replacement."""
        entry = self.entries.setdefault((passage, rule, kind), Entry())
        entry.replacements += 1
        entry.digests.add(digest)
        looks = shape(value)
        if looks not in entry.shapes and len(entry.shapes) < _SHOWN_SHAPES:
            entry.shapes.append(looks)

    def add(self, other: "Report") -> None:
        """Take in the counts of another conversation."""
        for key, entry in other.entries.items():
            own = self.entries.setdefault(key, Entry())
            own.replacements += entry.replacements
            own.digests |= entry.digests
            fresh = [looks for looks in entry.shapes if looks not in own.shapes]
            own.shapes.extend(fresh[: _SHOWN_SHAPES - len(own.shapes)])

    def as_data(self) -> list[dict[str, Any]]:
        """Return the report as JSON, most frequent first."""
        return [
            {
                "pass": passage,
                "rule": rule,
                "kind": kind,
                "values": len(entry.digests),
                "replacements": entry.replacements,
                "shapes": entry.shapes,
            }
            for (passage, rule, kind), entry in self._sorted()
        ]

    def table(self) -> list[str]:
        """Return the report as lines of text."""
        if not self.entries:
            return ["nothing was replaced"]
        rows: list[Sequence[str]] = [("pass", "rule", "kind", "values", "replaced", "looks like")]
        rows.extend(
            (*key, str(len(entry.digests)), str(entry.replacements), "  ".join(entry.shapes))
            for key, entry in self._sorted()
        )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                cell.rjust(width) if place in (3, 4) else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def _sorted(self) -> list[tuple[tuple[str, str, str], Entry]]:
        return sorted(self.entries.items(), key=lambda item: (-item[1].replacements, item[0]))
