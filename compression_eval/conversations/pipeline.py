"""One import from end to end: read, name, cut, scrub, audit, write; one conversation at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from traceback import extract_tb

from compression_eval.conversations.building import Built, Images, build
from compression_eval.conversations.cutting import CutRule, find_cuts
from compression_eval.conversations.drafts import Account, Conversation, Entry
from compression_eval.conversations.duplicates import Copies, Duplicates, Names
from compression_eval.conversations.formats import format_of
from compression_eval.conversations.overview import (
    Overview,
    Progress,
    explained,
    explained_json,
    printable,
    skipped_json,
)
from compression_eval.conversations.rows import PARQUET_MAGIC, read_rows
from compression_eval.conversations.scrubbing import (
    Pseudonyms,
    Report,
    ScrubSettings,
    TextPasses,
    audit,
    read_names,
    scrub,
)
from compression_eval.conversations.sources import Input, readable, source_file
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.finding_files import PARQUET_SUFFIX
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.parquet_files import ParquetWriter, safe_stem
from compression_eval.fixtures.writing import fixture_text, write_whole

_MAX_FINDINGS = 5


@dataclass(frozen=True)
class ImportOptions:
    """Everything that an import is told beside where to read and to write."""

    format: str = "auto"
    """Name of a format, or ``auto``."""
    images: Images = "describe"
    columns: Mapping[str, str] = field(default_factory=dict)
    """For rows: the column that holds a part, by the part's name."""
    cuts: Sequence[CutRule] = (CutRule("auto"),)
    scrubbing: tuple[ScrubSettings, Pseudonyms] | None = None
    """How conversations are scrubbed on their way; everything is then read twice."""
    duplicates: Duplicates = "all"
    """Whether only the longest copy of a session is kept; everything is then read twice."""


def scrubbing_of(
    profile: str | None, names: Path | None, key_file: Path | None
) -> tuple[ScrubSettings, Pseudonyms] | None:
    """Return how to scrub on the way, by a profile's name; None without one.

    Raises:
        DataError: A file cannot be used, or a package is missing.
    """
    if profile is None:
        for option, given in (("--names", names), ("--key-file", key_file)):
            if given is not None:
                raise DataError(f"{option}: needs --scrub")
        return None
    settings = ScrubSettings.of(profile, listed=read_names(names) if names else ())
    _ = settings.scrubber  # a missing package shows before anything is read
    return settings, Pseudonyms.of_file(key_file) if key_file else Pseudonyms()


@dataclass(frozen=True)
class _Read:
    format: str
    built: Built


class Import:
    """Carries out an import.

    Args:
        options: What is wanted.
        write: Takes fixtures, as `target` opens it.
        say: Prints a line.
        explain: Takes the whole account, as lines of JSON if ``as_json``; None if it is not
            wanted.
        as_json: Whether the account is written as JSON.
    """

    def __init__(
        self,
        options: ImportOptions,
        write: Callable[[Fixture], None],
        say: Callable[[str], None],
        explain: Callable[[str], None] | None = None,
        *,
        as_json: bool = False,
    ) -> None:
        self._options = options
        self._write = write
        self._say = say
        self._explain = explain
        self._as_json = as_json
        self._names = Names()
        self._written: dict[str, str] = {}
        self._taught = TextPasses(*options.scrubbing) if options.scrubbing else None
        self.overview = Overview()
        self.report = Report()

    @property
    def imported(self) -> int:
        """How many conversations became fixtures."""
        return len(self._written)

    def run(self, inputs: Sequence[Input]) -> None:
        """Import everything that was named; what goes wrong with one does not stop the others."""
        progress = Progress(len(inputs))
        shorter = self._read_ahead(inputs, progress)

        def recognised(item: Input, format_name: str, seen: str) -> None:
            progress.clear()
            place = printable(item.place, 300, end=True)
            self._say(f"{place}: {format_name}, {printable(seen, 300)}")

        for number, item in enumerate(inputs, 1):
            progress.show(number, item.place)
            for index, outcome in enumerate(_read(item, self._options, recognised)):
                progress.clear()
                if reason := shorter.get((item.place, index)):
                    self._skip(item.place, reason)
                elif isinstance(outcome, str):
                    self._refuse(item, outcome)
                else:
                    try:
                        self._take(outcome, item.place)
                    except DataError as error:
                        self._refuse(item, str(error))
                    messages = len(outcome.built.fixture.messages)
                    progress.show(number, item.place, messages)
        progress.clear()

    def _read_ahead(
        self, inputs: Sequence[Input], progress: Progress
    ) -> dict[tuple[str, int], str]:
        """Read everything once before, where what is in one file decides about others.

        A name that one file gives away is replaced in all; of several copies one may stay.

        Returns:
            The conversations to leave out, by file and number in it, and why.
        """
        copies = Copies() if self._options.duplicates == "longest" else None
        if not copies and not self._taught:
            return {}
        for number, item in enumerate(inputs, 1):
            progress.show(number, f"{item.place} (read ahead)")
            for index, outcome in enumerate(_read(item, self._options)):
                if isinstance(outcome, _Read) and self._taught:
                    self._taught.learn_from(outcome.built.fixture)
                if isinstance(outcome, _Read) and copies:
                    copies.add((item.place, index), outcome.built.fixture)
        return copies.shorter() if copies else {}

    def _refuse(self, item: Input, reason: str) -> None:
        self.overview.failed += item.named
        self._skip(item.place, reason)

    def _skip(self, place: str, reason: str) -> None:
        self.overview.skipped.append((place, reason))
        if self._explain and self._as_json:
            self._explain(skipped_json(place, reason))

    def _take(self, read: _Read, place: str) -> None:
        name, note = self._names.give(read.built.fixture, place)
        if name is None:
            self._say(f"  skipped: {printable(note, 400)}")
            self.overview.skipped.append((place, note))
            return
        cuts, notes = find_cuts(read.built.fixture, self._options.cuts)
        fixture = read.built.fixture.model_copy(update={"name": name, "cuts": cuts})
        account = read.built.account
        if self._options.scrubbing:
            fixture, account = self._scrubbed(fixture, account, *self._options.scrubbing)
        if fixture.name in self._written:
            raise DataError(f"its name is that of a conversation of {self._written[fixture.name]}")
        self._write(fixture)
        self._written[fixture.name] = place
        self.overview.add(fixture, account, read.format, place)
        for each in (note, *notes):
            if each:
                self._say(f"  {fixture.name}: {printable(each, 400)}")
        if self._explain:
            lines = explained_json if self._as_json else explained
            for line in lines(place, fixture.name, account):
                self._explain(line)

    def _scrubbed(
        self, fixture: Fixture, account: Account, settings: ScrubSettings, pseudonyms: Pseudonyms
    ) -> tuple[Fixture, Account]:
        """Scrub a conversation and look at it once more; what still matches is not written."""
        done = scrub(fixture, settings, pseudonyms, self._taught)
        findings = audit(done.fixture, settings, done)
        if findings:
            shown = "; ".join(str(finding) for finding in findings[:_MAX_FINDINGS])
            more = len(findings) - _MAX_FINDINGS
            raise DataError(
                f"not written, the audit still finds: {shown}"
                + (f"; and {more} more" if more > 0 else "")
            )
        self.report.add(done.report)
        # The account's numbers are those of the messages that scrubbing has left.
        entries = tuple(_moved(entry, done.moved) for entry in account.entries)
        added = ((done.moved.get(number), reason) for number, reason in account.added)
        kept = tuple((number, reason) for number, reason in added if number is not None)
        return done.fixture, Account(entries, kept)


def _moved(entry: Entry, moved: dict[int, int]) -> Entry:
    left = tuple(moved[number] for number in entry.messages if number in moved)
    if left or not entry.messages:
        return replace(entry, messages=left)
    return replace(entry, fate="skipped", messages=(), reason="dropped by scrubbing")


def _read(
    item: Input,
    options: ImportOptions,
    recognised: Callable[[Input, str, str], None] = lambda *_: None,
) -> Iterator[_Read | str]:
    """Yield the conversations in a file or at an address, or why one cannot be read.

    Nothing is raised for what is wrong with one: a corpus is not given up for one file.

    Args:
        item: What to read.
        options: How.
        recognised: Told the name of the format, and what marks it, before the first.
    """
    try:
        format_name, seen, conversations = _opened(item, options)
        recognised(item, format_name, seen)
        for conversation in conversations:
            try:
                yield _Read(conversation.format, build(conversation, images=options.images))
            except DataError as error:
                yield f"{error} (part {conversation.part})" if conversation.part else str(error)
    except DataError as error:
        text = str(error)
        if not item.named:
            text = text.partition(" (formats: ")[0]  # most files of a folder are none of these
        # The file's name is shown anyway.
        yield "; ".join(line.removeprefix(f"{item.place}: ") for line in text.splitlines())
    except (OSError, MemoryError, RecursionError) as error:
        yield f"cannot be read: {type(error).__name__}"
    except Exception as error:  # a reader's defect must not end the import of a whole corpus
        last = extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {last.name}, line {last.lineno}"
        yield f"the reader failed (please report this): {where}"


def _opened(item: Input, options: ImportOptions) -> tuple[str, str, Iterator[Conversation]]:
    """Return the name of a file's format, what marks it in a few words, and what is in it."""
    if not item.is_address and (reason := readable(item.path)):
        raise DataError(reason)
    source = None if item.is_address else source_file(item.path)
    if source is None or options.columns or source.magic.startswith(PARQUET_MAGIC):
        if options.format != "auto":
            raise DataError("rows of a dataset are told apart by themselves; leave out --format")
        return "rows", *read_rows(item.place, options.columns)
    found, seen = format_of(source, options.format)
    return found.name, seen, found.read(source)


@contextmanager
def target(out: Path, *, force: bool) -> Iterator[Callable[[Fixture], None]]:
    """Open what takes fixtures one by one; nothing of it is seen before it is whole.

    Args:
        out: A Parquet file by its suffix, else a folder; made when the first fixture is written.
        force: Whether what is there already may be overwritten.

    Raises:
        DataError: A Parquet file is there already, or a file stands where the folder is to be.
    """
    if out.suffix != PARQUET_SUFFIX:
        if out.exists() and not out.is_dir():
            raise DataError(f"--out: {out} is neither a folder nor named *.parquet")
        yield partial(_write_file, folder=out, force=force)
        return
    if out.is_dir():
        raise DataError(f"--out: {out} is a folder")
    if out.exists() and not force:
        raise DataError(f"--out: {out} is there already; --force overwrites it")
    with ExitStack() as stack:
        opened: list[ParquetWriter] = []

        def write(fixture: Fixture) -> None:
            if not opened:
                out.parent.mkdir(parents=True, exist_ok=True)
                opened.append(stack.enter_context(ParquetWriter(out)))
            opened[0].add(fixture, fixture_text(fixture))

        yield write


def _write_file(fixture: Fixture, folder: Path, *, force: bool) -> None:
    stem = safe_stem(fixture.name)
    if stem is None:
        raise DataError(f"name: {shorten(fixture.name)} cannot be the name of a file")
    path, text = folder / f"{stem}.json", fixture_text(fixture)
    if path.exists() and not force and path.read_bytes() != text.encode("utf-8"):
        raise DataError(f"{path} is there already with other content; --force overwrites it")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
