"""``probes generate``: a bank for each fixture, of the best candidates from every source."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click
from inspect_ai.model import Model

from compression_eval.authoring.by_model import CHUNK_TOKENS, ModelGenerator, Usage
from compression_eval.authoring.candidates import TYPES, Candidate, Dropped, Harvest, choose
from compression_eval.authoring.history import TAIL_TOKENS, THIRDS, histories
from compression_eval.authoring.mechanical import mechanical as without_model
from compression_eval.conversations.processes import Workers, jobs_option
from compression_eval.conversations.shards import (
    Corpus,
    Shard,
    Sharding,
    bank_of,
    fixture_files,
    fixtures_in,
    say_done_before,
    shard_options,
    staged,
    take_over,
)
from compression_eval.errors import DataError, PassedOverError, nothing_left, one_line, shorten
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.cuts import CutArgument, cut_argument, resolve_cut
from compression_eval.fixtures.finding_files import BANK_SUFFIX, find_bank
from compression_eval.fixtures.loading import FixtureSource, find_sources
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.packing import text_of
from compression_eval.fixtures.writing import fixture_text, versioned_json, write_whole
from compression_eval.terminal import (
    Output,
    check_output,
    examples,
    model_by_name,
    model_options,
    say_passed_over,
)

_MAX_DROPPED_SHOWN = 12
_MAX_REASON = 200


@dataclass(frozen=True)
class Wanted:
    """What is to be made."""

    per_type: int
    """Probes of each type and cut."""
    tail_tokens: int
    """Budget of the kept tail."""
    cuts: tuple[CutArgument, ...] = ()
    """As the task takes them; none for the fixture's own, else the end."""
    mechanical: bool = True
    """Whether to ask what needs no model."""
    model: str | None = None
    """Who proposes probes beside that."""


@dataclass
class CutResult:
    """What was made for one cut."""

    cut: int
    compressed: range
    """The messages that are not kept verbatim."""
    continues: bool
    """Whether the recording goes on after the cut."""
    chosen: list[Candidate] = field(default_factory=list)
    """Those that the bank has, with their ids."""
    dropped: list[Dropped] = field(default_factory=list)
    left_over: int = 0
    """Candidates that were fit and not needed."""

    @property
    def by_type(self) -> dict[str, int]:
        """How many probes of each type there are."""
        counts = Counter(item.probe.type for item in self.chosen)
        return {kind: counts[kind] for kind in TYPES}

    @property
    def spread(self) -> dict[str, int]:
        """How many probes there are about each third of the compressed part."""
        counts = Counter(item.third for item in self.chosen)
        return {third: counts[third] for third in THIRDS}

    def notes(self, wanted: Wanted) -> Iterator[str]:
        """Yield which types have fewer probes than were wanted, and why."""
        for kind, count in self.by_type.items():
            if count >= wanted.per_type:
                continue
            dropped = sum(item.type == kind for item in self.dropped)
            why = f"{dropped} dropped" if dropped else "nothing more was found"
            if kind == "decision" and wanted.model is None:
                why = "tool calls tell no reasons: decisions need a model (--model)"
            elif kind == "continuation" and wanted.model is None and not self.continues:
                why = f"nothing is recorded after the cut; {why}"
            yield f"{kind}: {count} of {wanted.per_type}: {why}"


@dataclass
class FixtureResult:
    """What was made for one fixture."""

    fixture: Fixture
    origin: str
    """Where it is."""
    target: Path
    """Where its bank goes."""
    cuts: list[CutResult] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return self.origin

    @property
    def size(self) -> int:
        """Its characters, about."""
        return sum(len(message.text) for message in self.fixture.messages)

    @property
    def bank(self) -> ProbeBank | None:
        """The bank; None if nothing could be asked."""
        probes = [item.probe for cut in self.cuts for item in cut.chosen]
        if not probes:
            return None
        return ProbeBank(fixture=self.fixture.name, language=self.fixture.language, probes=probes)

    def why_none(self) -> PassedOverError:
        """Return why there is no bank."""
        if not any(cut.compressed for cut in self.cuts):
            reason = "nothing is compressed: all of it fits the kept tail"
        else:
            dropped = sum(len(cut.dropped) for cut in self.cuts)
            reason = f"{dropped} candidates were dropped" if dropped else "nothing to ask was found"
        reason = f"no probe could be made: {reason}"
        return PassedOverError(f"{self.origin}: {reason}", self.origin, reason)

    def lines(self, wanted: Wanted) -> Iterator[str]:
        """Yield what became of the fixture, a line each."""

        def counts(found: dict[str, int]) -> str:
            return ", ".join(f"{name} {count}" for name, count in found.items())

        for cut in self.cuts:
            name = f"{self.fixture.name}, cut {cut.cut}"
            if not cut.compressed:
                tail = f"the tail of {wanted.tail_tokens} tokens"
                yield f"{name}: nothing is compressed: all fits {tail}"
                continue
            first, last = cut.compressed[0], cut.compressed[-1]
            yield f"{name}: {len(cut.chosen)} probes (messages {first} to {last} are compressed)"
            yield f"  {counts(cut.by_type)}; {counts(cut.spread)}"
            for note in cut.notes(wanted):
                yield f"  {note}"
            for item in cut.chosen:
                for warning in item.warnings:
                    yield f"  look at {item.probe.id}: {warning}"
            for dropped in cut.dropped[:_MAX_DROPPED_SHOWN]:
                asked = f" {shorten(dropped.question)}" if dropped.question else ""
                reason, *others = dropped.reasons
                more = f" (and {len(others)} more)" if others else ""
                reason = one_line(reason, len(reason))[:_MAX_REASON]
                yield f"  dropped: {dropped.type} ({dropped.origin}){asked}: {reason}{more}"
            if len(cut.dropped) > _MAX_DROPPED_SHOWN:
                number = len(cut.dropped) - _MAX_DROPPED_SHOWN
                yield f"  dropped: {number} more (--report FILE lists them)"

    def as_data(self, wanted: Wanted) -> dict[str, Any]:
        """Return everything, as the report file holds it."""
        return {
            "fixture": self.fixture.name,
            "bank": str(self.target) if self.bank else None,
            "cuts": [
                {
                    "cut": cut.cut,
                    "compressed_from": cut.compressed.start,
                    "tail_starts_at": cut.compressed.stop,
                    "by_type": cut.by_type,
                    "spread": cut.spread,
                    "notes": list(cut.notes(wanted)),
                    "left_over": cut.left_over,
                    "probes": [
                        {
                            "id": item.probe.id,
                            "origin": item.probe.origin,
                            "third": item.third,
                            "question": item.probe.question,
                            "facts": [fact.fact for fact in item.probe.expected_facts],
                            "warnings": list(item.warnings),
                        }
                        for item in cut.chosen
                    ],
                    "dropped": [asdict(item) for item in cut.dropped],
                }
                for cut in self.cuts
            ],
        }


def cuts_of(fixture: Fixture, wanted: Sequence[CutArgument]) -> list[int]:
    """Return the numbers of messages at which a fixture is cut, rising.

    Args:
        fixture: The conversation.
        wanted: Each as in `resolve_cut`, or ``recorded`` for where the recorded agent compacted,
            or ``auto``, as none at all, for the fixture's own cuts.

    Raises:
        PassedOverError: One that is wanted is out of range, or parts a call from its result, or
            the recorded agent never compacted.
    """
    recorded = [compaction.cut for compaction in fixture.recorded_compactions]
    points: set[int] = set()
    for cut in wanted or ["auto"]:
        if cut == "auto":
            points.update(fixture.cuts or recorded or [resolve_cut(fixture, "end")])
        elif cut != "recorded":
            points.add(resolve_cut(fixture, cut))
        elif recorded:
            points.update(recorded)
        else:
            name = shorten(fixture.name)
            raise PassedOverError(f"cut: 'recorded', but the agent of {name} compacted nothing")
    return sorted(points)


async def generate_bank(
    result: FixtureResult,
    wanted: Wanted,
    generator: ModelGenerator | None,
    progress: Callable[[str], None],
) -> None:
    """Fill in the cuts of a result.

    Args:
        result: The fixture, without cuts.
        wanted: What is to be made.
        generator: Asks a model; None for none.
        progress: Told one line at a time.

    Raises:
        DataError: A cut does not fit the fixture.
    """
    cuts = cuts_of(result.fixture, wanted.cuts)
    for history in await histories(result.fixture, cuts, wanted.tail_tokens):
        done = CutResult(history.cut, history.compressed, bool(history.continuation))
        result.cuts.append(done)
        if not history.compressed:
            progress(f"cut {history.cut}: everything is kept")
            continue
        harvest = Harvest()
        if generator:
            harvest.add(await generator.generate(history))
        if wanted.mechanical:
            progress(f"cut {history.cut}: reading {len(history.calls)} tool calls")
            harvest.add(without_model(history))
        chosen, twins = choose(harvest.candidates, wanted.per_type)
        done.left_over = len(harvest.candidates) - len(chosen) - len(twins)
        done.dropped = [*harvest.dropped, *twins]
        numbers: Counter[str] = Counter()
        for item in chosen:
            kind = item.probe.type
            numbers[kind] += 1
            identifier = f"{kind}-c{history.cut}-{numbers[kind]:02d}"
            probe = item.probe.model_copy(update={"id": identifier})
            done.chosen.append(replace(item, probe=probe))


def _checked_cuts(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> tuple[CutArgument, ...]:
    cuts = tuple(map(cut_argument, values))
    for cut in cuts:
        if isinstance(cut, str) and cut not in ("auto", "end", "recorded"):
            raise click.BadParameter(
                f"{shorten(cut)} is no number of messages, share between 0 and 1, 'end', "
                "'recorded' or 'auto'"
            )
    return cuts


@click.command(
    "generate",
    epilog=examples(
        "probes generate my/session.json",
        "probes generate my/fixtures --model openai/gpt-5 --mechanical --out my/banks",
        "probes generate my/session.json --cut 120 --cut end --report report.json",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="FIXTURE...")
@click.option("--model", help="Model that proposes probes, as Inspect names it.")
@model_options
@click.option("--chunk-tokens", type=click.IntRange(min=1_000), help="History per call [60000].")
@click.option("--mechanical", is_flag=True, help="With a model: also what needs none.")
@click.option("--per-type", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--cut",
    "cuts",
    multiple=True,
    callback=_checked_cuts,
    help="Messages, share, end, or recorded.",
)
@click.option("--tail-tokens", type=click.IntRange(min=0), help="Kept verbatim [2000].")
@click.option("--out", help="Folder; else beside the fixture. With --engine it may be an address.")
@click.option("--force", is_flag=True, help="Overwrite banks.")
@jobs_option
@shard_options
@click.option("--report", type=Output(parents=True), help="Write JSON.")
def generate_command(
    paths: tuple[str, ...],
    model: str | None,
    mechanical: bool,
    per_type: int,
    cuts: tuple[CutArgument, ...],
    tail_tokens: int | None,
    chunk_tokens: int | None,
    out: str | None,
    force: bool,
    jobs: int | None,
    sharding: Sharding | None,
    report: Path | None,
    **options: Any,
) -> None:
    """Make a probe bank for each FIXTURE, from the history before its cuts.

    FIXTURE is a name, a file, a folder, a pattern, a Parquet file or an address. Without --model,
    probes come from what needs none: tool calls, task lists, and what the recorded agent went on
    to use after the cut. Every probe is checked against the conversation, and at least one of its
    facts is in nothing that is kept verbatim; what fails is dropped, with its reason. Cuts are
    those of the fixture, else the end. A fixture that has a bank already, or that no probe can be
    made for, is passed over and named; exits with 1 if all are.
    """
    if model is None and (given := [name for name, value in options.items() if value]):
        raise DataError(f"{', '.join(given)}: only with --model")
    if model and jobs:
        raise DataError("--jobs: only without --model, whose calls go out together anyway")
    tail = TAIL_TOKENS if tail_tokens is None else tail_tokens
    wanted = Wanted(per_type, tail, cuts, mechanical or model is None, model)
    usage = Usage()
    if sharding:
        if model or not out:
            raise DataError("--engine: needs --out, and makes banks without --model")
        _generate_shards(paths, out, wanted, sharding, report, force=force)
        return
    results, without = _found(paths, wanted, Path(out) if out else None, force=force)

    def progress(number: int, text: str) -> None:
        name = results[number].fixture.name
        click.echo(f"[{number + 1}/{len(results)}] {name}: {text}", err=True)

    async def ask(asked: Model) -> None:
        for number, result in enumerate(results):
            chunk, say = chunk_tokens or CHUNK_TOKENS, partial(progress, number)
            generator = ModelGenerator(asked, per_type, chunk, usage, say)
            await generate_bank(result, wanted, generator, say)
            if generator.requests and not usage.calls:
                raise DataError(f"model {asked}: {generator.failure}")
            _finish(result, wanted)

    if model:
        anyio.run(ask, model_by_name(model, options))
    else:
        late = ("openai", "bpe_openai")
        with Workers(partial(_Maker, wanted), results, jobs, imports=late) as workers:
            for number, (_, made) in enumerate(workers.each("asking", _Maker.make, [*results])):
                for cut_results, said in made:
                    results[number].cuts = cut_results
                    for line in said:
                        progress(number, line)
                    _finish(results[number], wanted)
    total = usage.total
    if model:
        cache = total.input_tokens_cache_read
        cached = f", {cache} read from cache" if cache else ""
        sent = f"{usage.calls} calls, {total.input_tokens} tokens in{cached}"
        click.echo(f"{model}: {sent}, {total.output_tokens} out")
    if report:
        _write_report(report, wanted, usage, [result.as_data(wanted) for result in results])
    unasked = [result.why_none() for result in results if result.bank is None]
    say_passed_over([*without, *unasked], results[len(unasked) :])


def _write_report(
    path: Path, wanted: Wanted, usage: Usage, fixtures: Sequence[dict[str, Any]]
) -> None:
    data = {
        "model": wanted.model,
        "mechanical": wanted.mechanical,
        "per_type": wanted.per_type,
        "tail_tokens": wanted.tail_tokens,
        "usage": {"calls": usage.calls, **usage.total.model_dump(exclude_none=True)},
        "fixtures": fixtures,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, versioned_json(data))


@dataclass(frozen=True)
class _Told:
    """What is said of a fixture of a corpus; its bank stands in its row."""

    name: str
    origin: str
    lines: Sequence[str] = ()
    data: dict[str, Any] | None = None
    why: str = ""
    """Why no bank was made for it."""

    @property
    def passed_over(self) -> PassedOverError:
        return PassedOverError(f"{self.origin}: {self.why}", self.origin, self.why)


def _generate_shards(
    paths: Sequence[str],
    out: str,
    wanted: Wanted,
    sharding: Sharding,
    report: Path | None,
    *,
    force: bool,
) -> None:
    """Write the fixtures with banks into a folder of Parquet files with a manifest."""
    made_by = {"command": "probes generate", "wanted": repr(wanted)}
    corpus = Corpus(out, made_by, fixture_files(paths), sharding, force=force)
    if corpus.complete:
        said = f"{out}: these banks were made before; --force makes them anew"
        say_done_before(said, report)
        return
    told: list[_Told] = []
    names: dict[int, list[str]] = {}
    with sharding.engine.connected():
        corpus.stage("generate", partial(_make_shard, wanted))
        for shard in corpus.shards:
            done: list[_Told] = shard.result("generate")
            names[shard.number] = [each.name for each in done]
            for line in (line for each in done for line in each.lines):
                click.echo(line)
            told += done
        corpus.stage("finish", partial(take_over, stage="generate"), names)
    passed = [each.passed_over for each in told if each.why]
    failed = "" if len(passed) < len(told) else "every fixture was passed over"
    corpus.finish([corpus.shards[number].result("finish") for number in names], failed)
    if report:
        _write_report(report, wanted, Usage(), [each.data for each in told if each.data])
    say_passed_over(passed, told[len(passed) :])


def _make_shard(wanted: Wanted, shard: Shard) -> list[_Told]:
    """Leave a shard's fixtures with their banks in a file; one that has a bank keeps it."""
    told: list[_Told] = []
    said_nowhere: list[str] = []
    with staged(shard, "generate") as writer:
        for source in fixtures_in(shard.items):
            content = source.content()
            fixture = source.fixture_in(content)
            said = _Told(fixture.name, source.origin)
            bank = bank_text = None
            if there := bank_of(source):
                bank, bank_text = there.bank, text_of(there.content)
                said = replace(said, why="it has a bank already")
            else:
                result = FixtureResult(fixture, source.origin, Path(source.stem + BANK_SUFFIX))
                try:
                    anyio.run(generate_bank, result, wanted, None, said_nowhere.append)
                except PassedOverError as error:
                    said = replace(said, why=str(error))
                else:
                    bank = result.bank
                    bank_text = fixture_text(bank) if bank else None
                    why = "" if bank else result.why_none().reason
                    lines, data = [*result.lines(wanted)], result.as_data(wanted)
                    said = replace(said, lines=lines, data=data, why=why)
            writer.add(fixture, text_of(content), bank, bank_text, file=source.stem)
            told.append(said)
    return told


class _Maker:
    """Makes banks without a model, in this process or in one of several."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def make(self, result: FixtureResult) -> Iterator[tuple[list[CutResult], list[str]]]:
        """Yield what was made for each cut, and the lines of its progress.

        The fixture stays where it is: it is most of a result, and takes long to hand over.
        """
        said: list[str] = []
        anyio.run(generate_bank, result, self._wanted, None, said.append)
        yield result.cuts, said


def _finish(result: FixtureResult, wanted: Wanted) -> None:
    for line in result.lines(wanted):
        click.echo(line)
    if (bank := result.bank) is not None:
        result.target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(result.target, fixture_text(bank))
        click.echo(f"wrote {result.target}")


def _found(
    paths: Sequence[str], wanted: Wanted, out: Path | None, *, force: bool
) -> tuple[list[FixtureResult], list[PassedOverError]]:
    """Return the fixtures that get a bank, still empty, and why others do not."""
    results: list[FixtureResult] = []
    without: list[PassedOverError] = []
    targets: dict[Path, str] = {}
    for source in find_sources(list(paths)):
        try:
            fixture = source.read_fixture()
            result = FixtureResult(fixture, source.origin, _target(source, out, force=force))
            cuts_of(fixture, wanted.cuts)  # said before any call is paid
        except PassedOverError as error:
            without.append(error)
            continue
        other = targets.setdefault(result.target.absolute(), result.origin)
        if other != result.origin:
            raise DataError(f"{result.target}: {other} and {result.origin} would both write it")
        check_output(result.target, parents=True)
        results.append(result)
    if not results:
        raise nothing_left(without)
    return results, without


def _target(source: FixtureSource, out: Path | None, *, force: bool) -> Path:
    """Return where a fixture's bank goes; one that it has already is not overwritten."""
    if out is not None:
        target = out / source.bank_name
    elif source.path is None:
        raise DataError(f"{source.origin}: no file can be written beside it; give --out FOLDER")
    else:
        try:
            target = find_bank(source.path, None)
        except PassedOverError:
            return source.path.with_name(source.bank_name)
    if target.exists() and not force:
        reason = "exists already; give --force to overwrite it, or --out FOLDER"
        raise PassedOverError(f"{target}: {reason}", target, reason)
    return target
