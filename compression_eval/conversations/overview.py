"""What an import shows of what became of the input, in counts and line by line."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from compression_eval.conversations.drafts import ENTERED_APART, Account
from compression_eval.fixtures.models import Fixture
from compression_eval.terminal import aligned

_HEADS = (
    *("fixture", "messages", "calls", "results", "compactions", "cut at", "skipped lines"),
    "begins with",
)
_MAX_FILES = 10
_MAX_UNREADABLE = 20
_MAX_TITLE_CHARACTERS = 40


@dataclass
class Overview:
    """Everything that is said at the end; of a conversation only its counts are kept."""

    rows: list[tuple[str, ...]] = field(default_factory=list)
    unsettled: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """Lines that a reader does not know, by format, fate, kind and reason."""
    first: dict[tuple[str, str, str, str], str] = field(default_factory=dict)
    """Where the first of each stands."""
    unreadable: list[str] = field(default_factory=list)
    """The first lines that could not be read, with their file and why."""
    unreadable_count: int = 0
    left_out: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Parts of lines that no reader carried over, by format, part and reason."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Files and conversations that nothing was made of, with the reason."""
    failed: int = 0
    """How many were named by themselves, not to be read, met by a defect, or lost with a copy."""

    @classmethod
    def of(cls, fixture: Fixture, account: Account, format_name: str, place: str) -> "Overview":
        """Return what is said of one fixture, which was made of the file at a place."""
        results = sum(message.role == "tool" for message in fixture.messages)
        missing = sum(fixture.messages[number].role == "tool" for number, _ in account.added)
        said = (message.typed.split() for message in fixture.messages)
        words = next((words for words in said if words), [])
        row = (
            fixture.name,
            len(fixture.messages),
            sum(len(message.calls) for message in fixture.messages),
            results - missing,
            len(fixture.recorded_compactions),
            " ".join(map(str, fixture.cuts)) or "-",
            sum(
                entry.fate == "skipped" and not entry.reason.endswith(ENTERED_APART)
                for entry in account.entries
            ),
            # The first words of the user, by which people know a conversation.
            printable(" ".join(words), _MAX_TITLE_CHARACTERS),
        )
        made = cls([tuple(map(str, row))])
        for entry in account.unsettled():
            kind = (format_name, entry.fate, entry.kind, entry.reason)
            made.unsettled[kind] += 1
            where = f"{printable(place.rpartition('/')[2], 60, end=True)}: {entry.place}"
            made.first.setdefault(kind, where)
        for entry in account.entries:
            if entry.kind == "unreadable":
                made.unreadable_count += 1
                if len(made.unreadable) < _MAX_UNREADABLE:
                    where = f"{printable(place, 300, end=True)}: {entry.place}"
                    made.unreadable.append(f"{where}: {printable(entry.reason)}")
            made.left_out.update((format_name, part, reason) for part, reason in entry.left_out)
        return made

    def add(self, one: "Overview", name: str) -> None:
        """Take in one fixture, by the name that it got."""
        self.rows.extend((name, *row[1:]) for row in one.rows)
        self.unsettled.update(one.unsettled)
        self.first = one.first | self.first
        self.unreadable_count += one.unreadable_count
        self.unreadable.extend(one.unreadable[: _MAX_UNREADABLE - len(self.unreadable)])
        self.left_out.update(one.left_out)

    def lines(self, *, every_file: bool) -> Iterator[str]:
        """Yield the lines to print.

        Args:
            every_file: Whether every skipped file is named, or only the first few of each reason.
        """
        if self.rows:
            yield ""
            right = set(_HEADS) - {"fixture", "cut at", "begins with"}
            yield from aligned([_HEADS, *self.rows], right)
        if self.unsettled:
            yield "\nLines that the reader does not know; nothing of them is in a fixture:"
            for line, count in self.unsettled.most_common():
                name, fate, kind, reason = line
                said = printable(reason) if reason else fate
                where = "" if count == 1 else "first at "
                where += self.first[line]
                yield f"  {count} x {name}, {printable(kind, 60)}: {said} ({where})"
        if self.unreadable:
            yield f"\nLines that could not be read ({self.unreadable_count}):"
            yield from (f"  {line}" for line in self.unreadable)
            if more := self.unreadable_count - len(self.unreadable):
                yield f"  and {more} more (--explain names them)"
        if self.left_out:
            yield "\nParts of lines that are in no fixture:"
            for (name, part, reason), count in self.left_out.most_common():
                yield f"  {count} x {name}, {printable(part, 60)}: {printable(reason)}"
        if self.skipped:
            yield f"\nSkipped ({len(self.skipped)}):"
            by_reason: dict[str, list[str]] = {}
            for place, reason in self.skipped:
                by_reason.setdefault(reason, []).append(place)
            for reason, found in by_reason.items():
                shown = found if every_file else found[:_MAX_FILES]
                for place in shown:
                    yield f"  {printable(place, 300, end=True)}: {printable(reason, 500)}"
                if more := len(found) - len(shown):
                    yield f"  and {more} more for the same reason (--explain names them)"


def explained(place: str, fixture: str, account: Account) -> Iterator[str]:
    """Yield what became of every line of the conversation in a file, for people."""
    yield f"{printable(place, 300, end=True)} -> {fixture}"
    for entry in account.entries:
        yield f"  {printable(str(entry), 2000)}"
    for number, reason in account.added:
        yield f"  message {number} was added: {printable(reason)}"


def explained_json(place: str, fixture: str, account: Account) -> Iterator[str]:
    """Yield the same as lines of JSON, in ASCII: names of files and kinds may hold anything."""
    for entry in account.entries:
        yield json.dumps({"file": place, "fixture": fixture, **asdict(entry)})
    for number, reason in account.added:
        added = {"fate": "added", "messages": [number], "reason": reason}
        yield json.dumps({"file": place, "fixture": fixture, **added})


def skipped_json(place: str, reason: str) -> str:
    """Return a file that nothing was made of as a line of JSON."""
    return json.dumps({"file": place, "fixture": None, "fate": "skipped", "reason": reason})


def printable(text: str, characters: int = 200, *, end: bool = False) -> str:
    """Return untrusted text on one line for a terminal, of bounded length.

    Args:
        text: Anything.
        characters: How much of it.
        end: Whether its end is what counts.
    """
    if len(text) > characters:
        text = "…" + text[-characters:] if end else text[:characters] + "…"
    return "".join(character if character.isprintable() else "?" for character in text)
