"""``compression-eval sweep``: what will be run, the run, and what came out of it.

The table at the end has what Inspect's logs say of each task; its names are those of `compare` and
`report`, so that the commands printed below it can be pasted.
"""

import math
import shlex
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries

from compression_eval.engine import engine_of, engine_options
from compression_eval.errors import DataError, passed_over
from compression_eval.fixtures.finding_files import is_address, local_path
from compression_eval.grading.failures import RunFailures, run_failures
from compression_eval.grading.metrics import MEAN, STDERR
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.sweeping.arms import Arm, task_key
from compression_eval.sweeping.estimate import estimate, estimate_text
from compression_eval.sweeping.planning import (
    SweepPlan,
    check_models,
    finished_samples,
    fresh_folder,
    log_folder,
    refuse_other_work,
    sweep_plan,
)
from compression_eval.sweeping.running import run_sweep, spread, why_unfinished
from compression_eval.sweeping.settings import (
    SweepSettings,
    read_prices,
    settings_of,
    sweep_options,
)
from compression_eval.terminal import CleanCommand, StoppedError, examples, go_on
from compression_eval.text.tables import Table, table_lines

DEFAULT_FOLDER = "logs/sweep"

MAX_COMPARISONS = 6
"""Maximum number of printed commands; the table has the names for others."""


@click.command(
    "sweep",
    cls=CleanCommand,
    epilog=examples(
        "sweep --arms anchored,regenerative --models openai/gpt-5 --dry-run",
        "sweep --arms anchored,regenerative,anchored+artifacts \\\n"
        "      --models openai/gpt-5,anthropic/claude-x --model-role grader=google/gemini-x",
        "sweep --arms anchored --budgets 2000,4000,8000 --log-dir logs/frontier",
        "sweep prompts.yaml --epochs 5",
        "sweep prompts.yaml --engine ray -G max_connections=60 --log-dir s3://bucket/prompts",
    ),
)
@sweep_options
@click.option("--fresh", is_flag=True, help="If --log-dir is used, run in a new folder next to it.")
@click.option("--dry-run", is_flag=True, help="Print what would be run, and call no model.")
@click.option("--max-tasks", type=click.IntRange(min=1), help="Tasks at the same time.")
@click.option(
    "--max-samples", type=click.IntRange(min=1), help="Samples of a task at the same time."
)
@click.option("--log-buffer", type=click.IntRange(min=1), help="Samples between writes of a log.")
@click.option(
    "--retry-attempts",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Retries of a task with samples that had errors.",
)
@engine_options
@click.option(
    "--display",
    type=click.Choice(["full", "rich", "plain", "log", "none"]),
    help="Inspect's display of the progress.",
)
def sweep_command(
    file: Path | None,
    prices: Path | None,
    fresh: bool,
    dry_run: bool,
    engine: str | None,
    address: str | None,
    **options: Any,
) -> None:
    """Run several strategies and budgets with several models on the same fixtures.

    FILE is a YAML file with the same settings by their long names (docs/sweeps.md). Options
    override it. The controls full, none and tail are added. If a sweep was interrupted, give
    the same command again to continue. A folder that was made from other fixtures, prompts or
    arguments is refused.
    """
    running = ("max_tasks", "max_samples", "log_buffer", "retry_attempts", "display")
    of_run = {name: options.pop(name) for name in running}
    settings = settings_of(file, options)
    cluster = engine_of(engine, address) if engine or address else None
    folder = _folder(settings.log_dir or DEFAULT_FOLDER, fresh=fresh, anywhere=bool(cluster))
    known = read_prices(prices)
    if not dry_run:
        check_models(settings)  # before the arms are rehearsed, which takes a while
    plan = sweep_plan(settings)
    try:
        refuse_other_work(plan, folder)
        done = finished_samples(folder).total()
    except DataError as error:
        if not dry_run:
            raise
        done = 0
        click.echo(f"Without --dry-run this is an error: {error}", err=True)
    _say_plan(plan, folder, done)
    if dry_run:
        click.echo(f"\n{estimate_text(estimate(plan, known))}")
        end_dry_run(settings)
        return
    run = partial(spread, engine=cluster) if cluster else run_sweep
    try:
        conclude(plan, folder, *run(plan, folder, known, **of_run))
    except KeyboardInterrupt:
        raise StoppedError(f"Stopped. The same command continues in {folder}.") from None


def end_dry_run(settings: SweepSettings) -> None:
    """Say that nothing was run, and which models could not be called."""
    try:
        check_models(settings)
    except DataError as error:
        click.echo(f"Without --dry-run this is an error: {error}", err=True)
    click.echo("\nNothing was run. Without --dry-run the same command runs it.")


def _folder(log_dir: str, *, fresh: bool, anywhere: bool) -> Path:
    named = local_path(log_dir)
    if "://" in named and not anywhere:
        raise DataError(f"log_dir: {named}: a sweep needs a folder on this machine, or --engine")
    folder = log_folder(named)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"log_dir: {named}: is not a folder")
    used = fresh and folder.is_dir() and any(folder.iterdir())
    return fresh_folder(folder) if used else folder


def _say_plan(plan: SweepPlan, folder: Path, done: int) -> None:
    settings, sizes = plan.settings, plan.sizes.values()
    lines = [("folder", str(folder)), ("models", ", ".join(settings.models))]
    lines += [(role, ", ".join(names)) for role, names in plan.roles.items()]
    for lead, text in lines:
        click.echo(f"{lead:8} {text}")
    for number, arm in enumerate(plan.arms):
        lead = "" if number else "arms"
        click.echo(f"{lead:8} {arm.label}{' (control)' if arm.control else ''}")
        indent = " " * 11
        for line in textwrap.wrap(arm.note, 78, initial_indent=indent, subsequent_indent=indent):
            click.echo(line)
    probes = " to ".join(map(str, sorted({min(sizes), max(sizes)})))
    click.echo(
        f"samples  {probes} probes x {settings.epochs} compressions x {settings.answers} answers x "
        f"{len(plan.by_task)} tasks = {plan.samples:,}"
        + ("; full and none once" if any(arm.run_once for arm in plan.arms) else "")
    )
    if plan.passed_over:
        click.echo(passed_over(plan.passed_over), err=True)
    if done:
        click.echo(f"done     {done:,}; these are not run again")


def conclude(plan: SweepPlan, folder: Path, success: bool, logs: Sequence[EvalLog]) -> None:
    """Say what came out and how to go on.

    Raises:
        KeyboardInterrupt: The sweep was stopped, and nothing failed.
        DataError: Something could not be run, or an arm gave too little.
    """
    results = arm_results(plan, [log for log in logs if log.results])
    if results:
        click.echo("\n" + "\n".join(outcome_lines(results)))
    refuse_unfinished(folder, success, logs)
    click.echo(f"\ndone: {len(logs)} logs in {folder}")
    out = "report" if is_address(str(folder)) else str(folder / "report")
    compare = ("compression-eval", "compare", str(folder))
    go_on(
        *(
            [*compare, "--base-arm", base.name, "--to", str(folder), "--new-arm", new.name]
            for base, new in _comparisons(results)[:MAX_COMPARISONS]
        ),
        ("compression-eval", "report", str(folder), "--out", out),
        ("inspect", "view", "--log-dir", str(folder)),
    )
    refuse_useless(results)


def refuse_useless(results: Sequence["ArmResult"]) -> None:
    """Raise if too much of an arm failed; says what did, and how to run it again.

    Raises:
        DataError: Too much failed.
    """
    if useless := [result for result in results if result.error]:
        raise DataError(
            "\n".join(f"{result.name}: {result.error}" for result in useless)
            + "\nThese results stay. To try again, remove their logs and give the same command:"
            + "".join(f"\n  {result.removal}" for result in useless)
        )


def refuse_unfinished(folder: Path, success: bool, logs: Sequence[EvalLog]) -> None:
    """Raise if a sweep did not come to its end; says why for each log.

    Raises:
        KeyboardInterrupt: It was stopped, and nothing failed.
        DataError: Something failed.
    """
    if success:
        return
    if not any(log.status == "error" for log in logs):
        raise KeyboardInterrupt
    for log in logs:
        if log.status != "success":
            click.echo(f"{log.location}: {why_unfinished(log)}", err=True)
    raise DataError(
        f"{folder}: not everything could be run; give the same command again to run what is missing"
    )


@dataclass(frozen=True)
class ArmResult:
    """The result of one arm with one model."""

    name: str
    """As in the tables of `compare` and `report`."""
    log: EvalLog
    arm: Arm
    failures: RunFailures | None
    """What failed; None if the log does not say."""
    error: str
    """Why the arm is unusable; empty if it is usable."""

    @property
    def removal(self) -> str:
        """The command that removes its log, or the log's address."""
        place = local_path(self.log.location)
        if is_address(place):
            return place
        path = Path(place)
        near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        return shlex.join(["rm", str(near)])

    def score(self, name: str, metric: str = MEAN) -> float:
        """Return a metric of a score; NaN if there is none."""
        scores = self.log.results.scores if self.log.results else []
        found = (each.metrics.get(metric) for each in scores if each.name == name)
        return next((metric.value for metric in found if metric), math.nan)


def arm_results(plan: SweepPlan, logs: Sequence[EvalLog]) -> list[ArmResult]:
    """Return the result of each arm and model with a log, in the order of the plan."""
    from compression_eval.analysis.arms import arm_names
    from compression_eval.analysis.logs import Log
    from compression_eval.run_hooks import too_many_failed

    by_task = {task_key(log.eval): log for log in logs}
    ours = {key: by_task[key] for key in plan.by_task if key in by_task}
    names = arm_names([Log(log.location, log) for log in ours.values()])
    results = []
    for name, (key, log) in zip(names, ours.items(), strict=True):
        failures = run_failures(read_eval_log_sample_summaries(log.location))
        error = too_many_failed(failures, plan.settings.max_failed) if failures else ""
        results.append(ArmResult(name, log, plan.by_task[key], failures, error))
    return results


_COLUMNS = (
    ("knowledge", KNOWLEDGE, MEAN, ".2f"),
    ("±", KNOWLEDGE, STDERR, ".2f"),
    ("facts kept", "fact_survival", MEAN, ".0%"),
    ("answered", "fact_recall", MEAN, ".0%"),
    ("tokens", "tokens_retained", MEAN, ",.0f"),
)
"""Columns of the table at the end: head, score, metric and form."""


def outcome_lines(results: Sequence[ArmResult]) -> Iterator[str]:
    """Yield a table for a terminal of 80 columns, and the failures of each arm."""
    from compression_eval.task import OFFLINE_TAG

    rows = []
    for result in results:
        values = [(result.score(name, metric), form) for _, name, metric, form in _COLUMNS]
        cells = ["-" if math.isnan(value) else format(value, form) for value, form in values]
        failed = result.failures
        missing = failed.samples - failed.graded if failed else 0
        ungraded = f"{missing} of {failed.samples}" if failed and missing else "-"
        rows.append((result.name, *cells, ungraded))
    heads = ("arm", *(head for head, *_ in _COLUMNS), "no grade")
    yield from table_lines(Table(heads, rows))
    yield "knowledge: 0 to 5, ± standard error; facts kept: in the state; answered: from it"
    if unfit := [each.name for each in results if each.arm.not_fitted]:
        yield f"of another size than the budgets: {', '.join(unfit)}"
    if all(OFFLINE_TAG in (each.log.eval.tags or ()) for each in results):
        yield "no language model was involved: a lower bound and a regression check"
    yield from failure_lines(results)


def failure_lines(results: Sequence[ArmResult]) -> Iterator[str]:
    """Yield what failed, arm by arm; nothing if nothing did."""
    failing = [each for each in results if each.failures and each.failures.any]
    if failing:
        yield from ("", "What failed:")
    for each in failing:
        yield f"  {each.name}"
        yield from (f"    {line}" for line in each.failures.lines()) if each.failures else ()


def _comparisons(results: Sequence[ArmResult]) -> list[tuple[ArmResult, ArmResult]]:
    """Return what to compare: the first arm with the others; a single one with its tail.

    Arms are compared under the same model and budget; those without results are left out, and
    those that fit no budget.
    """
    pairs: list[tuple[ArmResult, ArmResult]] = []
    alike: defaultdict[tuple[str, int | None], list[ArmResult]] = defaultdict(list)
    for result in results:
        if not result.error and not result.arm.not_fitted:
            alike[result.log.eval.model, result.arm.budget].append(result)
    for group in alike.values():
        arms = [each for each in group if not each.arm.control]
        tails = [each for each in group if each.arm.control and each.arm.spec.name == "tail"]
        if len(arms) == 1:
            arms = [*tails[-1:], *arms]
        pairs.extend((arms[0], other) for other in arms[1:])
    return pairs
