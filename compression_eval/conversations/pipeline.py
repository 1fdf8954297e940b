"""One import from end to end: read, name, cut, scrub, audit, write; one conversation at a time."""

import errno
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from traceback import extract_tb

from compression_eval.conversations.building import Built, Images, build
from compression_eval.conversations.cutting import CutRule, find_cuts
from compression_eval.conversations.drafts import Account, Conversation, Entry
from compression_eval.conversations.duplicates import (
    Copies,
    Copy,
    Duplicates,
    Identity,
    Names,
    Shorter,
    copy_of,
    identity,
)
from compression_eval.conversations.formats import format_of
from compression_eval.conversations.overview import (
    Overview,
    explained,
    explained_json,
    printable,
    skipped_json,
)
from compression_eval.conversations.processes import Workers
from compression_eval.conversations.rows import PARQUET_MAGIC, read_rows
from compression_eval.conversations.scrubbing import (
    LOADED,
    NotScrubbedError,
    Pseudonyms,
    Report,
    ScrubSettings,
    TextPasses,
    Vocabulary,
    audit,
    read_names,
    scrub,
)
from compression_eval.conversations.sources import Input, readable, source_file
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import PARQUET_SUFFIX
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.parquet_files import ParquetWriter, safe_stem
from compression_eval.fixtures.writing import fixture_text, write_whole
from compression_eval.terminal import check_output, refuse_to_overwrite

_MAX_FINDINGS = 5

_FOLDERS = "openhands-events"
"""The format whose conversations are folders, with a file for each event."""

MAX_KEPT_BYTES = 8_000_000
MAX_KEPT_MESSAGES = 6_000
"""Of files up to so large, a process keeps so many messages, so as not to read them again."""


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
    allow_missing: bool = False
    """Whether a conversation is imported of which more than a third is left out."""

    @property
    def reads_twice(self) -> bool:
        """Whether what is in one file decides about others."""
        return self.scrubbing is not None or self.duplicates == "longest"


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
class Recognised:
    """What a file was taken for."""

    format: str
    seen: str
    """What marks the format, in a few words."""


@dataclass(frozen=True)
class _Built:
    format: str
    built: Built

    @property
    def digest(self) -> str:
        return digest(self.built.fixture.model_dump_json())


@dataclass(frozen=True)
class ReadConversation:
    """A conversation, ready to be written but for its name."""

    fixture: Fixture
    account: Account
    notes: Sequence[str]
    identity: Identity
    """As it was read."""
    report: Report
    overview: Overview


@dataclass(frozen=True)
class Defect:
    """Why a conversation is not imported, if that fails the command, wherever the file lay."""

    reason: str

    @classmethod
    def of(cls, error: Exception, what: str) -> "Defect":
        """Return what can be said of an exception without the text, which may be untrusted."""
        last = extract_tb(error.__traceback__)[-1]
        where = f"{last.name}, line {last.lineno} of {Path(last.filename).name}"
        return cls(f"{what} failed (please report this): {type(error).__name__} in {where}")


@dataclass(frozen=True)
class Unread(Defect):
    """Why a file was not read, of which its content knows nothing: another time it may be."""


_CHANGED = Defect("not what it was when all was read ahead; give the command again")

_Read = Recognised | _Built | Defect | str

Outcome = Recognised | ReadConversation | Defect | str
"""What a file was taken for, a conversation in it, or why one cannot be imported."""

Key = tuple[str, int]
"""A conversation: its file, and its number among those of the file."""

LeftOut = dict[Key, "Shorter | Defect"]
"""What is not imported after all has been read ahead, and why."""


def left_out(read_ahead: Iterable[Copy | tuple[Key, Defect]]) -> LeftOut:
    """Return what is left out by what `ImportWorker.read_ahead` yielded for all files."""
    copies, failed = Copies(), LeftOut()
    for found in read_ahead:
        if isinstance(found, Copy):
            copies.add(found)
        else:
            failed.update((found,))
    return copies.shorter() | failed


class ImportWorker:
    """Reads the files of an import, and scrubs what is in them.

    Args:
        options: What is wanted.
    """

    def __init__(self, options: ImportOptions) -> None:
        self._options = options
        self._taught = TextPasses(*options.scrubbing) if options.scrubbing else None
        self._left_out: Container[Key] = ()
        self.learnt: dict[Key, str] = {}
        """Digests of the conversations that were read ahead."""
        self._kept: dict[Input, list[_Read]] = {}
        self._room = MAX_KEPT_MESSAGES

    def read_ahead(self, item: Input) -> Iterator[Copy | tuple[Key, Defect]]:
        """Learn from the conversations in a file; yields what `left_out` takes.

        What was read is kept for `read`, as far as there is room.
        """
        if self._room > 0 and 0 < item.size <= MAX_KEPT_BYTES:
            kept = self._kept[item] = list(_read(item, self._options))
            read = (outcome.built.fixture for outcome in kept if isinstance(outcome, _Built))
            self._room -= sum(len(fixture.messages) for fixture in read)
        for number, outcome in self._outcomes(item):
            key = (item.place, number)
            if not isinstance(outcome, _Built):
                if isinstance(outcome, Unread):
                    yield key, outcome
                continue
            try:
                self.learnt[key] = outcome.digest
                if self._taught:
                    self._taught.learn_from(outcome.built.fixture)
                if self._options.duplicates == "longest":
                    yield copy_of(key, outcome.built.fixture)
            except Exception as error:
                yield key, Defect.of(error, "the import")

    def taught(self) -> Vocabulary:
        """Return what this worker learnt."""
        return self._taught.vocabulary if self._taught else Vocabulary()

    def prepare(
        self,
        taught: Sequence[Vocabulary],
        without: Container[Key],
        learnt: Mapping[Key, str] | None = None,
    ) -> None:
        """Take what all workers learnt, which conversations to leave out, and what was read."""
        self._left_out = without
        self.learnt |= learnt or {}
        if self._taught:
            self._taught.vocabulary = Vocabulary.of(taught)

    def read(self, item: Input) -> Iterator[Outcome]:
        """Yield the conversations in a file, scrubbed, or why one cannot be imported."""
        number = -1
        for number, outcome in self._outcomes(item):
            key = (item.place, number)
            if isinstance(outcome, Recognised | Defect):
                yield outcome
            elif key in self._left_out:
                yield ""
            elif isinstance(outcome, str):
                yield _CHANGED if key in self.learnt else outcome
            else:
                try:
                    known = not self._options.reads_twice or self.learnt.get(key) == outcome.digest
                    yield self._finished(outcome, item.place) if known else _CHANGED
                except NotScrubbedError as error:
                    yield Defect(str(error))
                except DataError as error:
                    yield str(error)
                except Exception as error:
                    yield Defect.of(error, "the import")
        if (item.place, number + 1) in self.learnt:
            yield _CHANGED
        self._kept.pop(item, None)

    def _finished(self, read: _Built, place: str) -> ReadConversation:
        fixture, account = read.built.fixture, read.built.account
        known = identity(fixture)
        cuts, moved = find_cuts(fixture, self._options.cuts)
        notes = [*read.built.notes, *moved]
        fixture = fixture.model_copy(update={"cuts": cuts})
        if self._options.scrubbing is None:
            said = Overview.of(fixture, account, read.format, place)
            return ReadConversation(fixture, account, notes, known, Report(), said)
        settings, pseudonyms = self._options.scrubbing
        done = scrub(fixture, settings, pseudonyms, self._taught)
        if findings := audit(done.fixture, settings, done):
            shown = "; ".join(str(finding) for finding in findings[:_MAX_FINDINGS])
            more = len(findings) - _MAX_FINDINGS
            raise NotScrubbedError(
                f"not written, the audit still finds: {shown}"
                + (f"; and {more} more" if more > 0 else "")
            )
        # The account's numbers are those of the messages that scrubbing has left.
        entries = tuple(_moved(entry, done.moved) for entry in account.entries)
        added = ((done.moved.get(number), reason) for number, reason in account.added)
        kept = tuple((number, reason) for number, reason in added if number is not None)
        account = Account(entries, kept)
        said = Overview.of(done.fixture, account, read.format, place)
        return ReadConversation(done.fixture, account, notes, known, done.report, said)

    def _outcomes(self, item: Input) -> Iterator[tuple[int, _Read]]:
        """Yield what a file holds, conversations and what cannot be read numbered from 0."""
        number = -1
        for outcome in self._kept.get(item) or _read(item, self._options):
            number += not isinstance(outcome, Recognised)
            yield number, outcome


class Import:
    """Carries out an import.

    Args:
        options: What is wanted.
        write: Takes fixtures, as `target` opens it.
        say: Prints a line.
        explain: Takes the whole account, as lines of JSON if ``as_json``; None if it is not
            wanted.
        as_json: Whether the account is written as JSON.
        jobs: Processes; None for as many as pay. The result is the same with any number.
    """

    def __init__(
        self,
        options: ImportOptions,
        write: Callable[[Fixture], None],
        say: Callable[[str], None],
        explain: Callable[[str], None] | None = None,
        *,
        as_json: bool = False,
        jobs: int | None = None,
    ) -> None:
        self._options = options
        self._write = write
        self._say = say
        self._explain = explain
        self._as_json = as_json
        self._jobs = jobs
        self._names = Names()
        self._written: dict[str, str] = {}
        self._refused: set[Key] = set()
        self.overview = Overview()
        self.report = Report()

    @property
    def imported(self) -> int:
        """How many conversations became fixtures."""
        return len(self._written)

    def run(self, inputs: Sequence[Input]) -> None:
        """Import everything that was named; what goes wrong with one does not stop the others.

        Raises:
            DataError: A process ended before its work was done.
        """
        twice = self._options.reads_twice
        make = partial(ImportWorker, self._options)
        imports = LOADED if self._options.scrubbing else ()
        with Workers(make, inputs, self._jobs, 1 + twice, imports) as workers:
            without = self._read_ahead(workers, inputs) if twice else {}
            for item, outcomes in workers.each("import", ImportWorker.read, inputs):
                self.take(item, outcomes, without)
        self.end(without)

    def take(self, item: Input, outcomes: Iterable[Outcome], without: LeftOut) -> None:
        """Name, write and count what was read of one file; files come in their order.

        Args:
            item: The file.
            outcomes: As `ImportWorker.read` yields them.
            without: As `left_out` returns it.
        """
        index = 0
        for outcome in outcomes:
            if isinstance(outcome, Recognised):
                place = printable(item.place, 300, end=True)
                self._say(f"{place}: {outcome.format}, {printable(outcome.seen, 300)}")
                continue
            why = without.get((item.place, index))
            if isinstance(why, Shorter):
                self.skip(item.place, why.reason)
            elif why is not None:
                self._refuse(item, index, why)
            elif isinstance(outcome, str | Defect):
                self._refuse(item, index, outcome)
            else:
                try:
                    self._take(outcome, item.place)
                except DataError as error:
                    self._refuse(item, index, str(error))
                except (IsADirectoryError, PermissionError) as error:  # of this one name
                    place = error.filename2 or error.filename
                    self._refuse(item, index, Defect(f"not written, {place}: {error.strerror}"))
                except OSError:
                    raise  # the output cannot be written to, and so none of the others
                except Exception as error:
                    self._refuse(item, index, Defect.of(error, "the import"))
            index += 1

    def end(self, without: LeftOut) -> None:
        """Count what was left out for a longer copy that could not be imported, as failed."""
        for (place, _), why in without.items():
            if isinstance(why, Shorter) and why.longer in self._refused:
                self.overview.failed += 1
                self.skip(place, f"its longer copy could not be imported, {why.longer[0]}")

    def skip(self, place: str, reason: str) -> None:
        """Account for a file or a conversation that nothing is made of."""
        self.overview.skipped.append((place, reason))
        if self._explain and self._as_json:
            self._explain(skipped_json(place, reason))

    def _read_ahead(self, workers: Workers[ImportWorker], inputs: Sequence[Input]) -> LeftOut:
        """Read everything once before, where what is in one file decides about others.

        A name that one file gives away is replaced in all; of several copies one may stay.
        """
        read = workers.each("read ahead", ImportWorker.read_ahead, inputs)
        without = left_out(each for _, found in read for each in found)
        workers.all(ImportWorker.prepare, workers.all(ImportWorker.taught), set(without))
        return without

    def _refuse(self, item: Input, index: int, reason: str | Defect) -> None:
        self._refused.add((item.place, index))
        self.overview.failed += item.named or isinstance(reason, Defect)
        self.skip(item.place, reason.reason if isinstance(reason, Defect) else reason)

    def _take(self, read: ReadConversation, place: str) -> None:
        name, note = self._names.give(read.identity, place)
        if name is None:
            self._say(f"  skipped: {printable(note, 400)}")
            self.overview.skipped.append((place, note))
            return
        # A copy's number goes behind the name, which may have been scrubbed.
        name = read.fixture.name + name.removeprefix(read.identity.name)
        fixture = read.fixture.model_copy(update={"name": name})
        if name in self._written:
            raise DataError(f"its name is that of a conversation of {self._written[name]}")
        self._write(fixture)
        self._written[name] = place
        self.report.add(read.report)
        self.overview.add(read.overview, name)
        for each in (note, *read.notes):
            if each:
                self._say(f"  {name}: {printable(each, 400)}")
        if self._explain:
            lines = explained_json if self._as_json else explained
            for line in lines(place, name, read.account):
                self._explain(line)


def _moved(entry: Entry, moved: dict[int, int]) -> Entry:
    left = tuple(moved[number] for number in entry.messages if number in moved)
    if left == entry.messages:
        return entry
    if left or not entry.messages:
        return replace(entry, messages=left)
    return replace(entry, fate="skipped", messages=(), reason="dropped by scrubbing")


def _read(item: Input, options: ImportOptions) -> Iterator[_Read]:
    """Yield the format and the conversations of a file or address, or why one cannot be read.

    Nothing is raised for what is wrong with one: a corpus is not given up for one file.
    """
    path, here = item.path, False
    try:
        with item.local() as path:
            here = True
            format_name, seen, conversations = _opened(item, path, options)
            yield Recognised(format_name, seen)
            for conversation in conversations:
                try:
                    built = build(conversation, images=options.images)
                    if built.missing and not options.allow_missing:
                        yield Defect(f"{built.missing}; --allow-missing imports the others")
                    else:
                        yield _Built(conversation.format, built)
                except DataError as error:
                    part = f" (part {conversation.part})" if conversation.part else ""
                    yield f"{error}{part}".replace(str(path), item.place)
                except Exception as error:  # the others of the file can still be built
                    yield Defect.of(error, "the import")
    except (DataError, OSError, MemoryError, RecursionError) as error:
        text, ours = why_not(error, item, path), isinstance(error, DataError)
        cause = error.__cause__ if ours else error
        unread = _is_outside(cause) or (ours and cause and not here)
        yield Unread(text) if unread else text
    except Exception as error:  # a reader's defect must not end the import of a whole corpus
        yield Defect.of(error, "the reader")


def why_not(error: Exception, item: Input, path: Path) -> str:
    """Return why a file cannot be read, without its name, which is shown anyway."""
    if not isinstance(error, DataError):
        return f"cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}"
    text = str(error)
    if not item.named:
        text = text.partition(" (--format takes ")[0]  # most files of a folder are none of these
    lines = (line.replace(str(path), item.place) for line in text.splitlines())
    return "; ".join(line.removeprefix(f"{item.place}: ") for line in lines)


def _is_outside(error: BaseException | None) -> bool:
    """Return whether it came from the system, and not from what is in a file."""
    if isinstance(error, OSError):
        # Packages raise it without a number for damaged files, which may also lead to wrong seeks.
        return error.errno not in (None, errno.EINVAL)
    return isinstance(error, MemoryError)


def _opened(
    item: Input, path: Path, options: ImportOptions
) -> tuple[str, str, Iterator[Conversation]]:
    """Return the name of a file's format, what marks it in a few words, and what is in it."""
    if not item.is_dataset and (reason := readable(path)):
        if not path.is_symlink():  # one that leads nowhere is no file
            path.stat()
        raise DataError(reason)
    source = None if item.is_dataset else source_file(path)
    if source is None or options.columns or source.magic.startswith(PARQUET_MAGIC):
        if options.format != "auto":
            raise DataError("rows of a dataset are told apart by themselves; leave out --format")
        return "rows", *read_rows(item.place if source is None else str(path), options.columns)
    found, seen, source = format_of(source, options.format)
    if item.is_remote and found.name == _FOLDERS and isinstance(source.document, dict):
        raise DataError("one file of a conversation in many: copy its folder to this machine first")
    return found.name, seen, found.read(source)


@contextmanager
def target(out: Path, *, force: bool) -> Iterator[Callable[[Fixture], None]]:
    """Open what takes fixtures one by one; nothing of it is seen before it is whole.

    Args:
        out: A Parquet file by its suffix, else a folder; made when the first fixture is written.
        force: Whether what is there already may be overwritten.

    Raises:
        DataError: It cannot be written, or a Parquet file is there already.
    """
    if out.suffix != PARQUET_SUFFIX:
        if out.exists() and not out.is_dir():
            raise DataError(f"--out: {out} is neither a folder nor named *.parquet")
        check_output(out, folder=True, parents=True)
        yield partial(_write_file, folder=out, force=force)
        return
    check_output(out, parents=True)
    refuse_to_overwrite(out, "--out", force=force)
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
    if path.is_file() and not force and path.read_bytes() != text.encode("utf-8"):
        raise DataError(f"{path} is there already with other content; --force overwrites it")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
