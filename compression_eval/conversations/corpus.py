"""Work on a corpus in shards, stage by stage, and its output as Parquet files with a manifest.

A stage is a function that yields what it found in a shard, which goes into one file, and rows,
which go into another. The files are in a folder next to the output, from where a command that is
given again goes on, and which is removed at the end; where the output is no corpus, in a temporary
folder. A file is written whole or not at all, under a name that follows from the shard alone, and
with the same bytes whoever writes it: so a worker that dies loses only what it worked on.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from compression_eval._version import __version__
from compression_eval.conversations.sources import Input
from compression_eval.conversations.stores import Packing, Store
from compression_eval.engine import Engine, engine_of, engine_options
from compression_eval.errors import DataError, PassedOverError
from compression_eval.fixtures.digests import digest, shown
from compression_eval.fixtures.finding_files import (
    MANIFEST,
    PARQUET_SUFFIX,
    corpus_fault,
    is_address,
    local_path,
    remote_files,
)
from compression_eval.fixtures.loading import FixtureSource, FoundBank, find_sources, parsed
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.writing import fixture_text

SHARD_MB = 64
"""Millions of bytes of input for each file of a corpus: what a death may cost a cluster."""

UNIT_BYTES = 1_000_000
"""Of the input at most, for each shard where the output is no corpus."""

UNITS = 16
"""Such shards there are at least, if there are as many files."""

UNFINISHED = ".unfinished"
"""Ends the name of the folder next to the output with what is done so far."""

_TORN = rf"\.[^/]*\.tmp|{re.escape(MANIFEST)}"
"""Names of what was being written when a worker died; a manifest is then empty."""

_PART = rf"part-\d{{6}}\.parquet|{_TORN}"
_DONE = rf"[a-z]+-\d{{6}}(-[0-9a-f]{{12}}(\.rows)?)?|{_TORN}"
"""Names of everything in an output, and in the folder next to it; nothing else is ever removed."""


def shard_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has ``--jobs`` the options of an engine, and what they say.

    It gets an ``engine``, and ``shard_bytes``: of the input for each file of a corpus; None if
    the output is none.
    """

    @wraps(function)
    def command(
        engine: str | None,
        address: str | None,
        shard_mb: float | None,
        jobs: int | None,
        **others: Any,
    ) -> None:
        chosen = engine_of(engine, address, jobs)
        wanted = shard_mb or (SHARD_MB if engine else None)
        shard_bytes = int(wanted * 1_000_000) if wanted else None
        function(engine=chosen, shard_bytes=shard_bytes, **others)

    option = click.option(
        "--shard-mb",
        type=click.FloatRange(min=0, min_open=True),
        help="Write a corpus of Parquet files, each of so many MB of input "
        f"[{SHARD_MB} with --engine].",
    )
    return engine_options(option(command))


@dataclass(frozen=True)
class Shard:
    """A part of the input, and where to leave what is made of it."""

    number: int
    items: tuple[Input, ...]
    unfinished: Store
    plan: str = ""
    """Digest of the command: workers of an earlier command may still write, perhaps without
    scrubbing, and nothing of theirs may be taken."""

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(item.size for item in self.items)

    def __str__(self) -> str:
        return " to ".join(dict.fromkeys((self.items[0].place, self.items[-1].place)))

    def name(self, stage: str) -> str:
        """Return the name of the file with what a stage yielded."""
        return f"{stage}-{self.number:06}{self.plan and '-'}{self.plan}"

    def results(self, stage: str) -> Iterator[Any]:
        """Yield what a stage yielded, but for its rows."""
        return self.unfinished.objects(self.name(stage))

    def rows(self, stage: str) -> Iterator[Any]:
        """Yield the rows of a stage."""
        return (row.values for row in self.unfinished.objects(f"{self.name(stage)}.rows"))


@dataclass(frozen=True)
class Row:
    """What a stage leaves for a later one, and need not come to the command."""

    values: Any


@dataclass(frozen=True)
class Shared:
    """A value that all workers need; each loads it once."""

    store: Store
    name: str

    def get(self) -> Any:
        """Return the value."""
        return _loaded(self.store, self.name)


@lru_cache(maxsize=1)
def _loaded(store: Store, name: str) -> Any:
    return next(store.objects(name))


Write = Callable[[dict[str, Any], str], None]
Take = Callable[..., None]
"""Takes the name that a row gets, or None to leave it out, and where it was."""


def _stage(stage: str, function: Callable[[Shard], Iterable[Any]], shard: Shard) -> None:
    results, rows = Packing(), Packing()
    for each in function(shard):
        (rows if isinstance(each, Row) else results).add(each)
    shard.unfinished.write(f"{shard.name(stage)}.rows", rows.content())
    shard.unfinished.write(shard.name(stage), results.content())  # last: by this one it is done


class Work:
    """Stages over all shards of an input, whose output is no corpus.

    Args:
        items: What there is to work on, in the order of the output.
        engine: Who works.
        shard_bytes: Of the input, for each shard; by default few.
        output: Opens what takes a row, with the name that it gets, and where it was.
    """

    keeps = False
    """Whether what is done is still there when the command is given again."""
    _plan_name = ""

    def __init__(
        self,
        items: Sequence[Input],
        engine: Engine,
        shard_bytes: int | None = None,
        *,
        output: "AbstractContextManager[Write] | None" = None,
    ) -> None:
        self._engine, self._output = engine, output
        few = min(UNIT_BYTES, sum(item.size for item in items) // UNITS)
        self._parts = list(_parts(items, shard_bytes or few))
        self._shards: list[Shard] = []

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Begin, for several stages."""
        with ExitStack() as opened:
            sizes = [sum(item.size for item in part) for part in self._parts]
            # The output is finished last of all, when nothing can end the command any more.
            self._write = opened.enter_context(self._output) if self._output else None
            opened.enter_context(self._engine.opened(sizes))
            self._store = self._begin(opened)
            self._shards = [
                Shard(number, tuple(part), self._store, self._plan_name)
                for number, part in enumerate(self._parts)
            ]
            yield

    def stage(self, name: str, function: Callable[[Shard], Iterable[Any]]) -> Iterator[Shard]:
        """Yield every shard in order when a function was called with it.

        Args:
            name: Of the stage; `Shard.results` takes it.
            function: Yields what it found, and `Row`.
        """
        done = self._done()
        left = [shard for shard in self._shards if shard.name(name) not in done]
        work = partial(_stage, name, function)
        running = self._engine.run(name, work, left, str, size=attrgetter("size"))
        if self.keeps:  # what is said of an input is said of all of it
            list(running)
            yield from self._shards
        else:
            yield from (left[number] for number, _ in running)

    def share(self, value: Any) -> Shared:
        """Return what gives workers a value."""
        name = self._shards[0].name("share")
        self._store.write(name, Packing([value]).content())
        _loaded.cache_clear()
        return Shared(self._store, name)

    def taker(self, shard: Shard, stage: str) -> Take:
        """Return what is called for each row of a stage in its order, to write it or leave it."""
        rows = shard.rows(stage)

        def take(name: str | None, place: str = "") -> None:
            row = next(rows)
            if name is not None and self._write:
                self._write(_renamed(row, name), place)

        return take

    def close(self, stage: str, failed: str = "") -> None:
        """Finish the output out of the rows of a stage.

        Args:
            stage: The stage.
            failed: What of the input failed.

        Raises:
            DataError: A file of the output is not there as it was written.
        """

    def _begin(self, opened: ExitStack) -> Store:
        return Store(opened.enter_context(TemporaryDirectory()))

    def _done(self) -> Set[str]:
        return frozenset()


class Corpus(Work):
    """Stages whose output is a folder of Parquet files with a manifest.

    Args:
        out: The folder or address for the output.
        made_by: The command and everything that decides its output, but for the items.
        items: As for `Work`.
        engine: As for `Work`.
        shard_bytes: Of the input, for each file of the output.
        force: Whether to begin again, whatever is there.

    Raises:
        DataError: Something else is there already, or the same of which something failed; an item
            lies there, or a folder cannot be.
    """

    keeps = True

    def __init__(
        self,
        out: str,
        made_by: Mapping[str, Any],
        items: Sequence[Input],
        engine: Engine,
        shard_bytes: int,
        *,
        force: bool,
    ) -> None:
        super().__init__(items, engine, shard_bytes=shard_bytes)
        root = out.rstrip("/")
        if out.endswith(PARQUET_SUFFIX):
            raise DataError(f"--out: {out}: a corpus needs a folder or the address of one")
        if is_address(local_path(out)) and "/" not in root.partition("://")[2]:
            raise DataError(f"--out: {out}: expected a folder in it, as {root}/corpus")
        self._out, self._unfinished = Store(root), Store(root + UNFINISHED)
        for store in (self._out, self._unfinished):
            if store.held(item.place for item in items):
                raise DataError(f"--out: {store.root} is read from; choose another folder")
        # Paths and names may tell who somebody is: only their digest is left in the output.
        files = ((each.place, each.size, each.version) for each in items)
        whole = digest(json.dumps([shard_bytes, [*sorted(made_by.items()), *files]], default=str))
        self._plan_name = shown(whole)
        self._plan = {
            "format": 1,
            "compression_eval": __version__,
            "command": made_by["command"],
            "inputs": len(items),
            "shards": len(self._parts),
            "digest": whole,
        }
        self._names: dict[int, list[str | None]] = {}
        self._anew, self._goes_on = force, False
        self.complete = False
        """Whether the same command has been done here already."""
        if force:
            self._refuse_others(self._unfinished, _DONE)
            self._refuse_others(self._out, _PART)
        elif plan := self._plan_in(self._out):
            self._refuse_fault(self._out.read(MANIFEST))
            self.complete = True
            # It may have been killed before; what is left there may be what scrubbing replaced.
            self._unfinished.remove(_DONE)
            if failed := plan.get("failed"):
                raise DataError(f"{out}: this was done before, --force does it again: {failed}")
        else:
            self._goes_on = self._plan_in(self._unfinished) is not None
            if not self._goes_on:
                self._refuse_others(self._unfinished, _TORN)
            self._refuse_others(self._out, _PART if self._goes_on else _TORN)

    def taker(self, shard: Shard, stage: str) -> Take:
        """As `Work.taker`; the rows stay where they are."""
        del stage
        names = self._names[shard.number] = []
        return lambda name, place="": names.append(name)  # noqa: ARG005

    def close(self, stage: str, failed: str = "") -> None:
        """As `Work.close`; each row contains the argument of `ParquetWriter.write`."""
        for shard in self._shards:
            names = Packing(self._names[shard.number])
            self._unfinished.write(shard.name("names"), names.content())
        lines = [self._plan | ({"failed": failed} if failed else {})]
        for shard in self.stage("finish", partial(_write_part, stage, self._out)):
            lines += shard.results("finish")
        manifest = b"".join(map(_line, lines))
        self._refuse_fault(manifest)  # somebody may have removed what was done before
        self._out.remove(_TORN)
        self._out.write(MANIFEST, manifest)
        self._unfinished.remove(_DONE)

    def _begin(self, opened: ExitStack) -> Store:
        del opened
        # Only now: without a cluster nothing is begun, and nothing that is there is lost. The
        # manifests first: whatever ends this, nothing is taken for whole that is not.
        for pattern in (re.escape(MANIFEST), None) if self._anew else ():
            self._out.remove(pattern or _PART)
            self._unfinished.remove(pattern or _DONE)
        if not (self._goes_on or self._unfinished.create(MANIFEST, _line(self._plan))):
            raise DataError(f"--out: {self._out.root}: another command has just begun there")
        return self._unfinished

    def _done(self) -> Set[str]:
        return self._unfinished.sizes().keys()

    def _plan_in(self, store: Store) -> dict[str, Any] | None:
        """Return the first line of a folder's manifest; None if nothing has begun there.

        Raises:
            DataError: It is another command's, or of something else.
        """
        if not (content := store.read(MANIFEST)):
            return None
        begun = content.split(b"\n")[0]
        if not begun.startswith(_line(self._plan).rstrip(b"}\n")):
            raise DataError(
                f"--out: {store.root} was made by another command, of other files or by another "
                "version; --force makes it again"
            )
        plan: dict[str, Any] = json.loads(begun)
        return plan

    def _refuse_fault(self, manifest: bytes | None) -> None:
        if fault := corpus_fault(self._out.sizes(), manifest):
            raise DataError(f"--out: {self._out.root}: {fault}; --force makes it again")

    @staticmethod
    def _refuse_others(store: Store, pattern: str) -> None:
        for name in sorted(store.sizes()):
            if not re.fullmatch(pattern, name):
                raise DataError(f"--out: {store.root} contains {name}; choose another folder")


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"


def _write_part(stage: str, out: Store, shard: Shard) -> Iterator[dict[str, Any]]:
    """Write a shard's file of the output, if it has any row; yields its line of the manifest."""
    from compression_eval.fixtures.parquet_files import parquet_writer

    names = list(shard.results("names"))
    if not any(names):
        return
    name = f"part-{shard.number:06}.parquet"
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        with parquet_writer(path) as writer:
            for row, given in zip(shard.rows(stage), names, strict=True):
                if given is not None:
                    writer.write(_renamed(row, given))
        content = path.read_bytes()
    out.write(name, content)
    yield {
        "file": name,
        "fixtures": sum(name is not None for name in names),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _renamed(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a row of a Parquet file with another name for its fixture."""
    if row["name"] == name:
        return row
    fixture = parsed(row["fixture"], name, Fixture).model_copy(update={"name": name})
    return {**row, "name": name, "file": name, "fixture": fixture_text(fixture)}


def fixture_files(named: Sequence[str]) -> list[Input]:
    """Return the files that contain the named fixtures, one or many each.

    Raises:
        DataError: As `find_sources`.
    """
    places = dict.fromkeys(source.place for source in find_sources(list(named)))
    return [
        Input(place, named=True, remote=remote_files(place)[0] if is_address(place) else None)
        for place in places
    ]


def fixtures_in(files: Iterable[Input]) -> Iterator[FixtureSource]:
    """Yield the fixtures in files that `fixture_files` has found."""
    for file in files:
        yield from find_sources(file.place if is_address(file.place) else file.path)


def bank_of(source: FixtureSource) -> FoundBank | None:
    """Return the bank of a fixture; None if it has none."""
    try:
        return source.find_bank()
    except PassedOverError:
        return None


def say_done_before(told: str, report: str | Path | None) -> None:
    """Say that nothing is left to do.

    Raises:
        DataError: A report is asked for, which cannot be written without doing it again.
    """
    if report:
        raise DataError(f"{report}: not written; {told}")
    click.echo(told)


def _parts(items: Sequence[Input], most: int) -> Iterator[list[Input]]:
    """Yield the items in their order, so many bytes at a time."""
    part: list[Input] = []
    size = 0
    for item in items:
        # What a Parquet file contains is several times as large as the file: it is alone in its
        # shard.
        more = most if item.place.endswith(PARQUET_SUFFIX) else item.size
        if part and size + more > most:
            yield part
            part, size = [], 0
        part.append(item)
        size += more
    if part:
        yield part
