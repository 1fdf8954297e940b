"""``compression-eval sweep`` and ``compression-eval estimate``."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from inspect_ai.log import EvalLog

from compression_eval.engine import engine_of, engine_options
from compression_eval.errors import DataError, passed_over
from compression_eval.fixtures.finding_files import is_address, local_path
from compression_eval.fixtures.writing import versioned_json
from compression_eval.run_hooks import too_many_failed
from compression_eval.sweeping.costs import read_prices
from compression_eval.sweeping.estimate import as_text, estimate
from compression_eval.sweeping.folder import (
    finished_samples,
    fresh_folder,
    log_folder,
    refuse_other_work,
)
from compression_eval.sweeping.planning import SweepPlan, sweep_plan
from compression_eval.sweeping.running import (
    RunOptions,
    arm_results,
    compare_commands,
    outcome_lines,
    run_sweep,
)
from compression_eval.sweeping.settings import settings_of, sweep_options
from compression_eval.sweeping.spreading import PART, failures_of, in_parts, spread
from compression_eval.terminal import CleanCommand, StoppedError, examples

DEFAULT_FOLDER = "logs/sweep"


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
@click.option("--fresh", is_flag=True, help="Run in a new folder beside --log-dir if that is used.")
@click.option("--dry-run", is_flag=True, help="Say what would be run, and call no model.")
@click.option("--max-tasks", type=click.IntRange(min=1), help="Tasks at the same time.")
@click.option("--max-samples", type=click.IntRange(min=1), help="Samples of a task likewise.")
@click.option("--log-buffer", type=click.IntRange(min=1), help="Samples between writes of a log.")
@click.option(
    "--retry-attempts",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How often a task is taken up again in which samples had errors.",
)
@engine_options
@click.option(
    "--part",
    "part_size",
    type=click.IntRange(min=1),
    help=f"With --engine: fixtures for each eval set [{PART}].",
)
@click.option(
    "--display",
    type=click.Choice(["full", "rich", "plain", "log", "none"]),
    help="One of Inspect's.",
)
def sweep_command(
    file: Path | None,
    prices: Path | None,
    fresh: bool,
    dry_run: bool,
    max_tasks: int | None,
    max_samples: int | None,
    log_buffer: int | None,
    retry_attempts: int,
    engine: str | None,
    address: str | None,
    part_size: int | None,
    display: Any,
    **options: Any,
) -> None:
    """Run several arms with several models on the same fixtures.

    FILE is a YAML file with the same settings by their long names (docs/sweeps.md); options go
    over it. The controls full, none and tail are added. A sweep that was interrupted or killed
    goes on where it was when the same command is given again; a folder that was made from other
    fixtures, prompts or arguments is refused.
    """
    settings = settings_of(file, options)
    named = local_path(settings.log_dir or DEFAULT_FOLDER)
    cluster = engine_of(engine, address) if engine or address else None
    if cluster is None and part_size:
        raise DataError("--part: needs --engine ray")
    if cluster is None and "://" in named:
        raise DataError(f"log_dir: {named}: a sweep needs a folder on this machine, or --engine")
    folder = log_folder(named)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"log_dir: {named}: is not a folder")
    if fresh and folder.is_dir() and any(folder.iterdir()):
        folder = fresh_folder(folder)
    known = read_prices(prices)
    plan = sweep_plan(settings)
    if cluster:
        plan = in_parts(plan, part_size or PART)
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
        return
    run = RunOptions(max_tasks, max_samples, retry_attempts, log_buffer, display, known)
    try:
        if cluster:
            spread(plan, folder, run, cluster)
            _conclude_parts(plan, folder)
            return
        success, logs = run_sweep(plan, folder, run)
        _conclude(plan, folder, success, logs)
    except KeyboardInterrupt:
        raise StoppedError(f"Stopped. The same command goes on in {folder}.") from None


@click.command(
    "estimate",
    cls=CleanCommand,
    epilog=examples(
        "estimate --arms anchored,regenerative --models openai/gpt-5",
        "estimate sweep.yaml --prices prices.yaml --from logs/sweep",
        "estimate --arms anchored --epochs 6 --answers 2 --json",
    ),
)
@sweep_options
@click.option(
    "--from",
    "logs",
    multiple=True,
    metavar="LOG",
    help="A log or folder of logs to take spreads and lengths of replies from; may be repeated.",
)
@click.option(
    "--margin",
    "--threshold",
    "margin",
    type=click.FloatRange(min=0, min_open=True, max=5),
    default=0.3,
    show_default=True,
    help="The loss of knowledge (0 to 5) that a comparison is not to let pass.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate_command(
    file: Path | None,
    prices: Path | None,
    logs: tuple[str, ...],
    margin: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Say what a sweep would cost and what it could tell, before anything is spent.

    Takes what sweep takes. The states of mechanical strategies are computed; summarising ones are
    rehearsed with the embedded model in the place of theirs, so that what they would be fed is
    counted and not guessed. No model is called.
    """
    settings, known = settings_of(file, options), read_prices(prices)
    plan = sweep_plan(settings)
    result = estimate(plan, known, logs, margin)
    if as_json:
        click.echo(versioned_json(result.model_dump(mode="json")), nl=False)
    else:
        click.echo(as_text(result, plan))


def _say_plan(plan: SweepPlan, folder: Path, done: int) -> None:
    settings = plan.settings
    sizes = sorted({*plan.sizes.values()})
    click.echo(f"folder   {folder}")
    click.echo(f"models   {', '.join(settings.models)}")
    for role, names in settings.roles.items():
        click.echo(f"{role.ljust(8)} {', '.join(names)}")
    for number, arm in enumerate(plan.arms):
        lead = "arms" if number == 0 else ""
        click.echo(f"{lead.ljust(8)} {arm.label}{' (control)' if arm.control else ''}")
        if arm.note:
            indent = " " * 11
            click.echo(textwrap.fill(arm.note, 78, initial_indent=indent, subsequent_indent=indent))
    click.echo(
        f"samples  {' to '.join(map(str, sizes[:1] + sizes[1:][-1:]))} probes x "
        f"{settings.epochs} compressions x {settings.answers} answers x {len(plan.by_task)} tasks "
        f"= {plan.samples:,}"
    )
    if plan.passed_over:
        click.echo(passed_over(plan.passed_over), err=True)
    if done:
        click.echo(f"done     {done:,}; these are not run again")


def _conclude(plan: SweepPlan, folder: Path, success: bool, logs: Sequence[EvalLog]) -> None:
    """Say what came out and how to go on."""
    results = arm_results(plan, [log for log in logs if log.results])
    if results:
        click.echo("\n" + "\n".join(outcome_lines(results)))
    refuse_unfinished(folder, success, logs)
    click.echo(f"\ndone: {len(logs)} logs in {folder}\nGo on with:")
    for command in (*compare_commands(results, folder), *_reading_commands(folder)):
        click.echo(f"  {command}")
    if useless := [result for result in results if result.error]:
        raise DataError(
            "\n".join(f"{result.name}: {result.error}" for result in useless)
            + "\nThese results stay. To try again, remove their logs and give the same command:"
            + "".join(f"\n  rm {shlex.quote(result.path)}" for result in useless)
        )


def _conclude_parts(plan: SweepPlan, folder: Path) -> None:
    """Say what failed over all parts and how to go on; the scores are told by the report."""
    useless = []
    for name, failures in failures_of(plan, folder).items():
        click.echo("\n".join((f"\n{name}: {failures.samples:,} samples", *failures.lines())))
        if reason := too_many_failed(failures, plan.settings.max_failed):
            useless.append(f"{name}: {reason}")
    click.echo("\nGo on with:")
    for command in _reading_commands(folder):
        click.echo(f"  {command}")
    if useless:
        raise DataError("\n".join(useless))


def _reading_commands(folder: Path) -> Iterator[str]:
    place = shlex.quote(str(folder))
    out = "report" if is_address(str(folder)) else str(folder / "report")
    yield f"compression-eval report {place} --out {shlex.quote(out)}"
    yield f"inspect view --log-dir {place}"


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
            message = " ".join(log.error.message.split())[:200] if log.error else log.status
            click.echo(f"{log.location}: {message}", err=True)
    raise DataError(
        f"{folder}: not everything could be run; the same command takes up what is missing"
    )
