"""``probes qualify``: put probes to a model with the full history, with nothing, with the tail.

Each condition is a run of the ordinary task with a control for a compressor, so states, questions
and look-ups are those of every other run, and the log can be opened in the viewer. The logs are in
a folder of their own: what qualifies a probe must not be what is then scored.

A probe counts if the full history passes and nothing fails: then an answer can be had, and only
from the history. If the kept tail passes by itself, no compression can lose the answer; that does
not disqualify the probe, but it is kept as its region.
"""

import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from contextvars import Context
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

import anyio
import click
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSample
from inspect_ai.model import ChatMessageUser

from compression_eval.analysis.logs import QUALIFYING
from compression_eval.arguments import TaskArguments
from compression_eval.authoring.history import histories
from compression_eval.compressors.tokens import token_counter
from compression_eval.dataset import dataset_of
from compression_eval.errors import DataError, PassedOverError, shorten
from compression_eval.fixtures.banks import (
    Qualification,
    QualifyingRuns,
    verdict_digest,
)
from compression_eval.fixtures.cuts import CutArgument, cut_argument
from compression_eval.fixtures.loading import (
    FixtureSource,
    FixtureWithBank,
    find_sources,
    refuse_shared_names,
)
from compression_eval.fixtures.writing import write_whole
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.plans import question_preamble
from compression_eval.record import ProbeRecord, Recorded
from compression_eval.task import compression
from compression_eval.terminal import Output, check_output, examples, plain_error, say_passed_over

Condition = Literal["full", "none", "tail"]
"""Names of the control compressions whose states a probe is put at."""

CONDITIONS: tuple[Condition, ...] = get_args(Condition)
FACTS = "facts: every expected one"

_RUBRIC_KEYS = ("accuracy", "completeness")
"""Both must reach the threshold: an answer that gives one fact of three can be wholly accurate."""
_INDENT = re.compile(r"^[{\[]\r?\n( +|\t)")
_DIGITS = 3

_Pairs = Sequence[tuple[FixtureSource, FixtureWithBank]]


@dataclass(frozen=True)
class QualifySettings:
    """How probes are put to a model and judged."""

    model: str = EMBEDDED_MODEL
    grader: str | None = None
    """Who judges by the rubric; None to look the facts up."""
    threshold: float = 4.0
    """Least score for accuracy and for completeness, 0 to 5; with a grader only."""
    epochs: int = 3
    tail_tokens: int = 2_000
    cut: CutArgument | None = None
    """Where history ends; the task's own default if None."""
    log_dir: str = "logs/qualify"
    model_base_url: str | None = None
    temperature: float | None = None
    max_connections: int | None = None

    @property
    def judged_by(self) -> str:
        """What decides that an answer passes, in words."""
        if self.grader is None:
            return FACTS
        return f"rubric: {' and '.join(_RUBRIC_KEYS)} of {self.threshold:g}, by {self.grader}"


@dataclass(frozen=True)
class Asked:
    """One probe put to the model once, and what came of it."""

    condition: Condition
    fixture: str
    probe: str
    epoch: int
    cut: int = 0
    digest: str = ""
    """Of the fixture, the probe and the cut as they were asked."""
    model: str = ""
    fact_share: float | None = 0.0
    """Share of the expected facts that the answer contains; None if there are none."""
    passed: bool = False
    failure: str = ""
    """Why nothing can be said; empty if the answer was judged."""
    nothing_removed: bool = False
    """Whether the control would have kept everything, so that nothing was asked."""


@click.command(
    "qualify",
    epilog=examples(
        "probes qualify my/fixtures --model openai/gpt-5 --dry-run",
        "probes qualify my/fixtures --model openai/gpt-5",
        "probes qualify a.json --model openai/gpt-5 --grader anthropic/claude-x",
        "probes qualify a.json --out checked",
    ),
)
@click.argument("fixtures", nargs=-1, required=True, metavar="FIXTURE...")
@click.option("--probes", type=click.Path(path_type=Path), help="Bank, or folder with banks.")
@click.option("--model", help="Model that answers. Default: the embedded model.")
@click.option("--model-base-url", help="Address of the model's provider.")
@click.option(
    "--grader", help="Judge answers with this model and the rubric instead of the look-up."
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 5),
    help="With --grader: minimum score for accuracy and completeness.  [default: 4]",
)
@click.option("--epochs", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--cut", help="Where the history ends, as in the task. Default: each probe's own cut."
)
@click.option("--tail-tokens", type=click.IntRange(min=1), help="Budget of the kept tail.")
@click.option("--temperature", type=click.FloatRange(min=0))
@click.option("--max-connections", type=click.IntRange(min=1))
@click.option("--log-dir", default="logs/qualify", show_default=True, help="Folder for the logs.")
@click.option(
    "--out",
    type=Output(folder=True, parents=True),
    help="Folder for the banks. Default: each is rewritten in place.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be asked and what it costs.")
def qualify_command(
    fixtures: tuple[str, ...],
    probes: Path | None,
    out: Path | None,
    dry_run: bool,
    **options: str | int | float | None,
) -> None:
    """Put every probe to a model with the full history, with nothing, and with the kept tail.

    A probe qualifies if the full history passes and nothing fails, each in more than half of the
    epochs. Whether the tail alone passes is kept as its region. An answer passes if it contains
    every expected fact, or with --grader by its scores. The verdicts are written into the banks; a
    probe that could not be judged gets none, is named, and the command exits with 1. An
    unanswerable probe gets none by its nature.
    """
    if options["threshold"] is not None and options["grader"] is None:
        raise DataError("--threshold: only with --grader; without one, facts are looked up")
    if options["model"] is None:
        click.echo(
            "No --model was chosen: these will be the verdicts of the embedded lexical reader. "
            "What it cannot answer a language model may, so qualify again with the one you use.",
            err=True,
        )
    given = {name: value for name, value in options.items() if value is not None}
    if "cut" in given:
        given["cut"] = cut_argument(str(given["cut"]))
    settings = QualifySettings(**given)  # type: ignore[arg-type]
    pairs, samples = _samples(_pairs(fixtures, probes), settings)
    targets = {pair.fixture.name: _target(source, pair, out) for source, pair in pairs}
    if len(set(targets.values())) < len(targets):
        raise DataError(f"--out: {out}: two of the banks have the same file name")
    for target in () if dry_run else targets.values():
        check_output(target, parents=True)
    _say_what_is_asked(pairs, samples, settings)
    if dry_run:
        return
    runs: dict[str, dict[str, list[Asked]]] = {name: {} for name in targets}
    for asked in _ask_all(pairs, settings):
        runs[asked.fixture].setdefault(asked.probe, []).append(asked)
    failed = False
    for source, pair in pairs:
        name = pair.fixture.name
        verdicts = {probe: verdict(items, settings) for probe, items in runs[name].items()}
        judged = {probe: v for probe, v in verdicts.items() if isinstance(v, Qualification)}
        _say_verdicts(name, verdicts)
        unanswerable = {probe.id for probe in pair.bank.probes if probe.unanswerable}
        failed = failed or not verdicts.keys() <= judged.keys() | unanswerable
        if judged:
            write_verdicts(source, judged, targets[name])
            click.echo(f"  wrote {targets[name]}")
    click.echo(f"logs: {settings.log_dir}")
    if failed:
        raise click.exceptions.Exit(1)


def _target(source: FixtureSource, pair: FixtureWithBank, out: Path | None) -> Path:
    """Return where the bank of a fixture is written to."""
    if out:
        return out / (pair.bank_path.name if pair.bank_path else source.bank_name)
    if pair.bank_path is None:
        raise DataError(f"{pair.bank_origin}: the bank has no file of its own; give --out FOLDER")
    return pair.bank_path


def _say_verdicts(name: str, verdicts: Mapping[str, Qualification | str]) -> None:
    click.echo(f"{name}:")
    width = max(map(len, verdicts), default=0)
    for probe, found in verdicts.items():
        said = f"no verdict: {found}"
        if isinstance(found, Qualification):
            parts = [(each, getattr(found, each)) for each in CONDITIONS]
            runs = "  ".join(f"{each} {part.passed}/{part.runs}" for each, part in parts)
            word = "qualified" if found.qualified else "not qualified"
            said = f"{runs}  {word}{' (tail)' if found.region == 'tail' else ''}"
        click.echo(f"  {probe.ljust(width)}  {said}")
    judged = [found for found in verdicts.values() if isinstance(found, Qualification)]
    qualified = [found for found in judged if found.qualified]
    by_tail = sum(found.region == "tail" for found in qualified)
    click.echo(
        f"  {len(qualified)} of {len(verdicts)} qualify, "
        f"{by_tail} of them answered by the kept tail alone"
    )


def _pairs(fixtures: Sequence[str], probes: Path | None) -> _Pairs:
    """Return fixtures with their banks; those without one are skipped."""
    pairs: list[tuple[FixtureSource, FixtureWithBank]] = []
    names: dict[str, str] = {}
    without: list[PassedOverError] = []
    for source in find_sources(list(fixtures), probes):
        try:
            pair = source.read()
        except PassedOverError as error:
            without.append(error)
            continue
        refuse_shared_names(pair.fixture, pair.origin, names)
        pairs.append((source, pair))
    say_passed_over(without, pairs)
    return pairs


def _tasks(
    condition: Condition, pairs: _Pairs, settings: QualifySettings
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of the tasks of a condition, one for the banks of each folder."""
    groups: dict[str | None, list[tuple[FixtureSource, FixtureWithBank]]] = {}
    for source, pair in pairs:
        banks = None
        if pair.bank_path is not None:
            bank = pair.bank_path.resolve()
            banks = str(bank.parent if pair.bank_path.name == source.bank_name else bank)
        groups.setdefault(banks, []).append((source, pair))
    arguments: dict[str, Any] = {
        "compressor": condition,
        "grader_context": "none",
        "state_facts": "match",
    }
    if condition == "tail":
        # A short conversation is hardly longer than its tail, and that is no failure here.
        arguments |= {"compressor_args": {"tail_tokens": settings.tail_tokens}, "min_removed": 0.0}
    if settings.cut is not None:
        arguments["cut"] = settings.cut
    for banks, group in groups.items():
        places = dict.fromkeys(
            str(Path(source.place).resolve()) if Path(source.place).exists() else source.place
            for source, _ in group
        )
        yield {**arguments, "fixtures": list(places), "probes": banks}


def _samples(pairs: _Pairs, settings: QualifySettings) -> tuple[_Pairs, list[Sample]]:
    """Return the samples that the task makes of these banks, and the banks that have any."""
    samples: list[Sample] = []
    reasons: list[PassedOverError] = []
    for arguments in _tasks("full", pairs, settings):
        try:
            dataset = dataset_of(TaskArguments(**arguments))
        except PassedOverError as error:
            reasons.append(error)
            continue
        samples.extend(dataset.samples)
        reasons.extend(dataset.passed_over)
    say_passed_over(reasons, samples)
    asked = {_place(sample)[0] for sample in samples}
    return [(source, pair) for source, pair in pairs if pair.fixture.name in asked], samples


def _place(sample: Sample) -> tuple[str, int, str]:
    """Return the fixture, the cut and the probe of a sample."""
    metadata = sample.metadata or {}
    return str(metadata["fixture"]), int(metadata["cut"]), str(metadata["probe_id"])


def _say_what_is_asked(pairs: _Pairs, samples: Sequence[Sample], settings: QualifySettings) -> None:
    asked = {(name, probe) for name, _, probe in map(_place, samples)}
    for _, pair in pairs:
        name = pair.fixture.name
        left = [probe.id for probe in pair.bank.probes if (name, probe.id) not in asked]
        if left:
            shown = ", ".join(map(shorten, left))
            click.echo(f"{name}: not asked, they belong to another cut: {shown}", err=True)
    click.echo(
        f"{len(asked)} probes, {settings.epochs} epochs, answered by {settings.model}, "
        f"judged by {settings.judged_by}"
    )
    sent = anyio.run(_tokens, pairs, samples, settings)
    calls = len(samples) * settings.epochs
    graded = f"; grader {calls:,} calls" if settings.grader else ""
    for condition in CONDITIONS:
        click.echo(f"  {condition}: {calls:,} calls, {sent[condition]:,} tokens{graded}")
    all_calls = calls * len(CONDITIONS) * (2 if settings.grader else 1)
    besides = ", and those of the gradings" if settings.grader else ""
    click.echo(f"  together: {all_calls:,} calls, {sent.total():,} tokens sent{besides}")


async def _tokens(
    pairs: _Pairs, samples: Sequence[Sample], settings: QualifySettings
) -> Counter[Condition]:
    """Return the tokens that each condition sends to the model, over all epochs."""
    sent, questions = Counter[Condition](), defaultdict[tuple[str, int], list[int]](list)
    for sample in samples:
        name, cut, _ = _place(sample)
        asked = ChatMessageUser(content=f"{question_preamble()}\n\n\n{sample.input}")
        questions[name, cut].append(token_counter().message(asked))
    for _, pair in pairs:
        cuts = sorted(cut for name, cut in questions if name == pair.fixture.name)
        for history in await histories(pair.fixture, cuts, settings.tail_tokens):
            system = sum(history.sizes[: history.start])
            tail = system + sum(history.sizes[history.tail_start :])
            states = {"full": sum(history.sizes), "none": system, "tail": tail}
            asked_at = questions[pair.fixture.name, history.cut]
            for condition in CONDITIONS:
                tokens = len(asked_at) * states[condition] + sum(asked_at)
                sent[condition] += tokens * settings.epochs
    return sent


def _ask_all(pairs: _Pairs, settings: QualifySettings) -> list[Asked]:
    """Run the tasks of all conditions; return what came of every sample.

    Raises:
        DataError: A run could not be started: a model, a key or a folder is wrong.
    """
    names = ("model_base_url", "temperature", "max_connections")
    options: dict[str, Any] = {name: getattr(settings, name) for name in names}
    found: list[Asked] = []
    # Inspect greets on stdout, where the verdicts are to be alone.
    with redirect_stdout(sys.stderr):
        tasks = [
            # In a context of its own: an earlier run in this process leaves its model there.
            (condition, Context().run(compression, **arguments))
            for condition in CONDITIONS
            for arguments in _tasks(condition, pairs, settings)
        ]
        for condition, task in tasks:
            try:
                (log,) = inspect_eval(
                    task,
                    model=settings.model,
                    model_roles={"grader": settings.grader or EMBEDDED_MODEL},
                    epochs=settings.epochs,
                    log_dir=settings.log_dir,
                    log_samples=True,
                    fail_on_error=False,
                    tags=[QUALIFYING],
                    **{name: value for name, value in options.items() if value is not None},
                )
            except Exception as error:  # providers raise whatever they like over a name
                reason = plain_error(error)
                raise DataError(f"{condition}: the run could not start: {reason}") from error
            if log.status == "cancelled":
                raise click.Abort
            if log.status != "success":
                message = log.error.message if log.error else log.status
                click.echo(f"{condition}: the run ended early: {message}", err=True)
            found.extend(_asked(each, condition, settings) for each in log.samples or [])
    return found


def _asked(sample: EvalSample, condition: Condition, settings: QualifySettings) -> Asked:
    """Return what came of a sample of a run."""
    metadata = sample.metadata
    asked = Asked(condition, str(metadata["fixture"]), str(metadata["probe_id"]), sample.epoch)
    found = sample.store_as(ProbeRecord).sample
    if sample.error is not None or found is None:
        message = sample.error.message if sample.error else "nothing was recorded"
        return replace(asked, failure=" ".join(message.split())[:200] or "unknown error")
    record = Recorded(found, [])
    asked = replace(
        asked,
        cut=found.cut,
        digest=verdict_digest(found.digests["fixture"], found.probe, found.cut),
        model=record.answer.model,
    )
    if condition == "tail" and record.state.status in ("not_applied", "not_smaller"):
        return replace(asked, nothing_removed=True)
    facts = found.probe.expected_facts
    share: float | None = None
    failure = record.compression_failure or record.answer_failure or ""
    if facts and not any(fact.derived for fact in facts):
        share = _value(sample, "fact_retention", "fact_recall")
    if found.probe.unanswerable:
        failure = "it is unanswerable: not to know is right with nothing, too"
    elif share is None and settings.grader is None:
        failure = "not all that it asks for can be looked up: only a --grader can judge it"
    elif share is not None and math.isnan(share):
        failure = failure or "the facts were not looked up"
    if failure or settings.grader is None:
        return replace(asked, failure=failure, fact_share=share, passed=share == 1)
    scores = [_value(sample, "six_dimensions", key) for key in _RUBRIC_KEYS]
    if any(map(math.isnan, scores)):
        graded = (sample.scores or {}).get("six_dimensions")
        reason = graded.reason if graded and graded.reason else "the grader gave no score"
        return replace(asked, failure=reason)
    return replace(asked, fact_share=share, passed=min(scores) >= settings.threshold)


def _value(sample: EvalSample, scorer: str, key: str) -> float:
    """Return a value of a score; NaN if there is none."""
    score = (sample.scores or {}).get(scorer)
    value = score.value.get(key) if score and isinstance(score.value, dict) else None
    return float(value) if isinstance(value, int | float) else math.nan


def verdict(asked: Sequence[Asked], settings: QualifySettings) -> Qualification | str:
    """Return the verdict on a probe, or why there is none.

    A probe that belongs to several cuts is judged at the last of them. Where the tail is the
    whole history, the answers with the whole history count for it.

    Args:
        asked: What came of every run of every condition.
        settings: How many runs each condition is to have, and what decided that an answer passed.
    """
    last = max(item.cut for item in asked)
    runs: dict[Condition, list[Asked]] = {condition: [] for condition in CONDITIONS}
    for item in asked:
        if item.failure or item.cut == last:
            runs[item.condition].append(item)
    if runs["tail"] and all(item.nothing_removed for item in runs["tail"]):
        runs["tail"] = runs["full"]
    for condition, items in runs.items():
        for item in items:
            if item.failure:
                return f"{condition}, epoch {item.epoch}: {item.failure}"
        if len(items) != settings.epochs:
            return f"{condition}: {len(items)} of {settings.epochs} runs came to an end"
    if len({item.digest for items in runs.values() for item in items}) > 1:
        return "the fixture or the probe was changed while it was put to the model"
    counted: dict[Condition, QualifyingRuns] = {}
    for condition, items in runs.items():
        shares = [item.fact_share for item in items if item.fact_share is not None]
        counted[condition] = QualifyingRuns(
            fact_share=round(fmean(shares), _DIGITS) if shares else None,
            passed=sum(item.passed for item in items),
            runs=len(items),
        )
    first = runs["full"][0]
    return Qualification(
        full=counted["full"],
        none=counted["none"],
        tail=counted["tail"],
        qualified=counted["full"].passes and not counted["none"].passes,
        region="tail" if counted["tail"].passes else "history",
        model=first.model,
        judged_by=settings.judged_by,
        tail_tokens=settings.tail_tokens,
        cut=first.cut,
        digest=first.digest,
    )


def write_verdicts(
    source: FixtureSource, verdicts: Mapping[str, Qualification], target: Path
) -> None:
    """Write a bank with new verdicts, as a whole or not at all, and nothing else in it changed.

    The bank is read again, so that what was edited during the runs is kept; a verdict on a probe
    that was edited is then out of date by its digest.

    Args:
        source: The fixture that the bank belongs to.
        verdicts: By probe id; probes without one keep what they have.
        target: Where to write; the bank's own file as a rule.

    Raises:
        DataError: The bank can no longer be read as one, or lacks one of the probes.
        OSError: The folder cannot be written to.
    """
    found = source.find_bank()
    missing = sorted(set(verdicts) - {probe.id for probe in found.bank.probes})
    if missing:
        names = ", ".join(missing)
        raise DataError(f"{found.origin}: probes: {names} went away while they were asked")
    text = found.content if isinstance(found.content, str) else found.content.decode("utf-8-sig")
    data = json.loads(text)
    for item in data["probes"]:
        if judged := verdicts.get(item["id"]):
            item["qualification"] = judged.model_dump(mode="json")
    indent = _INDENT.match(text)
    written = json.dumps(data, indent=indent[1] if indent else 1, ensure_ascii=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, written + "\n")
