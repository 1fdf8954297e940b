"""``compression-eval probes qualify``: a front door, above the task that it runs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compression_eval.fixtures.cuts import CutArgument
from compression_eval.fixtures.errors import (
    DataError,
    PassedOverError,
    nothing_left,
    passed_over,
    shorten,
)
from compression_eval.fixtures.finding_files import find_fixtures
from compression_eval.fixtures.loading import FixtureWithBank, load_pair

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample

    from compression_eval.authoring.qualifying import Asked, Outcome
    from compression_eval.authoring.qualifying_runs import QualifySettings


@click.command(
    "qualify",
    epilog="\b\nExamples:\n"
    "  compression-eval probes qualify my/fixtures --model openai/gpt-5 --dry-run\n"
    "  compression-eval probes qualify my/fixtures --model openai/gpt-5\n"
    "  compression-eval probes qualify a.json --model openai/gpt-5 --grader anthropic/claude-x\n"
    "  compression-eval probes qualify a.json --out checked",
)
@click.argument("fixtures", nargs=-1, required=True, metavar="FIXTURE...")
@click.option("--probes", type=click.Path(path_type=Path), help="Bank, or folder with banks.")
@click.option("--model", help="Who answers; by default the embedded model, a lexical reader.")
@click.option("--model-base-url", help="Address of the model's provider.")
@click.option("--grader", help="Judge by the rubric with this model, not by looking facts up.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 5),
    help="With --grader: least score for accuracy and for completeness.  [default: 4]",
)
@click.option("--epochs", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--cut", help="Where history ends, as in the task; by default each probe's own cut.")
@click.option("--tail-tokens", type=click.IntRange(min=1), help="Budget of the kept tail.")
@click.option("--temperature", type=click.FloatRange(min=0))
@click.option("--max-connections", type=click.IntRange(min=1))
@click.option("--log-dir", default="logs/qualify", show_default=True, help="Folder for the logs.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder to write the banks to; by default each is rewritten where it lies.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be asked and what it costs.")
def qualify_command(
    fixtures: tuple[str, ...],
    probes: Path | None,
    out: Path | None,
    dry_run: bool,
    **options: str | int | float | None,
) -> None:
    """Put every probe to a model with the full history, with nothing, and with the kept tail.

    A probe qualifies if the full history passes and nothing fails, each in more than half of the
    epochs. Whether the tail alone passes is kept as its region. An answer passes if it holds every
    expected fact and gives no superseded or forbidden value as current, or with --grader by its
    scores. The verdicts are written into the banks; a probe that could not be judged gets none,
    is named, and the command exits with 1.
    """
    settings = _settings(options)
    pairs, samples = _planned(_pairs(fixtures, probes), settings)
    targets = _targets(pairs, out, dry_run=dry_run)
    _say_what_is_asked(pairs, samples, settings)
    if dry_run:
        return
    from compression_eval.authoring.qualifying import outcomes

    found = outcomes(
        _ask(pairs, samples, settings),
        epochs=settings.epochs,
        judged_by=settings.judged_by,
        tail_tokens=settings.tail_tokens,
    )
    for pair in pairs:
        _conclude(pair, found, targets[pair.fixture.name])
    click.echo(f"logs: {settings.log_dir}")
    if any(outcome.failure for outcome in found):
        raise click.exceptions.Exit(1)


def _settings(options: dict[str, str | int | float | None]) -> "QualifySettings":
    from compression_eval.authoring.qualifying_runs import QualifySettings

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
        given["cut"] = _cut(str(given["cut"]))
    return QualifySettings(**given)  # type: ignore[arg-type]


def _pairs(fixtures: Sequence[str], probes: Path | None) -> list[FixtureWithBank]:
    """Return fixtures with their banks; those without one are passed over."""
    pairs: dict[str, FixtureWithBank] = {}
    without: list[PassedOverError] = []
    for path in find_fixtures(list(fixtures)):
        try:
            pair = load_pair(path, probes)
        except PassedOverError as error:
            without.append(error)
            continue
        if other := pairs.get(pair.fixture.name):
            raise DataError(
                f"{path}: name: {shorten(pair.fixture.name)} is also the name of "
                f"{other.fixture_path}; each fixture needs its own"
            )
        pairs[pair.fixture.name] = pair
    if not pairs:
        raise nothing_left(without)
    if without:
        click.echo(passed_over(without), err=True)
    return list(pairs.values())


def _cut(text: str) -> CutArgument:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _targets(
    pairs: Sequence[FixtureWithBank], out: Path | None, *, dry_run: bool
) -> dict[str, Path]:
    """Return where each bank is to be written; found out before anything is spent."""
    targets = {
        pair.fixture.name: out / pair.bank_path.name if out else pair.bank_path for pair in pairs
    }
    if len(set(targets.values())) < len(targets):
        raise DataError(f"--out: {out}: two of the banks have the same file name")
    for target in () if dry_run else targets.values():
        if not os.access(target.resolve().parent, os.W_OK):
            raise DataError(f"{target}: the folder cannot be written to; name another with --out")
    return targets


def _planned(
    pairs: Sequence[FixtureWithBank], settings: "QualifySettings"
) -> "tuple[list[FixtureWithBank], list[Sample]]":
    """Return the samples that the task makes of these banks, and the banks that have any."""
    from compression_eval.arguments import TaskArguments
    from compression_eval.authoring.qualifying_runs import task_arguments
    from compression_eval.dataset import dataset_of

    samples: list[Sample] = []
    reasons: list[PassedOverError] = []
    for given in task_arguments("full", pairs, settings):
        try:
            found = dataset_of(TaskArguments(**given))
        except PassedOverError as error:
            reasons.append(error)
            continue
        samples.extend(found.samples)
        reasons.extend(found.passed_over)
    if not samples:
        raise nothing_left(reasons)
    if reasons:
        click.echo(passed_over(reasons), err=True)
    asked = {str((sample.metadata or {})["fixture"]) for sample in samples}
    return [pair for pair in pairs if pair.fixture.name in asked], samples


def _say_what_is_asked(
    pairs: Sequence[FixtureWithBank], samples: "list[Sample]", settings: "QualifySettings"
) -> None:
    import anyio

    from compression_eval.authoring.qualifying_plan import costs

    asked = {
        (str(s.metadata["fixture"]), str(s.metadata["probe_id"])) for s in samples if s.metadata
    }
    for pair in pairs:
        name = pair.fixture.name
        left = [probe.id for probe in pair.bank.probes if (name, probe.id) not in asked]
        if left:
            shown = ", ".join(map(shorten, left))
            click.echo(f"{name}: not asked, they belong to another cut: {shown}", err=True)
    click.echo(
        f"{len(asked)} probes, {settings.epochs} epochs, answered by {settings.model}, "
        f"judged by {settings.judged_by}"
    )
    planned = anyio.run(costs, pairs, samples, settings)
    for cost in planned:
        graded = (
            f"; grader {cost.grader_calls:,} calls, {cost.grader_tokens:,} tokens and the answers"
            if cost.grader_calls
            else ""
        )
        click.echo(f"  {cost.condition}: {cost.calls:,} calls, {cost.tokens:,} tokens{graded}")
    calls = sum(cost.calls + cost.grader_calls for cost in planned)
    tokens = sum(cost.tokens + cost.grader_tokens for cost in planned)
    click.echo(f"  together: {calls:,} calls, {tokens:,} tokens sent")


def _ask(
    pairs: Sequence[FixtureWithBank], samples: "list[Sample]", settings: "QualifySettings"
) -> "list[Asked]":
    from compression_eval.authoring.qualifying import CONDITIONS
    from compression_eval.authoring.qualifying_runs import answers, ask, task_arguments

    found: list[Asked] = []
    per_fixture = dict.fromkeys((pair.fixture.name for pair in pairs), 0)
    for sample in samples:
        per_fixture[str((sample.metadata or {})["fixture"])] += 1
    by_path = {str(pair.fixture_path.resolve()): pair.fixture.name for pair in pairs}
    for condition in CONDITIONS:
        for arguments in task_arguments(condition, pairs, settings):
            count = sum(per_fixture[by_path[path]] for path in arguments["fixtures"])
            log = ask(condition, arguments, settings, count * settings.epochs)
            if log.status == "cancelled":
                raise click.Abort
            if log.status != "success":
                message = log.error.message if log.error else log.status
                click.echo(f"{condition}: the run ended early: {message}", err=True)
            found.extend(answers(log, condition, settings))
    return found


def _conclude(pair: FixtureWithBank, found: "Sequence[Outcome]", target: Path) -> None:
    """Print a fixture's verdicts and write them into its bank."""
    from compression_eval.authoring.qualifying_banks import write_verdicts

    own = [outcome for outcome in found if outcome.fixture == pair.fixture.name]
    width = max((len(outcome.probe) for outcome in own), default=0)
    click.echo(f"{pair.fixture.name}:")
    for outcome in own:
        click.echo(f"  {outcome.probe.ljust(width)}  {_line(outcome)}")
    verdicts = {o.probe: o.qualification for o in own if o.qualification}
    qualified = sum(item.qualified for item in verdicts.values())
    by_tail = sum(item.qualified and item.region == "tail" for item in verdicts.values())
    click.echo(
        f"  {qualified} of {len(own)} qualify, {by_tail} of them answered by the kept tail alone"
    )
    if verdicts:
        write_verdicts(pair.bank_path, verdicts, target)
        click.echo(f"  wrote {target}")


def _line(outcome: "Outcome") -> str:
    item = outcome.qualification
    if item is None:
        return f"no verdict: {outcome.failure}"
    runs = "  ".join(
        f"{name} {part.passed}/{part.runs}"
        for name, part in (("full", item.full), ("none", item.none), ("tail", item.tail))
    )
    verdict = "qualified" if item.qualified else "not qualified"
    return f"{runs}  {verdict}" + (" (tail)" if item.region == "tail" else "")
