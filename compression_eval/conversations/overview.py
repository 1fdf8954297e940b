"""What an import prints: what became of the input, in a table, in counts, and line by line."""

import json
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from compression_eval.conversations.account import Account
from compression_eval.conversations.progress import printable
from compression_eval.fixtures.models import Fixture

_HEADS = (
    "fixture", "messages", "calls", "results", "compactions", "cuts", "skipped lines", "begins with"
)  # fmt: skip
_SHOWN_FILES = 10
_MAX_UNREADABLE = 20
_TITLE_CHARACTERS = 40


@dataclass
class Overview:
    """Everything that is said at the end; of a conversation only its counts are kept."""

    rows: list[tuple[str, ...]] = field(default_factory=list)
    unsettled: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """Lines that a reader does not know, by format, fate, kind and reason."""
    unreadable: list[str] = field(default_factory=list)
    """The first lines that could not be read, with their file and why."""
    unreadable_count: int = 0
    left_out: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Parts of lines that no reader carried over, by format, part and reason."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Files and conversations that nothing was made of, with the reason."""
    failed: int = 0
    """How many of those were named by themselves."""

    def add(self, fixture: Fixture, account: Account, format_name: str, place: str) -> None:
        """Take in a fixture that was made of the file at a place."""
        results = sum(message.role == "tool" for message in fixture.messages)
        missing = sum(fixture.messages[number].role == "tool" for number, _ in account.added)
        self.rows.append(
            (
                fixture.name,
                str(len(fixture.messages)),
                str(sum(len(message.calls) for message in fixture.messages)),
                str(results - missing),
                str(len(fixture.recorded_compactions)),
                " ".join(map(str, fixture.cuts)) or "-",
                str(sum(entry.fate == "skipped" for entry in account.entries)),
                _title(fixture),
            )
        )
        for entry in account.unsettled():
            self.unsettled[format_name, entry.fate, entry.kind, entry.reason] += 1
        for entry in account.entries:
            if entry.kind == "unreadable":
                self.unreadable_count += 1
                if len(self.unreadable) < _MAX_UNREADABLE:
                    where = f"{printable(place, 300, end=True)}: {entry.place}"
                    self.unreadable.append(f"{where}: {printable(entry.reason)}")
            self.left_out.update((format_name, part, reason) for part, reason in entry.left_out)

    def lines(self, *, every_file: bool) -> Iterator[str]:
        """Yield the lines to print.

        Args:
            every_file: Whether every skipped file is named, or only the first few of each reason.
        """
        if self.rows:
            yield ""
            right = set(_HEADS) - {"fixture", "cuts", "begins with"}
            yield from aligned([_HEADS, *self.rows], right)
        if self.unsettled:
            yield ""
            yield "Lines that the reader does not know; nothing of them is in a fixture:"
            for (name, fate, kind, reason), count in self.unsettled.most_common():
                said = printable(reason) if reason else fate
                yield f"  {count} x {name}, {printable(kind, 60)}: {said}"
        if self.unreadable:
            yield ""
            yield f"Lines that could not be read ({self.unreadable_count}):"
            yield from (f"  {line}" for line in self.unreadable)
            if more := self.unreadable_count - len(self.unreadable):
                yield f"  and {more} more (--explain names them)"
        if self.left_out:
            yield ""
            yield "Parts of lines that are in no fixture:"
            for (name, part, reason), count in self.left_out.most_common():
                yield f"  {count} x {name}, {printable(part, 60)}: {printable(reason)}"
        if self.skipped:
            yield ""
            yield f"Skipped ({len(self.skipped)}):"
            yield from self._skipped(every_file)

    def _skipped(self, every_file: bool) -> Iterator[str]:
        by_reason: dict[str, list[str]] = {}
        for place, reason in self.skipped:
            by_reason.setdefault(reason, []).append(place)
        for reason, found in by_reason.items():
            shown = found if every_file else found[:_SHOWN_FILES]
            for place in shown:
                yield f"  {printable(place, 300, end=True)}: {printable(reason, 500)}"
            if len(found) > len(shown):
                more = len(found) - len(shown)
                yield f"  and {more} more for the same reason (--explain names them)"


def explained(place: str, fixture: str, account: Account) -> Iterator[str]:
    """Yield what became of every line of a conversation, for people.

    Args:
        place: Its file.
        fixture: Its name.
        account: What became of its lines.
    """
    yield f"{printable(place, 300, end=True)} -> {fixture}"
    for entry in account.entries:
        yield f"  {printable(str(entry), 2000)}"
    for number, reason in account.added:
        yield f"  message {number} was added: {printable(reason)}"


def explained_json(place: str, fixture: str, account: Account) -> Iterator[str]:
    """Yield the same as lines of JSON."""
    for entry in account.entries:
        yield _json({"file": place, "fixture": fixture, **asdict(entry)})
    for number, reason in account.added:
        added = {"fate": "added", "messages": [number], "reason": reason}
        yield _json({"file": place, "fixture": fixture, **added})


def skipped_json(place: str, reason: str) -> str:
    """Return a file that nothing was made of as a line of JSON."""
    return _json({"file": place, "fixture": None, "fate": "skipped", "reason": reason})


def _json(data: dict[str, object]) -> str:
    return json.dumps(data)  # as ASCII: names of files and kinds may hold anything


def _title(fixture: Fixture) -> str:
    """Return the first words of the user, by which people know a conversation."""
    said = (message.typed.split() for message in fixture.messages)
    words = next((words for words in said if words), [])
    return printable(" ".join(words), _TITLE_CHARACTERS)


def aligned(rows: Sequence[Sequence[str]], right: Container[str]) -> list[str]:
    """Return a table as lines of text.

    Args:
        rows: The heads, then the rows.
        right: Heads of the columns that are set to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if head in right else cell.ljust(width)
            for head, cell, width in zip(rows[0], row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
