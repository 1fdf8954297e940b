"""One import from end to end: read, name, cut, scrub, audit, write; one conversation at a time.

Where one file decides about others there are two stages: names to replace and copies of a session
are learnt from everything that was read, and then what was read is finished. Fixtures are named in
the order of the files, so what comes out does not depend on who worked on which of them, or when.
"""

import errno
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, cast

from compression_eval.conversations.building import Built, Images, build
from compression_eval.conversations.corpus import Row, Shard, Shared, Take, Work, Write
from compression_eval.conversations.cutting import CutRule, find_cuts
from compression_eval.conversations.drafts import Conversation, Omitted
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
    printable,
    skipped_json,
)
from compression_eval.conversations.sources import PARQUET_MAGIC, Input, readable, source_file
from compression_eval.engine import Engine
from compression_eval.errors import DataError, NotScrubbedError, shorten
from compression_eval.fixtures.finding_files import PARQUET_SUFFIX, safe_stem
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.writing import fixture_text, write_whole
from compression_eval.terminal import check_output, refuse_to_overwrite

if TYPE_CHECKING:  # the rules are loaded where something is scrubbed
    from compression_eval.conversations.scrubbing import (
        Pseudonyms,
        Report,
        ScrubSettings,
        TextPasses,
        Vocabulary,
    )

_MAX_FINDINGS = 5
_CHANGED = "changed while it was read"

_FOLDERS = "openhands-events"
"""The format whose conversations are folders, with a file for each event."""


@dataclass(frozen=True)
class ImportOptions:
    """Everything that an import is told besides where to read and to write."""

    format: str = "auto"
    """Name of a format, or ``auto``."""
    images: Images = "describe"
    columns: Mapping[str, str] = field(default_factory=dict)
    """For rows: the column that contains a part, by the part's name."""
    cuts: Sequence[CutRule] = (CutRule("auto"),)
    scrubbing: "tuple[ScrubSettings, Pseudonyms] | None" = None
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
) -> "tuple[ScrubSettings, Pseudonyms] | None":
    """Return how to scrub on the way, by a profile's name; None without one.

    Raises:
        DataError: A file cannot be used, or a package is missing.
    """
    if profile is None:
        for option, given in (("--names", names), ("--key-file", key_file)):
            if given is not None:
                raise DataError(f"{option}: needs --scrub")
        return None
    from compression_eval.conversations.scrubbing import Pseudonyms, ScrubSettings, read_names

    settings = ScrubSettings.of(profile, listed=read_names(names) if names else ())
    settings.load()  # a missing package shows before anything is read
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


@dataclass(frozen=True)
class ReadConversation:
    """A conversation, ready to be written but for its name; its fixture is in a row."""

    name: str
    left_out: Sequence[Omitted]
    notes: Sequence[str]
    identity: Identity
    """As it was read."""
    report: "Report | None"
    overview: Overview


@dataclass(frozen=True)
class Failure:
    """Why a file or a conversation is not imported."""

    reason: str
    fails: bool = False
    """Whether that fails the command, wherever the file lay."""
    outside: bool = False
    """Whether its content knows nothing of that: another time the file may be read."""

    @classmethod
    def of(cls, error: Exception, what: str = "the import") -> "Failure":
        """Return what can be said of an exception without the text, which may be untrusted."""
        if isinstance(error, DataError):
            return cls(str(error), fails=isinstance(error, NotScrubbedError))
        last = extract_tb(error.__traceback__)[-1]
        where = f"{last.name}, line {last.lineno} of {Path(last.filename).name}"
        text = f"{what} failed (please report this): {type(error).__name__} in {where}"
        return cls(text, fails=True)


_Read = Recognised | _Built | Failure

Outcome = Recognised | ReadConversation | Failure
"""What a file was taken for, a conversation in it, or why one cannot be imported."""

Key = tuple[str, int]
"""A conversation: its file, and its number among those of the file."""

LeftOut = dict[Key, Shorter]
"""Which copies are not imported, and why."""


def _learn(options: ImportOptions, keeps: bool, shard: Shard) -> Iterator[Any]:
    """Yield what the conversations of a shard teach, and copies; leave what was read for `_finish`.

    Besides a corpus only digests are left, and it is read again: a store may be open to people who
    shall not see a session before it is scrubbed.
    """
    taught = _text_passes(options)
    for index, number, outcome in _outcomes(options, keeps, shard):
        left: _Read | bytes = outcome
        if isinstance(outcome, _Built):
            try:
                fixture = outcome.built.fixture
                if taught:
                    taught.learn_from(fixture)
                if options.duplicates == "longest":
                    yield copy_of((shard.items[index].place, number), fixture)
                left = _digest(fixture) if keeps else outcome
            except Exception as error:
                left = Failure.of(error)
        yield Row((index, number, left))
    if taught:
        yield taught.vocabulary


def _finish(
    options: ImportOptions,
    row: Callable[[Fixture], dict[str, Any]],
    keeps: bool,
    shared: Shared | None,
    shard: Shard,
) -> Iterator[tuple[int, int, Outcome] | Row]:
    """Yield what becomes of each conversation, as in `_outcomes`, and rows of the fixtures."""
    read, digests = _outcomes(options, keeps, shard), dict[tuple[int, int], Any]()
    vocabulary, without = None, frozenset[Key]()
    if shared:
        vocabulary, without = shared.get()
        if keeps:
            digests = {each[:2]: each[2] for each in shard.rows("learn")}
        else:
            read = shard.rows("learn")
    taught = _text_passes(options, vocabulary)
    for index, number, outcome in read:
        place, made = shard.items[index].place, cast(Outcome, outcome)
        left = digests.pop((index, number), None)
        if (place, number) in without:
            made = Failure("")
        elif isinstance(left, Failure):
            made = left
        elif isinstance(outcome, _Built):
            try:
                if shared and keeps and left != _digest(outcome.built.fixture):
                    raise NotScrubbedError(_CHANGED)
                fixture, made = _finished(outcome, place, options, taught)
                yield Row(row(fixture))
            except Exception as error:
                made = Failure.of(error)
        yield index, number, made
    for index, number in digests:
        yield index, number, Failure(_CHANGED, fails=True)


def _file_row(fixture: Fixture) -> dict[str, Any]:
    return {"name": fixture.name, "fixture": fixture_text(fixture)}


def _parquet_row(fixture: Fixture) -> dict[str, Any]:
    from compression_eval.fixtures.parquet_files import row_of

    return row_of(fixture, fixture_text(fixture))


def _text_passes(
    options: ImportOptions, vocabulary: "Vocabulary | None" = None
) -> "TextPasses | None":
    if options.scrubbing is None:
        return None
    from compression_eval.conversations.scrubbing import TextPasses

    taught = TextPasses(*options.scrubbing)
    taught.vocabulary = vocabulary or taught.vocabulary
    return taught


def _digest(fixture: Fixture) -> bytes:
    return hashlib.sha256(fixture_text(fixture).encode("utf-8", "surrogatepass")).digest()


def _outcomes(
    options: ImportOptions, keeps: bool, shard: Shard
) -> Iterator[tuple[int, int, _Read]]:
    """Yield what the files of a shard hold, and the number of each conversation in its file."""
    for index, item in enumerate(shard.items):
        number = -1
        for outcome in _read(item, options):
            # The same command, given again, reads this shard again.
            if keeps and isinstance(outcome, Failure) and outcome.outside:
                raise DataError(f"{item.place}: {outcome.reason}")
            number += not isinstance(outcome, Recognised)
            yield index, number, outcome


def _finished(
    read: _Built, place: str, options: ImportOptions, taught: "TextPasses | None"
) -> tuple[Fixture, ReadConversation]:
    fixture, left_out = read.built.fixture, read.built.left_out
    known = identity(fixture)
    cuts, moved = find_cuts(fixture, options.cuts)
    notes = [*read.built.notes, *moved]
    fixture, report = fixture.model_copy(update={"cuts": cuts}), None
    if options.scrubbing is not None:
        from compression_eval.conversations.scrubbing import audit, scrub

        settings, pseudonyms = options.scrubbing
        done = scrub(fixture, settings, pseudonyms, taught)
        if findings := audit(done.fixture, settings, done):
            shown = "; ".join(str(finding) for finding in findings[:_MAX_FINDINGS])
            more = len(findings) - _MAX_FINDINGS
            raise NotScrubbedError(
                f"not written, the audit still finds: {shown}"
                + (f"; and {more} more" if more > 0 else "")
            )
        fixture, report = done.fixture, done.report
    said = Overview.of(fixture, left_out, read.format, place)
    return fixture, ReadConversation(fixture.name, left_out, notes, known, report, said)


class Import:
    """Carries out an import.

    Args:
        options: What is wanted.
        say: Prints a line.
        explain: Takes a line of JSON for each conversation, with what is left out of it.
    """

    def __init__(
        self,
        options: ImportOptions,
        say: Callable[[str], None],
        explain: Callable[[str], None] | None = None,
    ) -> None:
        self._options = options
        self._say = say
        self._explain = explain
        self._names = Names()
        self._written: dict[str, str] = {}
        self._refused: set[Key] = set()
        self._columns = False
        self.overview = Overview()
        self._report: Report | None = None

    @property
    def imported(self) -> int:
        """How many conversations became fixtures."""
        return len(self._written)

    @property
    def replaced(self) -> list[str]:
        """What scrubbing replaced, as the lines of a table."""
        return self._report.table() if self._report else []

    def work(self, inputs: Sequence[Input], out: Path, engine: Engine, *, force: bool) -> Work:
        """Return the work whose output is a Parquet file, by its suffix, or a folder of files."""
        self._columns = out.suffix == PARQUET_SUFFIX
        return Work(inputs, engine, output=target(out, force=force))

    def run(self, work: Work) -> None:
        """Import everything that was named; what goes wrong with one does not stop the others.

        Raises:
            DataError: The output cannot be written, or workers died again and again.
        """
        options, without, shared = self._options, LeftOut(), None
        row = _parquet_row if self._columns or work.keeps else _file_row
        with work.opened():
            if options.reads_twice:
                copies, taught = Copies(), list["Vocabulary"]()
                for shard in work.stage("learn", partial(_learn, options, work.keeps)):
                    for found in shard.results("learn"):
                        copies.add(found) if isinstance(found, Copy) else taught.append(found)
                without = copies.shorter()
                whole = type(taught[0]).of(taught) if taught else None
                shared = work.share((whole, frozenset(without)))
            finish = partial(_finish, options, row, work.keeps, shared)
            for shard in work.stage("import", finish):
                take = work.taker(shard, "import")
                for index, number, outcome in shard.results("import"):
                    self._take(shard.items[index], number, outcome, without, take)
            for (place, _), why in without.items():
                if why.longer in self._refused:
                    self.overview.failed += 1
                    self.skip(place, f"its longer copy could not be imported, {why.longer[0]}")
            failed = f"{self.overview.failed} could not be imported"
            if not self.overview.failed:
                failed = "" if self.imported else "nothing was imported"
            work.close("import", failed)

    @property
    def made_by(self) -> dict[str, Any]:
        """The command, and all that decides its output besides the files."""
        options = self._options
        described: dict[str, Any] = {
            "command": "import",
            "explained": self._explain is not None,
            "format": options.format,
            "images": options.images,
            "cuts": repr(options.cuts),
            "columns": sorted(options.columns.items()),
            "duplicates": options.duplicates,
            "allow_missing": options.allow_missing,
        }
        if options.scrubbing:
            settings, pseudonyms = options.scrubbing
            described["scrub"] = settings.described(pseudonyms)
        return described

    def _take(
        self, item: Input, number: int, outcome: Outcome, without: LeftOut, take: Take
    ) -> None:
        """Name, write and count what was read; files come in their order."""
        if isinstance(outcome, Recognised):
            place = printable(item.place, 300, end=True)
            self._say(f"{place}: {outcome.format}, {printable(outcome.seen, 300)}")
        elif why := without.get((item.place, number)):
            self.skip(item.place, why.reason)
        elif isinstance(outcome, Failure):
            self._refuse(item, number, outcome)
        else:
            try:
                self._write(outcome, item.place, take)
            except (IsADirectoryError, PermissionError) as error:  # of this one name
                place = error.filename2 or error.filename
                reason = f"not written, {place}: {error.strerror}"
                self._refuse(item, number, Failure(reason, fails=True))
            except OSError:
                raise  # the output cannot be written to, and so none of the others
            except Exception as error:
                self._refuse(item, number, Failure.of(error))

    def skip(self, place: str, reason: str) -> None:
        """Account for a file or a conversation that nothing is made of."""
        self.overview.skipped.append((place, reason))
        if self._explain:
            self._explain(skipped_json(place, reason))

    def _refuse(self, item: Input, number: int, failure: Failure) -> None:
        self._refused.add((item.place, number))
        self.overview.failed += item.named or failure.fails
        self.skip(item.place, failure.reason)

    def _write(self, read: ReadConversation, place: str, take: Take) -> None:
        name, note = self._names.give(read.identity, place)
        if name is None:
            take(None)
            self._say(f"  skipped: {printable(note, 400)}")
            self.overview.skipped.append((place, note))
            return
        # A copy's number goes behind the name, which may have been scrubbed.
        name = read.name + name.removeprefix(read.identity.name)
        if name in self._written:
            take(None)
            raise DataError(f"its name is that of a conversation of {self._written[name]}")
        take(name)
        self._written[name] = place
        if self._report and read.report:
            self._report.add(read.report)
        self._report = self._report or read.report
        self.overview.add(read.overview, name)
        for each in (note, *read.notes):
            if each:
                self._say(f"  {name}: {printable(each, 400)}")
        if self._explain:
            self._explain(explained(place, name, read.left_out))


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
                        reason = f"{built.missing}; --allow-missing imports the others"
                        yield Failure(reason, fails=True)
                    else:
                        yield _Built(conversation.format, built)
                except DataError as error:
                    part = f" (part {conversation.part})" if conversation.part else ""
                    yield Failure(f"{error}{part}".replace(str(path), item.place))
                except Exception as error:  # the others of the file can still be built
                    yield Failure.of(error)
    except (DataError, OSError, MemoryError, RecursionError) as error:
        ours = isinstance(error, DataError)
        cause = error.__cause__ if ours else error
        outside = bool(_is_outside(cause) or (ours and cause and not here))
        yield Failure(why_not(error, item, path), fails=outside, outside=outside)
    except Exception as error:  # a reader's defect must not end the import of a whole corpus
        yield Failure.of(error, "the reader")


def conversations_in(item: Input, options: ImportOptions) -> Iterator[tuple[Fixture | None, str]]:
    """Yield the conversations of a file or address, or None and why one cannot be read."""
    for read in _read(item, options):
        if isinstance(read, _Built):
            yield read.built.fixture, ""
        elif isinstance(read, Failure):
            yield None, read.reason


def why_not(error: Exception, item: Input, path: Path) -> str:
    """Return why a file cannot be read, without its name, which is shown anyway."""
    if not isinstance(error, DataError):
        return f"cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}"
    text = str(error)
    if not item.named:
        text = text.partition(" (import --help ")[0]  # most files of a folder are none of these
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
        from compression_eval.conversations.rows import read_rows

        return "rows", *read_rows(item.place if source is None else str(path), options.columns)
    found, seen, source = format_of(source, options.format)
    if item.remote and found.name == _FOLDERS and isinstance(source.document, dict):
        raise DataError("one file of a conversation in many: copy its folder to this machine first")
    return found.name, seen, found.read(source)


@contextmanager
def target(out: Path, *, force: bool) -> Iterator[Write]:
    """Open what takes rows one by one; nothing of it is seen before it is whole.

    Args:
        out: A Parquet file by its suffix, else a folder; made when the first is written.
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
    from compression_eval.fixtures.parquet_files import ParquetWriter, parquet_writer

    with ExitStack() as stack:
        opened: list[ParquetWriter] = []

        def write(row: dict[str, Any], _: str) -> None:
            if not opened:
                out.parent.mkdir(parents=True, exist_ok=True)
                opened.append(stack.enter_context(parquet_writer(out)))
            opened[0].write(row)

        yield write


def _write_file(row: dict[str, Any], _: str, folder: Path, *, force: bool) -> None:
    stem = safe_stem(row["name"])
    if stem is None:
        raise DataError(f"name: {shorten(row['name'])} cannot be the name of a file")
    path, text = folder / f"{stem}.json", row["fixture"]
    if path.is_file() and not force and path.read_bytes() != text.encode("utf-8"):
        raise DataError(f"{path} is there already with other content; --force overwrites it")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
