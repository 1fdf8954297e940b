"""Run a planned sweep through Inspect's eval sets, on this machine or on a Ray cluster.

Inspect finds finished tasks and samples in the folder's logs, takes up what is missing, and shows
the progress. On a cluster the task of an arm and model is a unit of work: an eval set of its own in
a folder of its own, which whoever comes next takes up when a worker dies.
"""

import os
import re
import socket
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast
from uuid import uuid4

import click
from inspect_ai import Task, eval_set
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import GenerateConfig, GenerateConfigArgs, ModelCost

from compression_eval.engine import Engine
from compression_eval.errors import DataError, one_line
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import is_address
from compression_eval.grading.failures import run_failures
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.arms import Arm
from compression_eval.sweeping.costs import register_prices
from compression_eval.sweeping.planning import (
    SweepPlan,
    folder_logs,
    log_folder,
    refuse_other_work,
    sweep_plan,
)
from compression_eval.sweeping.settings import ArmSettings, SweepSettings
from compression_eval.terminal import plain_error

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

_LOCK = ".sweep.lock"

_WRITES = 100
"""How often a log is written while its task runs; each time as a whole."""

_MAX_SAMPLES = 200
"""Samples of a task at the same time, unless given: those that wait for a state do nothing else."""

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
    """One of Inspect's displays; Inspect's own choice if None."""
    prices: Mapping[str, ModelCost] | None = None
    """Prices for the cost of every call in the logs."""


def run_sweep(plan: SweepPlan, folder: Path, options: RunOptions) -> tuple[bool, list[EvalLog]]:
    """Run the part of a plan that a folder does not hold yet.

    Returns:
        Whether everything is done, and the header of each task's log.
    """
    # Inspect prints to stdout, which is reserved for how to continue.
    with redirect_stdout(sys.stderr):
        plan.check_models()
        # At an address who spreads the sweep has locked the whole.
        with nullcontext() if is_address(str(folder)) else locked(folder):
            refuse_other_work(plan, folder)
            folder_logs(folder, set_aside=True)
            tasks = list(plan.tasks())
            register_prices(options.prices or {})
            success, logs = _eval_set(tasks, plan, folder, options)
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
            display=options.display,
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


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for one sweep; a lock on this machine ends with the process that holds it.

    Raises:
        DataError: Another sweep holds it, or nothing can be written there.
    """
    if is_address(str(folder)):
        with _locked_store(folder):
            yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("w", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: cannot be written to ({error.strerror})") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise DataError(f"{folder}: another sweep is running in this folder") from error
        yield


@contextmanager
def _locked_store(folder: Path) -> Iterator[None]:
    """Write a file that nobody else can write then: stores put one only if it is not there."""
    from compression_eval.conversations.stores import Store

    since = datetime.now(UTC).isoformat(timespec="seconds")
    # In containers host, process and second can be alike.
    holder = f"{socket.gethostname()}, process {os.getpid()}, since {since}, {uuid4().hex}"
    store, lock = Store(str(folder)), folder / _LOCK
    if not store.create(_LOCK, holder.encode()):
        other = (store.read(_LOCK) or b"").decode(errors="replace")
        if other != holder:  # one that was tried again finds itself
            raise DataError(
                f"{folder}: another sweep is running in this folder ({other}); if it was "
                f"killed, remove {lock}"
            )
    try:
        yield
    finally:
        try:
            lock.unlink(missing_ok=True)
        except Exception as error:  # each store raises its own; what came out matters more
            told = f"{lock}: could not be removed ({plain_error(error)}); remove it yourself"
            click.echo(told, err=True)


@dataclass(frozen=True)
class _Unit:
    """The task of one arm and model, as a sweep of its own."""

    settings: SweepSettings
    folder: str
    samples: int
    """In one epoch, as the command has planned them."""


def spread(
    plan: SweepPlan, folder: Path, options: RunOptions, engine: Engine
) -> tuple[bool, list[EvalLog]]:
    """Run the part of a plan that a folder does not hold yet on a cluster.

    Args:
        plan: Of the sweep.
        folder: On this machine, where all workers see it, or at an address.
        options: As for `run_sweep`, of each task.
        engine: Who works.

    Returns:
        As `run_sweep`.

    Raises:
        DataError: The folder is another sweep's or was made from something else, a model cannot be
            created, or some of it could not be run; all else was.
    """
    plan.check_models()
    # Only when the cluster has let its workers go may another sweep begin.
    with locked(folder), engine.opened():
        refuse_other_work(plan, folder)
        workers, connections = _shares(plan, engine.cores())
        units = [
            _Unit(
                _settings(plan, arm, model, connections),
                str(folder / _task_folder(arm, model)),
                plan.sizes[arm.label],
            )
            for arm in plan.arms
            for model in plan.settings.models
        ]
        run, failed = partial(_run, options), list[str]()
        done = engine.run("sweep", run, units, attrgetter("folder"), at_once=workers)
        try:
            failed.extend(f"{units[number].folder}: {why}" for number, why in done if why)
        except DataError as error:  # what was told before it counts, too
            failed.append(str(error))
    if failed:
        told = "\n".join(sorted(failed))
        raise DataError(
            f"{told}\n{folder}: not everything could be run; the same command takes up what is "
            "missing"
        )
    return True, folder_logs(folder)


def _shares(plan: SweepPlan, cores: int) -> tuple[int, int | None]:
    """Return how many workers there may be, and the connections of each to each model.

    All workers together then hold no more connections than ``max_connections``. They are None if
    no model is called over a network.
    """
    roles = [name for names in plan.settings.roles.values() for name in names]
    called = [{model, *roles} - {EMBEDDED_MODEL} for model in plan.settings.models]
    # Inspect counts by model: those of one provider that a sample calls share the provider's.
    providers = [Counter(name.partition("/")[0] for name in names) for names in called]
    models = max((count for each in providers for count in each.values()), default=0)
    most = plan.settings.generate.get("max_connections")
    if not models:
        return cores, None
    if not isinstance(most, int) or most < models:
        raise DataError(
            f"generate: max_connections: expected a number of at least {models}: how many "
            "connections all workers together may have to one provider"
        )
    workers = min(cores, most // models)
    return workers, most // (workers * models)


def _settings(plan: SweepPlan, arm: Arm, model: str, connections: int | None) -> SweepSettings:
    given, generate = arm.arguments, plan.settings.generate
    alone = ArmSettings(
        compressor=given["compressor"],
        args=given.get("compressor_args", {}),
        prompt=given.get("prompt"),
        focus_topic=given.get("focus_topic"),
    )
    update = {
        "arms": [alone],
        "controls": False,
        "budgets": [],
        "models": [model],
        "generate": {**generate, "max_connections": connections} if connections else generate,
    }
    return plan.settings.model_copy(update=update)


def _task_folder(arm: Arm, model: str) -> str:
    shown = re.sub(r"[^A-Za-z0-9+-]+", "-", arm.label)[:40].strip("-")
    return f"{shown}-{digest(f'{arm.key} {model}')[:8]}"


def _run(options: RunOptions, unit: _Unit) -> str:
    """Run a unit; returns why it could not be, or nothing."""
    try:
        plan = sweep_plan(unit.settings)
        if plan.samples != unit.samples * plan.epochs:
            return (
                f"the command planned {unit.samples:,} samples, and a worker finds "
                f"{plan.samples // plan.epochs:,}: it cannot read all fixtures and banks, or they "
                "have changed"
            )
        success, logs = run_sweep(plan, log_folder(unit.folder), options)
    except DataError as error:
        return str(error)
    return "" if success else "; ".join(map(why_unfinished, logs)) or "it was stopped"


def why_unfinished(log: EvalLog) -> str:
    """Return why a log's task did not come to its end, in a line."""
    failures = run_failures(read_eval_log_sample_summaries(log.location))
    if failures and failures.errors.count:
        return failures.errors.line()
    return one_line(log.error.message, 200) if log.error else log.status
