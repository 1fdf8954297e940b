"""Run a planned sweep through Inspect's eval sets, and take it up again where it was left."""

import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from inspect_ai import Task, eval_set
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries, write_log_dir_manifest
from inspect_ai.model import GenerateConfig, GenerateConfigArgs, ModelCost

from compression_eval.fixtures.errors import DataError
from compression_eval.sweeping.arms import TaskKey, task_key
from compression_eval.sweeping.folder import (
    folder_logs,
    fresh_folder,
    locked,
    repair,
    settle,
)
from compression_eval.sweeping.manifest import manifest_of, read_manifest, write_manifest
from compression_eval.sweeping.messages import one_line
from compression_eval.sweeping.planning import SweepPlan
from compression_eval.sweeping.prices import register_prices
from compression_eval.sweeping.progress import progress

_WRITES = 100
"""How often a log is written while its task runs; each time all of it is."""

Display = Literal["full", "rich", "plain", "log", "none"]


@dataclass(frozen=True)
class RunOptions:
    """How a sweep is carried out; none of it changes a result."""

    max_tasks: int | None = None
    max_samples: int | None = None
    retry_attempts: int = 3
    log_buffer: int | None = None
    """Samples that are kept back before a log is written; a hundredth of a task's if None."""
    display: Display | None = None
    """One of Inspect's displays; by default our own bars or lines on stderr."""
    prices: Mapping[str, ModelCost] | None = None
    """Written into the logs as the cost of every call."""


def refuse_other_work(plan: SweepPlan, folder: Path, way_out: str = "") -> None:
    """Raise if a folder was made from something else than a plan.

    Args:
        plan: What is to be run.
        folder: Where its logs are to be.
        way_out: What to do about it; by default as the sweep command has it.

    Raises:
        DataError: It was; the text says what changed, and where there is room. Or the folder
            holds logs that are of no sweep, or a fixture is not what it must be.
    """
    earlier = read_manifest(folder)
    way_out = way_out or (
        f"Put this into a fresh folder: --fresh takes {fresh_folder(folder)}, or name one with "
        "--log-dir."
    )
    if earlier is None:
        if folder_logs(folder):
            raise DataError(f"{folder}: holds logs that no sweep made. {way_out}")
        return
    changes = manifest_of(plan).changes_since(earlier)
    if changes:
        listed = "".join(f"\n  {change}" for change in changes)
        raise DataError(
            f"{folder}: this folder was made from something else, and its results cannot be "
            f"mixed with new ones. Changed since:{listed}\n{way_out}"
        )


def run_sweep(plan: SweepPlan, folder: Path, options: RunOptions) -> tuple[bool, list[EvalLog]]:
    """Run what a folder does not hold yet.

    Args:
        plan: What to run.
        folder: Where the logs are and go.
        options: How to run it.

    Returns:
        Whether everything is done, and the headers of the current logs.

    Raises:
        DataError: Another sweep runs in the folder, it was made from something else, or a model
            or file is not what it must be.
    """
    # Inspect greets and reports on stdout, where the way to go on is to stand alone.
    with redirect_stdout(sys.stderr):
        plan.check_models()
    with locked(folder), redirect_stdout(sys.stderr):
        refuse_other_work(plan, folder)
        repair(folder)
        tasks = list(plan.tasks())
        # Only now: what cannot be built leaves no manifest behind.
        write_manifest(folder, manifest_of(plan))
        with nullcontext() if options.display else _progress(plan, folder):
            register_prices(options.prices or {})
            success, logs = _eval_set(tasks, plan, folder, options)
        if settle(folder):
            write_log_dir_manifest(str(folder))
        # Stopped by Ctrl-C, an eval set calls the logs that it has a success, even if it has none.
        return success and len(logs) == len(tasks), logs


def _progress(plan: SweepPlan, folder: Path) -> AbstractContextManager[None]:
    arms = plan.by_task()
    several = len(plan.settings.models) > 1
    names = {key: f"{arm.label} [{key[1]}]" if several else arm.label for key, arm in arms.items()}
    sizes = {key: plan.sizes[arm.label] * plan.epochs for key, arm in arms.items()}
    return progress(names, sizes, finished_samples(folder))


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
            # What can be had is had before a task is taken up again for what had errors.
            continue_on_fail=True,
            log_samples=True,
            # Samples that Inspect recovers from its realtime buffer have lost their store, and so
            # our record of them. Without that buffer only what is in the log counts as done, and
            # the log is written so often that a kill loses next to nothing.
            log_realtime=False,
            log_buffer=options.log_buffer or max(1, largest // _WRITES),
            max_tasks=options.max_tasks,
            max_samples=options.max_samples,
            **generate,
        )
    except (KeyboardInterrupt, DataError):
        raise
    except Exception as error:  # Inspect and providers raise whatever they like
        raise DataError(f"{folder}: the sweep could not run: {one_line(error)}") from error


def finished_samples(folder: Path) -> Counter[TaskKey]:
    """Return how many samples without an error the current logs of a folder hold, by task."""
    latest = {
        log.header.eval.task_id: log
        for log in sorted(folder_logs(folder), key=lambda log: log.modified)
    }
    return Counter(
        task_key(log.header.eval)
        for log in latest.values()
        for summary in read_eval_log_sample_summaries(str(log.path))
        if summary.error is None and summary.completed
    )
