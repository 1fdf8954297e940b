"""A corpus in shards: worked on by an engine, and written as Parquet files with a manifest.

What is done of each shard stands in a folder beside the output, from where a command that is
given again goes on, and is removed in the end. A file is written whole or not at all, under a name
that follows from the shard alone, and with the same bytes whoever writes it: so a worker that dies
loses only what it was at, and one that does a shard a second time changes nothing.
"""

import hashlib
import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from compression_eval._version import __version__
from compression_eval.conversations.sources import Input
from compression_eval.conversations.stores import Shared, Store, left, load
from compression_eval.engine import Engine, engine_of, engine_options
from compression_eval.errors import DataError, PassedOverError
from compression_eval.fixtures.addresses import is_address, local_path, remote_files
from compression_eval.fixtures.digests import digest, shown
from compression_eval.fixtures.finding_files import MANIFEST, PARQUET_SUFFIX, corpus_fault
from compression_eval.fixtures.loading import FixtureSource, FoundBank, find_sources, parsed
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.parquet_files import ParquetFixtures, ParquetWriter
from compression_eval.fixtures.writing import fixture_text

SHARD_MB = 64
"""Millions of bytes of input for each shard: some minutes of work, which a death may cost."""

UNFINISHED = ".unfinished"
"""Ends the name of the folder beside the output with what is done so far."""

_TORN = r"\.[^/]*\.tmp"
"""Names of what was being written when a worker died."""

_PLAN = "(-[0-9a-f]{12})?"
_PART = rf"part-\d{{6}}\.parquet|{re.escape(MANIFEST)}|{_TORN}"
_DONE = rf"[a-z]+(-\d{{6}}{_PLAN}(\.parquet)?|{_PLAN}\.shared)|{re.escape(MANIFEST)}|{_TORN}"
"""Names of everything in an output, and in the folder beside it; nothing else is ever removed."""


@dataclass(frozen=True)
class Sharding:
    """Who works on a corpus, and on how much at a time."""

    engine: Engine
    shard_bytes: int
    """Of the input."""


def shard_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has ``--jobs`` the options of an engine, and what they say."""

    @wraps(function)
    def command(
        engine: str | None,
        address: str | None,
        shard_mb: float | None,
        jobs: int | None,
        **others: Any,
    ) -> None:
        sharding = None
        if chosen := engine_of(engine, address):
            if jobs:
                raise DataError("--jobs: not with --engine, which takes every core of its cluster")
            sharding = Sharding(chosen, int((shard_mb or SHARD_MB) * 1_000_000))
        elif shard_mb:
            raise DataError("--shard-mb: needs --engine ray")
        function(sharding=sharding, jobs=jobs, **others)

    option = click.option(
        "--shard-mb",
        type=click.FloatRange(min=0, min_open=True),
        help=f"With --engine: MB of input for each file of the output [{SHARD_MB}].",
    )
    return engine_options(option(command))


@dataclass(frozen=True)
class Shard:
    """A part of a corpus, and where to leave what is made of it."""

    number: int
    items: tuple[Input, ...]
    unfinished: Store
    out: Store
    plan: str
    """Of the command: one that began anew takes nothing for its own that workers of the one before
    still write, perhaps without scrubbing."""

    def name(self, stage: str, suffix: str = "") -> str:
        """Return the name of what a stage makes of it, until all is done."""
        return f"{stage}-{self.number:06}-{self.plan}{suffix}"

    def result(self, stage: str) -> Any:
        """Return what a stage gave that was done."""
        return load(self.unfinished, self.name(stage))


_Unit = tuple[Shard, tuple[Any, ...]]
"""A shard, and what a stage gets beside it."""


def _stage(stage: str, function: Callable[..., Any], unit: _Unit) -> None:
    shard, given = unit
    shard.unfinished.write(shard.name(stage), pickle.dumps(function(shard, *given)))


def _name(unit: _Unit) -> str:
    return span(unit[0].items)


class Corpus:
    """Work on a corpus by stages, each of which an engine does for every shard.

    Args:
        out: The folder or address for the output.
        made_by: The command and everything that decides its output, but for the items.
        items: What there is to work on, in the order of the output.
        sharding: Who works, and on how much at a time.
        force: Whether to begin anew, whatever is there.

    Raises:
        DataError: Something else is there already, or the same of which something failed; an item
            lies there, or a folder cannot be.
    """

    def __init__(
        self,
        out: str,
        made_by: Mapping[str, Any],
        items: Sequence[Input],
        sharding: Sharding,
        *,
        force: bool,
    ) -> None:
        if out.endswith(PARQUET_SUFFIX):
            raise DataError(f"--out: {out}: with --engine expected a folder or the address of one")
        if is_address(local_path(out)) and "/" not in out.rstrip("/").partition("://")[2]:
            raise DataError(f"--out: {out}: expected a folder in it, as {out.rstrip('/')}/corpus")
        self._engine, self._out = sharding.engine, Store(out.rstrip("/"))
        self._unfinished = Store(out.rstrip("/") + UNFINISHED)
        for store in (self._out, self._unfinished):
            if store.held(item.place for item in items):
                raise DataError(f"--out: {store.root} is read from; choose another folder")
        # Paths and names may tell who somebody is: only their digest is left in the output.
        files = ((each.place, each.size, each.version) for each in items)
        everything = [*sorted(made_by.items()), *files]
        whole = digest(json.dumps([sharding.shard_bytes, everything], default=str))
        self._name = shown(whole)
        self.shards = [
            Shard(number, tuple(part), self._unfinished, self._out, self._name)
            for number, part in enumerate(parts(items, sharding.shard_bytes))
        ]
        self._plan = {
            "format": 1,
            "compression_eval": __version__,
            "command": made_by["command"],
            "inputs": len(items),
            "shards": len(self.shards),
            "digest": whole,
        }
        self._anew = force
        for store, pattern in self._ours if force else ():
            self._refuse_others(store, pattern)
        self._failed = ""
        self.complete = not force and self._begun(self._out)
        """Whether the same command has been done here already."""
        if self.complete:
            # It may have been killed before; what is left there may be what scrubbing replaced.
            self._unfinished.remove(_DONE)
            if self._failed:
                told = f"{out}: this was done before, --force does it anew: {self._failed}"
                raise DataError(told)
        self._goes_on = not (force or self.complete) and self._begun(self._unfinished)

    def stage(
        self,
        name: str,
        function: Callable[..., Any],
        given: Mapping[int, Any] | None = None,
    ) -> None:
        """Have a function called with every shard for which that was not done before.

        Args:
            name: Of the stage; `Shard.result` takes it.
            function: What it returns is kept; made of values of this package.
            given: By the numbers of the shards that it is to be called with, if not all, what it
                gets beside the shard.
        """
        # Only now: without a cluster nothing is begun, and nothing that is there is lost. The
        # manifests first: whatever ends this, nothing is taken for whole that is not.
        manifests = [(store, re.escape(MANIFEST)) for store in (self._out, self._unfinished)]
        for store, pattern in (*manifests, *self._ours) if self._anew else ():
            store.remove(pattern)
        self._anew = False
        if not self._goes_on:
            self._goes_on = self._unfinished.create(MANIFEST, self._line(self._plan))
            if not self._goes_on:
                raise DataError(f"--out: {self._out.root}: another command has just begun there")
        there = self._unfinished.names()
        units: list[_Unit] = [
            (shard, () if given is None else (given[number],))
            for number, shard in enumerate(self.shards)
            if shard.name(name) not in there and (given is None or number in given)
        ]
        work = partial(_stage, name, function)
        for _ in self._engine.run(name, work, units, _name) if units else ():
            pass

    def shared(self, name: str, make: Callable[[], Any]) -> Shared:
        """Return where all shards find what was made of the results of a stage, at most once."""
        name = f"{name}-{self._name}.shared"
        content = self._unfinished.read(name)
        if content is None:
            content = pickle.dumps(make())
            self._unfinished.write(name, content)
        return Shared(self._unfinished, name, digest(content))

    def finish(self, parts: Sequence[Mapping[str, Any]], failed: str = "") -> None:
        """Write the manifest, by which the output is complete, and what of it failed.

        Raises:
            DataError: A file of the output is not there as it was written.
        """
        lines = [self._plan | ({"failed": failed} if failed else {}), *parts]
        manifest = b"".join(map(self._line, lines))
        self._refuse_fault(manifest)  # somebody may have removed what was done before
        self._out.remove(_TORN)
        self._out.write(MANIFEST, manifest)
        self._unfinished.remove(_DONE)

    @property
    def _ours(self) -> tuple[tuple[Store, str], ...]:
        return (self._unfinished, _DONE), (self._out, _PART)

    def _begun(self, store: Store) -> bool:
        content = store.read(MANIFEST)
        if not content:
            # Files of the output are only this command's if it has begun.
            goes_on = store is self._out and bool(self._unfinished.read(MANIFEST))
            ours = {MANIFEST, *map(part_name, self.shards if goes_on else ())}
            self._refuse_others(store, _TORN, ours)
            return False
        begun = content.split(b"\n")[0]
        if not begun.startswith(self._line(self._plan).rstrip(b"}\n")):
            raise DataError(
                f"--out: {store.root} was made by another command, of other files or by another "
                "version; --force makes it anew"
            )
        if store is self._out:
            self._refuse_fault(content)
        self._failed = json.loads(begun).get("failed", "")
        return True

    def _refuse_fault(self, manifest: bytes) -> None:
        if fault := corpus_fault(self._out.sizes(), manifest):
            raise DataError(f"--out: {self._out.root}: {fault}; --force makes it anew")

    @staticmethod
    def _refuse_others(store: Store, pattern: str, expected: Set[str] = frozenset()) -> None:
        for name in sorted(store.names() - expected):
            if not re.fullmatch(pattern, name):
                raise DataError(f"--out: {store.root} holds {name}; choose another folder")

    @staticmethod
    def _line(data: Mapping[str, Any]) -> bytes:
        return json.dumps(data).encode() + b"\n"


def part_name(shard: Shard) -> str:
    """Return the name of a shard's file in the output."""
    return f"part-{shard.number:06}.parquet"


@contextmanager
def staged(shard: Shard, stage: str) -> Iterator[ParquetWriter]:
    """Take the fixtures of a shard; what was written is left for `take_over`."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "part.parquet")
        with ParquetWriter(path) as writer:
            yield writer
        shard.unfinished.write(shard.name(stage, ".parquet"), path.read_bytes())


def take_over(shard: Shard, names: Sequence[str | None], *, stage: str) -> dict[str, Any]:
    """Write a shard's file of the output out of what a stage has left.

    Args:
        shard: The shard.
        names: The name that each of them gets, as it has already or another; None leaves it out.
        stage: The stage that wrote the fixtures.

    Returns:
        The line of the manifest.
    """
    content = left(shard.unfinished, shard.name(stage, ".parquet"))
    with TemporaryDirectory() as folder:
        source, path = Path(folder, "staged.parquet"), Path(folder, "part.parquet")
        source.write_bytes(content)
        rows = list(ParquetFixtures(source).rows())
        if [row.name for row in rows] != list(names):
            with ParquetWriter(path) as writer:
                for row, name in zip(rows, names, strict=True):
                    if name is None:
                        continue
                    text, _ = row.texts()
                    fixture = parsed(text, part_name(shard), Fixture)
                    renamed = fixture.model_copy(update={"name": name})
                    writer.add(renamed, text if name == row.name else fixture_text(renamed))
            content = path.read_bytes()
    name = part_name(shard)
    shard.out.write(name, content)
    return {
        "file": name,
        "fixtures": sum(name is not None for name in names),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def fixture_files(named: Sequence[str]) -> list[Input]:
    """Return the files that hold the named fixtures, one or many each.

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
        DataError: A report is asked for, which cannot be written without doing it anew.
    """
    if report:
        raise DataError(f"{report}: not written; {told}")
    click.echo(told)


def span(items: Sequence[Input]) -> str:
    """Return the first and the last place of a shard, for people."""
    return " to ".join(dict.fromkeys((items[0].place, items[-1].place)))


def parts(items: Sequence[Input], most: int) -> Iterator[list[Input]]:
    """Yield the items in their order, so many bytes at a time."""
    part: list[Input] = []
    size = 0
    for item in items:
        # What a Parquet file holds is several times as large as the file: it stands alone.
        more = most if item.place.endswith(PARQUET_SUFFIX) else item.size
        if part and size + more > most:
            yield part
            part, size = [], 0
        part.append(item)
        size += more
    if part:
        yield part
