"""Run a planned sweep through Inspect's eval sets, and report its outcome."""

import math
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, cast

from inspect_ai import Task, eval_set
from inspect_ai.log import (
    EvalLog,
    EvalSampleSummary,
    read_eval_log_sample_summaries,
    write_log_dir_manifest,
)
from inspect_ai.model import GenerateConfig, GenerateConfigArgs, ModelCost

from compression_eval.analysis.arms import arm_names
from compression_eval.analysis.columns import number
from compression_eval.analysis.logs import Log
from compression_eval.errors import DataError
from compression_eval.fixtures.finding_files import is_address
from compression_eval.grading.failures import RunFailures, run_failures
from compression_eval.grading.metrics import MEAN, STDERR
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.run_hooks import too_many_failed
from compression_eval.sweeping.arms import task_key
from compression_eval.sweeping.costs import register_prices
from compression_eval.sweeping.folder import (
    finished_samples,
    locked,
    manifest_of,
    refuse_other_work,
    repair,
    settle,
    write_manifest,
)
from compression_eval.sweeping.planning import SweepPlan
from compression_eval.sweeping.progress import progress
from compression_eval.task import OFFLINE_TAG
from compression_eval.terminal import plain_error
from compression_eval.text.tables import Table, table_lines

_WRITES = 100
"""How often a log is written while its task runs; each time as a whole."""

_MAX_SAMPLES = 200
"""Samples of a task at the same time, unless given: those that wait for a state do nothing else."""

MAX_COMPARISONS = 6
"""Maximum number of printed commands; the table has the names for others."""

MAX_WIDTH = 80
"""Columns above which a command takes two lines."""

Display = Literal["full", "rich", "plain", "log", "none"]


@dataclass(frozen=True)
class RunOptions:
    """How a sweep is run; no option changes a result."""

    max_tasks: int | None = None
    max_samples: int | None = None
    retry_attempts: int = 3
    log_buffer: int | None = None
    """Samples buffered before a log is written; a hundredth of a task's if None."""
    display: Display | None = None
    """One of Inspect's displays; by default our own bars or lines on stderr."""
    prices: Mapping[str, ModelCost] | None = None
    """Prices for the cost of every call in the logs."""


def run_sweep(plan: SweepPlan, folder: Path, options: RunOptions) -> tuple[bool, list[EvalLog]]:
    """Run the part of a plan that a folder does not hold yet."""
    # Inspect prints to stdout, which is reserved for how to continue.
    with redirect_stdout(sys.stderr):
        plan.check_models()
        # At an address who spreads the sweep has locked the whole.
        with nullcontext() if is_address(str(folder)) else locked(folder):
            refuse_other_work(plan, folder)
            repair(folder)
            tasks = list(plan.tasks())
            # Only now, so that a plan that cannot be built leaves no manifest.
            write_manifest(folder, manifest_of(plan))
            arms, models = plan.by_task, plan.settings.models
            shown = progress(
                names={
                    key: f"{arm.label} [{key[1]}]" if len(models) > 1 else arm.label
                    for key, arm in arms.items()
                },
                sizes={key: plan.sizes[arm.label] * plan.epochs for key, arm in arms.items()},
                done=finished_samples(folder),
            )
            with nullcontext() if options.display else shown:
                register_prices(options.prices or {})
                success, logs = _eval_set(tasks, plan, folder, options)
            if settle(folder):
                write_log_dir_manifest(str(folder))
    # Stopped by Ctrl-C, an eval set reports success for the logs it has, even if it has none.
    return success and len(logs) == len(tasks), logs


def _eval_set(
    tasks: list[Task], plan: SweepPlan, folder: Path, options: RunOptions
) -> tuple[bool, list[EvalLog]]:
    config = GenerateConfig.model_validate(plan.settings.generate)
    generate = cast(GenerateConfigArgs, config.model_dump(exclude_none=True))
    largest = plan.sizes[plan.widest.label] * plan.epochs
    roles: dict[str, Any] = {role: list(names) for role, names in plan.settings.roles.items()}
    try:
        return eval_set(
            tasks,
            log_dir=str(folder),
            model=None,  # each task has its own
            model_roles=roles or None,
            display=options.display or "none",
            retry_attempts=options.retry_attempts,
            # All samples are tried before a task is retried for those with errors.
            continue_on_fail=True,
            log_samples=True,
            # Samples that Inspect recovers from its realtime buffer lack their store, and so our
            # record. Without that buffer only samples in the log count as done, and the log is
            # written so often that a kill loses next to nothing.
            log_realtime=False,
            log_buffer=options.log_buffer or max(1, largest // _WRITES),
            max_tasks=options.max_tasks,
            max_samples=options.max_samples or min(largest, _MAX_SAMPLES),
            **generate,
        )
    except (KeyboardInterrupt, DataError):
        raise
    except Exception as error:  # Inspect and providers raise all kinds of errors
        raise DataError(f"{folder}: the sweep could not run: {plain_error(error)}") from error


@dataclass(frozen=True)
class ArmResult:
    """The result of one arm with one model."""

    name: str
    """As in the tables of `compare` and `report`."""
    path: str
    log: EvalLog
    control: bool
    budget: int | None
    """The size that its states are to have, in tokens; None if it was given none."""
    failures: RunFailures | None
    """What failed; None if the log does not say."""
    error: str
    """Why the arm is unusable; empty if it is usable."""
    tokens_left: float
    """Mean size of a state, with equal weight of conversations."""

    @property
    def is_tail(self) -> bool:
        """Whether it keeps nothing but the tail."""
        described = cast(dict[str, Any], (self.log.eval.metadata or {})["compressor"])
        return bool(described["name"] == "tail")

    def score(self, name: str, metric: str = MEAN) -> float:
        """Return a metric of a score; NaN if there is none."""
        scores = self.log.results.scores if self.log.results else []
        values = [
            score.metrics[metric].value
            for score in scores
            if score.name == name and metric in score.metrics
        ]
        return values[0] if values else math.nan


def arm_results(plan: SweepPlan, logs: Sequence[EvalLog]) -> list[ArmResult]:
    """Return the result of each arm and model with a log, in the order of the plan."""
    arms = plan.by_task
    order = {key: place for place, key in enumerate(arms)}
    ours = sorted(
        (log for log in logs if task_key(log.eval) in order),
        key=lambda log: order[task_key(log.eval)],
    )
    paths = [_from_here(log.location) for log in ours]
    names = arm_names([Log(path, log) for path, log in zip(paths, ours, strict=True)])
    results = []
    for name, path, log in zip(names, paths, ours, strict=True):
        summaries = read_eval_log_sample_summaries(log.location)
        failures = run_failures(summaries)
        error = too_many_failed(failures, plan.settings.max_failed) if failures else ""
        arm, size = arms[task_key(log.eval)], _tokens_left(summaries)
        results.append(ArmResult(name, path, log, arm.control, arm.budget, failures, error, size))
    return results


def _from_here(location: str) -> str:
    path = Path(location.removeprefix("file://"))
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _tokens_left(summaries: Sequence[EvalSampleSummary]) -> float:
    """Return the mean size of a state as `report` has it; NaN if there is none."""
    sizes: dict[str, list[float]] = defaultdict(list)
    for each in summaries:
        size = number((each.scores or {}).get("compression"), "tokens_retained")
        if size is not None:
            sizes[str(each.metadata.get("fixture"))].append(size)
    return fmean(map(fmean, sizes.values())) if sizes else math.nan


def outcome_lines(results: Sequence[ArmResult]) -> Iterator[str]:
    """Yield a table for a terminal of 80 columns, and the failures of each arm."""
    heads = ("arm", "knowledge", "±", "facts kept", "answered", "tokens", "no grade")
    rows = []
    for result in results:
        failed = result.failures
        missing = failed.samples - failed.graded if failed else 0
        measured = (
            (result.score(KNOWLEDGE), ".2f"),
            (result.score(KNOWLEDGE, STDERR), ".2f"),
            (result.score("fact_survival"), ".0%"),
            (result.score("fact_recall"), ".0%"),
            (result.tokens_left, ",.0f"),
        )
        cells = ["-" if math.isnan(value) else format(value, form) for value, form in measured]
        ungraded = f"{missing} of {failed.samples}" if failed and missing else "-"
        rows.append((result.name, *cells, ungraded))
    yield from table_lines(Table(heads, rows))
    yield "knowledge: 0 to 5, ± standard error; facts kept: in the state; answered: from it"
    if all(OFFLINE_TAG in (each.log.eval.tags or ()) for each in results):
        yield "no language model was involved: a lower bound and a regression check"
    failing = [(each.name, each.failures) for each in results if each.failures]
    reasons = [
        line
        for name, failures in failing
        if failures.any
        for line in (f"  {name}", *(f"    {line}" for line in failures.lines()))
    ]
    if reasons:
        yield from ("", "What failed:", *reasons)


def compare_commands(results: Sequence[ArmResult], folder: Path) -> Iterator[str]:
    """Yield commands that compare the first arm with the others; a single one, with its tail.

    Arms are compared under the same model and budget; those without results are left
    out.
    """
    pairs: list[tuple[ArmResult, ArmResult]] = []
    alike: defaultdict[tuple[str, int | None], list[ArmResult]] = defaultdict(list)
    for result in results:
        if not result.error:
            alike[result.log.eval.model, result.budget].append(result)
    for group in alike.values():
        arms = [result for result in group if not result.control]
        others = arms[1:]
        if len(arms) == 1:
            others, arms = arms, [each for each in group if each.control and each.is_tail][-1:]
        pairs.extend((arms[0], other) for other in others if arms)
    place = shlex.quote(str(folder))
    for base, new in pairs[:MAX_COMPARISONS]:
        first = f"compression-eval compare {place} --base-arm {shlex.quote(base.name)}"
        second = f"--to {place} --new-arm {shlex.quote(new.name)}"
        broken = len(first) + len(second) + 3 > MAX_WIDTH
        yield f"{first} \\\n      {second}" if broken else f"{first} {second}"
    if len(pairs) > MAX_COMPARISONS:
        yield f"# and {len(pairs) - MAX_COMPARISONS} more: the table has the names"
