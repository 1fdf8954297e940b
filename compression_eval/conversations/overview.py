"""What an import shows at its end: its fixtures, and what is in none of them, in counts."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

from compression_eval.conversations.drafts import Omitted
from compression_eval.fixtures.models import NO_RESULT, NOT_RUN, Fixture
from compression_eval.terminal import aligned

_HEADS = (
    *("fixture", "messages", "calls", "results", "compactions", "cut at", "left out"),
    "begins with",
)
_NOT_RECORDED = (NO_RESULT, NOT_RUN)
_MAX_FILES = 10
_MAX_TITLE_CHARACTERS = 40

_Reason = tuple[str, str, str, bool, bool]
"""The format, and the fields of `Omitted` that tell one reason from another."""


@dataclass
class Overview:
    """Everything that is said at the end; of a conversation only its counts are kept."""

    rows: list[tuple[str, ...]] = field(default_factory=list)
    left_out: dict[_Reason, tuple[int, str]] = field(default_factory=dict)
    """How often something was left out, and where it was first."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Files and conversations that nothing was made of, with the reason."""
    failed: int = 0
    """How many were named by themselves, not to be read, met by a defect, or lost with a copy."""

    @classmethod
    def of(
        cls, fixture: Fixture, left_out: Iterable[Omitted], format_name: str, place: str
    ) -> "Overview":
        """Return what is said of one fixture, which was made of the file at a place."""
        made = cls()
        file, lines = printable(place.rpartition("/")[2], 60, end=True), 0
        for one in left_out:
            lines += one.count if one.whole else 0
            reason = (format_name, one.what, one.reason, one.known, one.whole)
            made._count(reason, one.count, f"{file}: {one.first[0]}")
        said = (message.typed.split() for message in fixture.messages)
        row = (
            fixture.name,
            len(fixture.messages),
            sum(len(message.calls) for message in fixture.messages),
            sum(m.role == "tool" and m.text not in _NOT_RECORDED for m in fixture.messages),
            len(fixture.recorded_compactions),
            " ".join(map(str, fixture.cuts)) or "-",
            lines,
            # The first words of the user, by which people know a conversation.
            printable(" ".join(next(filter(None, said), [])), _MAX_TITLE_CHARACTERS),
        )
        made.rows.append(tuple(map(str, row)))
        return made

    def _count(self, reason: _Reason, count: int, first: str) -> None:
        before, place = self.left_out.get(reason, (0, first))
        self.left_out[reason] = before + count, place

    def add(self, one: "Overview", name: str) -> None:
        """Take in one fixture, by the name that it got."""
        self.rows.extend((name, *row[1:]) for row in one.rows)
        for reason, (count, first) in one.left_out.items():
            self._count(reason, count, first)

    def lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        if self.rows:
            yield ""
            right = set(_HEADS) - {"fixture", "cut at", "begins with"}
            yield from aligned([_HEADS, *self.rows], right)
        for known, title in (
            (False, "Lines that are unknown or damaged; nothing of them is in a fixture:"),
            (True, "Left out by rule:"),
        ):
            found = [(at, each) for each, at in self.left_out.items() if each[3] is known]
            if found:
                yield f"\n{title}"
            for (count, first), (name, what, reason, *_) in sorted(found, key=lambda it: -it[0][0]):
                why = printable(reason) or "unknown"
                yield f"  {count} x {name}, {printable(what, 60)}: {why} (first at {first})"
        if self.skipped:
            yield f"\nSkipped ({len(self.skipped)}):"
            by_reason: dict[str, list[str]] = {}
            for place, reason in self.skipped:
                by_reason.setdefault(reason, []).append(place)
            for reason, places in by_reason.items():
                for place in places[:_MAX_FILES]:
                    yield f"  {printable(place, 300, end=True)}: {printable(reason, 500)}"
                if len(places) > _MAX_FILES:
                    more = len(places) - _MAX_FILES
                    yield f"  and {more} more for the same reason (--explain lists them)"


def explained(place: str, fixture: str, left_out: Iterable[Omitted]) -> str:
    """Return what is left out of a conversation as a line of JSON, in ASCII."""
    counts = [asdict(one) for one in left_out]
    return json.dumps({"file": place, "fixture": fixture, "left_out": counts})


def skipped_json(place: str, reason: str) -> str:
    """Return a file that nothing was made of as a line of JSON."""
    return json.dumps({"file": place, "fixture": None, "reason": reason})


def printable(text: str, characters: int = 200, *, end: bool = False) -> str:
    """Return untrusted text on one line for a terminal, of bounded length."""
    if len(text) > characters:
        text = "…" + text[-characters:] if end else text[:characters] + "…"
    return "".join(character if character.isprintable() else "?" for character in text)
