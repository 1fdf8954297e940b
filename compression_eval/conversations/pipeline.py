"""One import from end to end: read, name, cut, scrub, audit, write; one conversation at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compression_eval.conversations.account import Account, Entry
from compression_eval.conversations.cutting import CutRule, find_cuts
from compression_eval.conversations.duplicates import Copies, Duplicates, Names
from compression_eval.conversations.importing import (
    Read,
    ReadOptions,
    Recognised,
    Refused,
    read_input,
)
from compression_eval.conversations.inputs import Input
from compression_eval.conversations.overview import (
    Overview,
    explained,
    explained_json,
    skipped_json,
)
from compression_eval.conversations.progress import Progress, printable
from compression_eval.conversations.scrubbing import (
    Pseudonyms,
    Report,
    ScrubSettings,
    TextPasses,
    audit,
    scrub,
)
from compression_eval.conversations.targets import Target
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.models import Fixture

_SHOWN_FINDINGS = 5
_Key = tuple[str, int]
"""A file, and the number of what is in it."""


@dataclass(frozen=True)
class Scrubber:
    """How conversations are scrubbed on their way."""

    settings: ScrubSettings
    pseudonyms: Pseudonyms


@dataclass(frozen=True)
class ImportOptions:
    """Everything that an import is told beside where to read and to write."""

    reading: ReadOptions
    cuts: Sequence[CutRule]
    scrubber: Scrubber | None = None
    duplicates: Duplicates = "all"
    """Whether only the longest copy of a session is kept; everything is then read twice."""


class Import:
    """Carries out an import.

    Args:
        options: What is wanted.
        target: Where fixtures go.
        say: Prints a line.
        explain: Takes the whole account, as lines of JSON if ``as_json``; None if it is not
            wanted.
        as_json: Whether the account is written as JSON.
    """

    def __init__(
        self,
        options: ImportOptions,
        target: Target,
        say: Callable[[str], None],
        explain: Callable[[str], None] | None = None,
        *,
        as_json: bool = False,
    ) -> None:
        self._options = options
        self._target = target
        self._say = say
        self._explain = explain
        self._as_json = as_json
        self._names = Names()
        self._written: dict[str, str] = {}
        self._shared: TextPasses | None = None
        self.overview = Overview()
        self.report = Report()
        self.imported = 0

    def run(self, inputs: Sequence[Input], progress: Progress) -> None:
        """Import everything that was named; what goes wrong with one does not stop the others.

        Args:
            inputs: In the order in which they are read.
            progress: Shows how far it is.
        """
        shorter = self._read_ahead(inputs, progress)
        for number, item in enumerate(inputs, 1):
            progress.show(number, item.place)
            for place, outcome in enumerate(read_input(item, self._options.reading)):
                progress.clear()
                if reason := shorter.get((item.place, place)):
                    self.overview.skipped.append((item.place, reason))
                    if self._explain and self._as_json:
                        self._explain(skipped_json(item.place, reason))
                    continue
                if isinstance(outcome, Recognised):
                    shown = printable(item.place, 300, end=True)
                    self._say(f"{shown}: {outcome.format}, {printable(outcome.seen, 300)}")
                elif isinstance(outcome, Refused):
                    self._refused(outcome)
                else:
                    self._take(outcome)
                    messages = len(outcome.built.fixture.messages)
                    progress.show(number, item.place, messages)
        progress.clear()

    def _read_ahead(self, inputs: Sequence[Input], progress: Progress) -> dict[_Key, str]:
        """Read everything once before, where what is in one file decides about others.

        A name that one file gives away is replaced in all; of several copies one may stay.

        Returns:
            The conversations to leave out, and why.
        """
        copies = Copies() if self._options.duplicates == "longest" else None
        if scrubber := self._options.scrubber:
            self._shared = TextPasses(scrubber.settings, scrubber.pseudonyms)
        if not copies and not scrubber:
            return {}
        for number, item in enumerate(inputs, 1):
            progress.show(number, f"{item.place} (read ahead)")
            for place, outcome in enumerate(read_input(item, self._options.reading)):
                if isinstance(outcome, Read) and scrubber and self._shared:
                    self._shared.learn_from(outcome.built.fixture)
                if isinstance(outcome, Read) and copies:
                    copies.add((item.place, place), outcome.built.fixture)
        return copies.shorter() if copies else {}

    def _refused(self, outcome: Refused) -> None:
        self.overview.skipped.append((outcome.input.place, outcome.reason))
        self.overview.failed += outcome.input.named
        if self._explain and self._as_json:
            self._explain(skipped_json(outcome.input.place, outcome.reason))

    def _take(self, read: Read) -> None:
        try:
            self._write(read)
        except DataError as error:
            self._refused(Refused(read.input, str(error), recognised=True))

    def _write(self, read: Read) -> None:
        place = read.input.place
        named = self._names.give(read.built.fixture, place)
        if named.name is None:
            self._say(f"  skipped: {printable(named.note, 400)}")
            self.overview.skipped.append((place, named.note))
            return
        found = find_cuts(read.built.fixture, self._options.cuts)
        fixture = read.built.fixture.model_copy(update={"name": named.name, "cuts": found.cuts})
        account = read.built.account
        if self._options.scrubber:
            fixture, account = self._scrubbed(fixture, account, self._options.scrubber)
        if fixture.name in self._written:
            raise DataError(f"its name is that of a conversation of {self._written[fixture.name]}")
        self._target.write(fixture)
        self._written[fixture.name] = place
        self.imported += 1
        self.overview.add(fixture, account, read.format, place)
        for note in (named.note, *found.notes):
            if note:
                self._say(f"  {fixture.name}: {printable(note, 400)}")
        if self._explain:
            lines = explained_json if self._as_json else explained
            for line in lines(place, fixture.name, account):
                self._explain(line)

    def _scrubbed(
        self, fixture: Fixture, account: Account, scrubber: Scrubber
    ) -> tuple[Fixture, Account]:
        """Scrub a conversation and look at it once more; what still matches is not written."""
        done = scrub(fixture, scrubber.settings, scrubber.pseudonyms, self._shared)
        findings = audit(done.fixture, scrubber.settings, done)
        if findings:
            shown = "; ".join(str(finding) for finding in findings[:_SHOWN_FINDINGS])
            more = len(findings) - _SHOWN_FINDINGS
            raise DataError(
                f"not written, the audit still finds: {shown}"
                + (f"; and {more} more" if more > 0 else "")
            )
        self.report.add(done.report)
        return done.fixture, _renumbered(account, done.moved)


def _renumbered(account: Account, moved: dict[int, int]) -> Account:
    """Return an account whose numbers are those after scrubbing has dropped messages."""
    return Account(
        tuple(_moved(entry, moved) for entry in account.entries),
        tuple((moved[number], reason) for number, reason in account.added if number in moved),
    )


def _moved(entry: Entry, moved: dict[int, int]) -> Entry:
    if not entry.messages:
        return entry
    left = tuple(moved[number] for number in entry.messages if number in moved)
    if left:
        return replace(entry, messages=left)
    return replace(entry, fate="skipped", messages=(), reason="dropped by scrubbing")
