"""``probes generate``: a bank for each fixture, of the best candidates from every source.

For each cut of a fixture, candidates come from a model, from what tool calls tell, or from both;
`choose` takes some of each type from all over the history. Without a model fixtures are worked on
in several processes, and a corpus shard by shard; what comes out is the same.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from compression_eval.conversations.corpus import (
    Corpus,
    Row,
    Shard,
    bank_of,
    fixture_files,
    fixtures_in,
    say_done_before,
    shard_options,
)
from compression_eval.engine import Engine, jobs_option
from compression_eval.errors import DataError, PassedOverError, nothing_left, one_line, shorten
from compression_eval.fixtures.banks import MIN_PROBES, Probe, ProbeBank, ProbeType
from compression_eval.fixtures.cuts import TAIL_TOKENS, CutArgument, cut_argument, cuts_of
from compression_eval.fixtures.finding_files import BANK_SUFFIX
from compression_eval.fixtures.loading import FixtureSource, find_sources, text_of
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.parquet_files import row_of
from compression_eval.fixtures.writing import fixture_text, versioned_json, write_whole
from compression_eval.terminal import (
    Output,
    check_output,
    examples,
    go_on,
    model_by_name,
    model_options,
    say_passed_over,
)

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from compression_eval.authoring.by_model import ModelGenerator, Usage
    from compression_eval.authoring.history import Candidate, Dropped, History

# What makes the banks imports Inspect, so it is imported where they are made: without a model that
# is in other processes than this one.
_IMPORTED = ("compression_eval.authoring.mechanical", "openai")

_MAX_DROPPED_SHOWN = 12
_MAX_REASON = 200
_USE_MODEL = "--model MODEL writes more and better ones"


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
    """Who proposes probes next to that."""


@dataclass(frozen=True)
class Asked:
    """A fixture that gets a bank."""

    fixture: Fixture
    place: str
    """Where it is."""
    target: Path
    """Where its bank goes."""

    @property
    def size(self) -> int:
        """Its characters, about."""
        return sum(len(message.text) for message in self.fixture.messages)


@dataclass
class Made:
    """What became of a fixture."""

    name: str
    place: str
    lines: list[str] = field(default_factory=list)
    """What is said of it."""
    data: dict[str, Any] | None = None
    """What the report contains of it."""
    bank: ProbeBank | None = None
    why: str = ""
    """Why no bank was made for it."""

    @property
    def passed_over(self) -> PassedOverError:
        """Say why no bank was made."""
        return PassedOverError(f"{self.place}: {self.why}", self.place, self.why)


def choose(
    candidates: "Sequence[Candidate]", per_type: int
) -> "tuple[list[Candidate], list[Dropped]]":
    """Choose probes for one cut.

    One of each type is taken in turn. Of those that are left, the one wins that the workspace does
    not tell; then whose third of the history, then whose template, has been taken least for its
    type; then whose third has been taken least at all; then the one that came first. What a type
    comes short of, others make up for. At most a quarter are such as the workspace would tell.

    Args:
        candidates: Fit ones, the better first.
        per_type: How many of each type.

    Returns:
        The chosen, by type; and those dropped since they ask what another asks already, or are
        too many of those that the workspace tells.
    """
    from compression_eval.authoring.check import duplicate
    from compression_eval.authoring.history import IN_WORKSPACE, TYPES, Dropped

    left = {kind: [c for c in candidates if c.probe.type == kind] for kind in TYPES}
    chosen: list[Candidate] = []
    dropped: list[Dropped] = []

    def take(kind: ProbeType) -> bool:
        """Take the best of a type, dropping duplicates that are met on the way."""
        same = [item for item in chosen if item.probe.type == kind]
        thirds, overall = Counter(c.third for c in same), Counter(c.third for c in chosen)
        templates = Counter(c.template for c in same)
        while left[kind]:
            best = min(
                left[kind],
                key=lambda c: (
                    c.workspace,
                    thirds[c.third],
                    templates[c.template],
                    overall[c.third],
                ),
            )
            left[kind].remove(best)
            reason = duplicate(best.probe, [item.probe for item in chosen])
            if reason is None:
                chosen.append(best)
                return True
            dropped.append(Dropped.of(best.probe, [reason]))
        return False

    for _ in range(per_type):
        # The scarce first: a twin must not cost a type the only one that it has.
        for kind in sorted(TYPES, key=lambda kind: len(left[kind])):
            take(kind)
    while len(chosen) < per_type * len(TYPES):
        counts = Counter(item.probe.type for item in chosen)
        if not any(take(kind) for kind in sorted(TYPES, key=lambda kind: counts[kind])):
            break
    # There may be fewer than were wanted.
    told = [item for item in chosen if item.workspace]
    for item in told[(len(chosen) - len(told)) // 3 :]:
        chosen.remove(item)
        dropped.append(Dropped.of(item.probe, [IN_WORKSPACE]))
    chosen.sort(key=lambda item: TYPES.index(item.probe.type))
    return chosen, dropped


async def generate_bank(
    asked: Asked,
    wanted: Wanted,
    generator: "ModelGenerator | None",
    progress: Callable[[str], None],
) -> Made:
    """Return what was made for a fixture.

    Args:
        asked: The fixture.
        wanted: What is to be made.
        generator: Asks a model; None for none.
        progress: Told one line at a time.

    Raises:
        DataError: A cut does not fit the fixture.
    """
    from compression_eval.authoring.history import histories

    fixture = asked.fixture
    made = Made(fixture.name, asked.place)
    probes: list[Probe] = []
    reasons: list[str] = []
    cuts: list[dict[str, Any]] = []
    compressed = False
    for history in await histories(fixture, cuts_of(fixture, wanted.cuts), wanted.tail_tokens):
        compressed = compressed or bool(history.compressed)
        cut = await _at_cut(history, wanted, generator, progress)
        probes += cut.pop("bank")
        reasons += ["; ".join(item["reasons"]) for item in cut["dropped"]]
        cuts.append(cut)
        made.lines.extend(_lines(f"{fixture.name}, cut {history.cut}", cut, wanted))
    if probes:
        made.bank = ProbeBank(fixture=fixture.name, language=fixture.language, probes=probes)
    elif not compressed:
        made.why = "no probe could be made: nothing is compressed: all of it fits the kept tail"
    else:
        reason = "nothing to ask was found"
        if reasons:
            reason = f"{len(reasons)} dropped, the first since {reasons[0]}"
        elif wanted.model is None:
            reason += " that is sure without a model"
        made.why = f"no probe could be made: {reason}"
        made.why += f"; {_USE_MODEL}" if wanted.model is None else ""
    bank = str(asked.target) if made.bank else None
    made.data = {"fixture": fixture.name, "bank": bank, "cuts": cuts}
    return made


async def _at_cut(
    history: "History",
    wanted: Wanted,
    generator: "ModelGenerator | None",
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Return what was made for one cut as the report has it, and the probes under ``bank``."""
    from compression_eval.authoring.history import THIRDS, TYPES, Harvest
    from compression_eval.authoring.mechanical import mechanical

    harvest = Harvest()
    if not history.compressed:
        progress(f"cut {history.cut}: everything is kept")
    elif generator:
        harvest.add(await generator.generate(history))
    if history.compressed and wanted.mechanical:
        progress(f"cut {history.cut}: reading {len(history.calls)} tool calls")
        harvest.add(mechanical(history))
    chosen, twins = choose(harvest.candidates, wanted.per_type)
    dropped = [*harvest.dropped, *twins]
    numbers: Counter[str] = Counter()
    for at, item in enumerate(chosen):
        kind = item.probe.type
        numbers[kind] += 1
        identifier = f"{kind}-c{history.cut}-{numbers[kind]:02d}"
        probe = item.probe.model_copy(update={"id": identifier})
        chosen[at] = replace(item, probe=probe)
    thirds = Counter(item.third for item in chosen)
    notes = []
    for kind in TYPES if history.compressed else ():
        if numbers[kind] < wanted.per_type:
            missing = sum(item.type == kind for item in dropped)
            why = f"{missing} dropped" if missing else "nothing more was found"
            notes.append(f"{kind}: {numbers[kind]} of {wanted.per_type}: {why}")
    notes += harvest.notes
    if history.compressed and wanted.model is None and len(chosen) < MIN_PROBES:
        found = f"{len(chosen)} of at least {MIN_PROBES} that a comparison needs"
        notes.append(f"too few sure questions were found without a model, {found}; {_USE_MODEL}")
    return {
        "cut": history.cut,
        "compressed_from": history.compressed.start,
        "tail_starts_at": history.compressed.stop,
        "by_type": {kind: numbers[kind] for kind in TYPES},
        "spread": {third: thirds[third] for third in THIRDS},
        "notes": notes,
        "left_over": len(harvest.candidates) - len(chosen) - len(twins),
        "probes": [
            {
                "id": item.probe.id,
                "origin": item.probe.origin,
                "third": item.third,
                "question": item.probe.question,
                "facts": [fact.fact for fact in item.probe.expected_facts],
                "need": item.need,
            }
            for item in chosen
        ],
        "dropped": [asdict(item) for item in dropped],
        "bank": [item.probe for item in chosen],
    }


def _lines(name: str, cut: dict[str, Any], wanted: Wanted) -> Iterator[str]:
    """Yield what was made for a cut, a line each."""
    first, tail = cut["compressed_from"], cut["tail_starts_at"]
    if first >= tail:
        fits = f"all fits the tail of {wanted.tail_tokens} tokens"
        yield f"{name}: nothing is compressed: {fits}"
        return
    yield f"{name}: {len(cut['probes'])} probes (messages {first} to {tail - 1} are compressed)"
    yield "  " + "; ".join(
        ", ".join(f"{each} {count}" for each, count in cut[part].items())
        for part in ("by_type", "spread")
    )
    yield from (f"  {note}" for note in cut["notes"])
    dropped = cut["dropped"]
    for item in dropped[:_MAX_DROPPED_SHOWN]:
        asked = f" {shorten(item['question'])}" if item["question"] else ""
        reason = "; ".join(one_line(each, _MAX_REASON) for each in item["reasons"])
        yield f"  dropped: {item['type'] or 'candidate'} ({item['origin']}){asked}: {reason}"
    if (more := len(dropped) - _MAX_DROPPED_SHOWN) > 0:
        yield f"  dropped: {more} more (--report FILE lists them)"


@click.command(
    "generate",
    epilog=examples(
        "probes generate my/session.json",
        "probes generate my/fixtures --model openai/gpt-5 --mechanical --out my/banks",
        "probes generate my/session.json --cut 120 --cut end --report report.json",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="FIXTURE...")
@click.option("--model", help="Model that proposes probes.")
@model_options
@click.option(
    "--chunk-tokens", type=click.IntRange(min=1_000), help="Tokens of history per call [60000]."
)
@click.option("--mechanical", is_flag=True, help="With a model: also generate probes without it.")
@click.option("--per-type", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--cut", "cuts", multiple=True, help="Number of messages, share, end, or recorded.")
@click.option(
    "--tail-tokens", type=click.IntRange(min=0), help="Tokens kept verbatim at the end [2000]."
)
@click.option(
    "--out", help="Folder; by default that of the fixture. With --engine it may be an address."
)
@click.option("--force", is_flag=True, help="Overwrite existing banks.")
@jobs_option
@shard_options
@click.option("--report", type=Output(parents=True), help="Write a report as JSON.")
def generate_command(
    paths: tuple[str, ...],
    model: str | None,
    mechanical: bool,
    per_type: int,
    cuts: tuple[str, ...],
    tail_tokens: int | None,
    chunk_tokens: int | None,
    out: str | None,
    force: bool,
    engine: Engine,
    shard_bytes: int | None,
    report: Path | None,
    **options: Any,
) -> None:
    """Make a probe bank for each FIXTURE, from the history before its cuts.

    FIXTURE is a name, a file, a folder, a pattern, a Parquet file or an address. Without --model,
    questions are asked whose answers tool calls, their results and texts give for sure, which are
    few; a model writes more and better ones. Every probe is checked against the conversation, and
    at least one of its facts is in nothing that is kept verbatim; what fails is dropped, with its
    reason. So is what the model guesses when it sees the questions alone, and what it finds wrong
    or not needed when it sees them next to the conversation. Cuts are those of the fixture, else
    the end. A fixture that has a bank already, or that no probe can be made for,
    is skipped and named; exits with 1 if all are.
    """
    if model is None and (given := [name for name, value in options.items() if value]):
        raise DataError(f"{', '.join(given)}: only with --model")
    if model and engine.jobs:
        raise DataError("--jobs: only without --model, whose calls go out together anyway")
    tail = TAIL_TOKENS if tail_tokens is None else tail_tokens
    points = tuple(map(cut_argument, cuts))
    wanted = Wanted(per_type, tail, points, mechanical or model is None, model)
    if shard_bytes:
        if model or not out:
            raise DataError("--engine, --shard-mb: need --out, and make banks without --model")
        _generate_corpus(paths, out, wanted, engine, shard_bytes, report, force=force)
        return
    asked, without = _found(paths, wanted, Path(out) if out else None, force=force)
    done: list[Made] = []

    def progress(number: int, text: str) -> None:
        name = asked[number].fixture.name
        click.echo(f"[{number + 1}/{len(asked)}] {name}: {text}", err=True)

    def finish(made: Made) -> None:
        for line in made.lines:
            click.echo(line)
        if made.bank is not None:
            target = asked[len(done)].target
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, fixture_text(made.bank))
            click.echo(f"wrote {target}")
        done.append(made)

    async def ask(asked_model: "Model") -> "Usage":
        from compression_eval.authoring.by_model import CHUNK_TOKENS, ModelGenerator, Usage

        usage = Usage()
        for number, item in enumerate(asked):
            chunk, say = chunk_tokens or CHUNK_TOKENS, partial(progress, number)
            generator = ModelGenerator(asked_model, per_type, chunk, usage, say)
            made = await generate_bank(item, wanted, generator, say)
            if generator.requests and not usage.calls:
                raise DataError(f"model {asked_model}: {generator.failure}")
            finish(made)
        return usage

    usage = anyio.run(ask, model_by_name(model, options)) if model else None
    if usage is None:
        make, sizes = partial(_make, wanted), [item.size for item in asked]
        with engine.opened(sizes, _IMPORTED):
            results = engine.run(
                "asking", make, asked, attrgetter("place"), size=attrgetter("size")
            )
            for number, (made, said) in results:
                for line in said:
                    progress(number, line)
                finish(made)
    else:
        click.echo(f"{model}: {_spent(usage)}")
    if report:
        _write_report(report, wanted, usage, done)
    unasked = [made.passed_over for made in done if made.bank is None]
    say_passed_over([*without, *unasked], done[len(unasked) :])
    banks = ("--probes", out) if out else ()
    go_on(("compression-eval", "probes", "check", *paths, *banks))


def _spent(usage: "Usage") -> str:
    total, cache = usage.total, usage.total.input_tokens_cache_read
    cached = f", {cache} read from cache" if cache else ""
    sent = f"{usage.calls} calls, {total.input_tokens} tokens in{cached}"
    return f"{sent}, {total.output_tokens} out"


def _write_report(path: Path, wanted: Wanted, usage: "Usage | None", done: Sequence[Made]) -> None:
    if usage is None:
        from compression_eval.authoring.by_model import Usage

        usage = Usage()
    data = {
        "model": wanted.model,
        "mechanical": wanted.mechanical,
        "per_type": wanted.per_type,
        "tail_tokens": wanted.tail_tokens,
        "usage": {"calls": usage.calls, **usage.total.model_dump(exclude_none=True)},
        "fixtures": [made.data for made in done if made.data],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, versioned_json(data))


def _generate_corpus(
    paths: Sequence[str],
    out: str,
    wanted: Wanted,
    engine: Engine,
    shard_bytes: int,
    report: Path | None,
    *,
    force: bool,
) -> None:
    """Write the fixtures with banks into a folder of Parquet files with a manifest."""
    made_by = {"command": "probes generate", "wanted": repr(wanted)}
    corpus = Corpus(out, made_by, fixture_files(paths), engine, shard_bytes, force=force)
    if corpus.complete:
        said = f"{out}: these banks were made before; --force makes them again"
        say_done_before(said, report)
        return
    told: list[Made] = []
    with corpus.opened():
        for shard in corpus.stage("generate", partial(_make_shard, wanted)):
            done: list[Made] = [*shard.results("generate")]
            take = corpus.taker(shard, "generate")
            for each in done:
                take(each.name)
            for line in (line for each in done for line in each.lines):
                click.echo(line)
            told += done
        passed = [each.passed_over for each in told if each.why]
        failed = "" if len(passed) < len(told) else "every fixture was skipped"
        corpus.close("generate", failed)
    if report:
        _write_report(report, wanted, None, told)
    say_passed_over(passed, told[len(passed) :])
    go_on(("compression-eval", "probes", "check", out))


def _make_shard(wanted: Wanted, shard: Shard) -> Iterator[Made | Row]:
    """Yield the fixtures of a shard with their banks; one that has a bank keeps it."""
    for source in fixtures_in(shard.items):
        content = source.content()
        fixture = source.fixture_in(content)
        made = Made(fixture.name, source.origin)
        bank = bank_text = None
        if there := bank_of(source):
            bank, bank_text = there.bank, text_of(there.content)
            made = replace(made, why="it has a bank already")
        else:
            try:
                target = Path(source.stem + BANK_SUFFIX)
                made, _ = _make(wanted, Asked(fixture, source.origin, target))
            except PassedOverError as error:
                made = replace(made, why=str(error))
            if bank := made.bank:
                bank_text = fixture_text(bank)
        yield Row(row_of(fixture, text_of(content), bank, bank_text, file=source.stem))
        yield replace(made, bank=None)  # it is in the row


def _make(wanted: Wanted, asked: Asked) -> tuple[Made, list[str]]:
    """Make a bank without a model; returns it, and the lines of its progress."""
    said: list[str] = []
    return anyio.run(generate_bank, asked, wanted, None, said.append), said


def _found(
    paths: Sequence[str], wanted: Wanted, out: Path | None, *, force: bool
) -> tuple[list[Asked], list[PassedOverError]]:
    """Return the fixtures that get a bank, and why others do not."""
    found: list[Asked] = []
    without: list[PassedOverError] = []
    targets: dict[Path, str] = {}
    for source in find_sources(list(paths)):
        try:
            fixture = source.read_fixture()
            asked = Asked(fixture, source.origin, _target(source, out, force=force))
            cuts_of(fixture, wanted.cuts)  # said before any call is paid
        except PassedOverError as error:
            without.append(error)
            continue
        other = targets.setdefault(asked.target.absolute(), asked.place)
        if other != asked.place:
            raise DataError(f"{asked.target}: {other} and {asked.place} would both write it")
        check_output(asked.target, parents=True)
        found.append(asked)
    if not found:
        raise nothing_left(without)
    return found, without


def _target(source: FixtureSource, out: Path | None, *, force: bool) -> Path:
    """Return where a fixture's bank goes; one that it has already is not overwritten."""
    if out is None and source.path is None:
        raise DataError(f"{source.origin}: no file can be written next to it; use --out FOLDER")
    target = (out or Path(source.origin).parent) / source.bank_name
    with suppress(PassedOverError):
        target = target if out else Path(str(source.bank_file()))
    if target.exists() and not force:
        reason = "exists already; give --force to overwrite it, or --out FOLDER"
        raise PassedOverError(f"{target}: {reason}", target, reason)
    return target
