"""What was replaced, and how often: for the person who looks whether a rule eats facts."""

from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.overview import aligned

_MAX_SHAPES = 3
_MAX_SHAPE_CHARACTERS = 24


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

    def note(
        self, passage: str, rule: str, kind: str, value: str = "", digest: bytes = b""
    ) -> None:
        """Count one replacement."""
        entry = Entry(1, {digest}, [shape(value)])
        self.add(Report({(passage, rule, kind): entry}))

    def add(self, other: "Report") -> None:
        """Take in the counts of another conversation."""
        for key, entry in other.entries.items():
            own = self.entries.setdefault(key, Entry())
            own.replacements += entry.replacements
            own.digests |= entry.digests
            fresh = [looks for looks in entry.shapes if looks not in own.shapes]
            own.shapes.extend(fresh[: _MAX_SHAPES - len(own.shapes)])

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
            for (passage, rule, kind), entry in sorted(
                self.entries.items(), key=lambda item: (-item[1].replacements, item[0])
            )
        ]

    def table(self) -> list[str]:
        """Return the report as lines of text."""
        if not self.entries:
            return ["nothing was replaced"]
        heads = ("pass", "rule", "kind", "values", "replaced", "looks like")
        rows = [
            [*map(str, list(row.values())[:5]), "  ".join(row["shapes"])] for row in self.as_data()
        ]
        return aligned([heads, *rows], right=("values", "replaced"))


def shape(text: str) -> str:
    """Return what a value looks like without showing it: ``Aaa9-99`` for ``Bob7-42``.

    Runs keep their length up to three; the whole is cut to 24 characters.
    """
    result: list[str] = []
    for character in text:
        mark = character
        if character.isdigit():
            mark = "9"
        elif character.isalpha():
            mark = "A" if character.isupper() else "a"
        elif not character.isprintable() or character.isspace():
            mark = "_"
        if result[-3:] != [mark] * 3:
            result.append(mark)
        if len(result) > _MAX_SHAPE_CHARACTERS:
            return "".join(result[:_MAX_SHAPE_CHARACTERS]) + "…"
    return "".join(result)
