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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import click
from inspect_ai import eval_set
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from inspect_ai.model import GenerateConfig, ModelCost

from compression_eval.engine import Engine
from compression_eval.errors import DataError, one_line
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import is_address, local_path
from compression_eval.grading.failures import run_failures
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.arms import Arm
from compression_eval.sweeping.planning import (
    SweepPlan,
    check_models,
    current_logs,
    folder_logs,
    fresh_folder,
    log_folder,
    refuse_other_work,
)
from compression_eval.sweeping.settings import SweepSettings, register_prices
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


def run_sweep(
    plan: SweepPlan,
    folder: Path,
    prices: Mapping[str, ModelCost] | None = None,
    **options: Any,
) -> tuple[bool, list[EvalLog]]:
    """Run the part of a plan that a folder does not hold yet.

    Args:
        plan: Of the sweep.
        folder: For the logs.
        prices: For the cost of every call in the logs.
        options: Of Inspect's `eval_set`, none of which changes a result; None is the default.

    Returns:
        Whether everything is done, and the header of each task's log.
    """
    # Inspect prints to stdout, which is reserved for how to continue.
    with redirect_stdout(sys.stderr):
        check_models(plan.settings)
        # At an address `spread` has locked the folder of all units.
        with nullcontext() if is_address(str(folder)) else locked(folder):
            refuse_other_work(plan, folder)
            folder_logs(folder, set_aside=True)
            tasks = list(plan.tasks())
            register_prices(prices or {})
            success, logs = _eval_set(tasks, plan, folder, options)
    # Stopped by Ctrl-C, an eval set reports success for the logs it has, even if it has none.
    return success and len(logs) == len(tasks), logs


def _eval_set(
    tasks: Any, plan: SweepPlan, folder: Path, options: Mapping[str, Any]
) -> tuple[bool, list[EvalLog]]:
    config = GenerateConfig.model_validate(plan.settings.generate)
    largest = plan.sizes[plan.widest.label] * plan.epochs
    given: dict[str, Any] = {
        "retry_attempts": 3,
        "max_samples": min(largest, _MAX_SAMPLES),
        # Samples that Inspect recovers from its realtime buffer lack their store, and so our
        # record. Without that buffer only samples in the log count as done, and the log is
        # written so often that a kill loses next to nothing.
        "log_realtime": False,
        "log_buffer": max(1, largest // _WRITES),
        **{name: value for name, value in options.items() if value is not None},
        **config.model_dump(exclude_none=True),
    }
    roles: dict[str, Any] = dict(plan.roles)
    try:
        return eval_set(
            tasks,
            log_dir=str(folder),
            model=None,  # each task has its own
            model_roles=roles or None,
            # All samples are tried before a task is retried for those with errors.
            continue_on_fail=True,
            log_samples=True,
            **given,
        )
    except (KeyboardInterrupt, DataError):
        raise
    except Exception as error:  # Inspect and providers raise all kinds of errors
        raise DataError(f"{folder}: the sweep could not run: {plain_error(error)}") from error


def why_unfinished(log: EvalLog) -> str:
    """Return why a log's task did not come to its end, in a line."""
    failures = run_failures(read_eval_log_sample_summaries(log.location))
    if failures and failures.errors.count:
        return failures.errors.line()
    return one_line(log.error.message, 200) if log.error else log.status


# ----- one sweep at a time


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
    """Lock by a file, which stores create only if it does not exist."""
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


# ----- on a cluster


@dataclass(frozen=True)
class _Unit:
    """The task of one arm and model, as a sweep of its own."""

    settings: SweepSettings
    """With this model only."""
    arm: Arm
    folder: str
    samples: int
    """In one epoch, as the command has planned them."""


def spread(
    plan: SweepPlan,
    folder: Path,
    prices: Mapping[str, ModelCost] | None = None,
    *,
    engine: Engine,
    **options: Any,
) -> tuple[bool, list[EvalLog]]:
    """Run the part of a plan that a folder does not hold yet on a cluster.

    Args:
        plan: Of the sweep.
        folder: On this machine, where all workers see it, or at an address.
        prices: As of `run_sweep`.
        engine: Who works.
        options: As of `run_sweep`, for each task.

    Returns:
        As `run_sweep`.

    Raises:
        DataError: The folder is another sweep's or was made from something else, a model cannot be
            created, or some of it could not be run; all else was.
    """
    check_models(plan.settings)
    # Another sweep may begin only when the cluster has let its workers go.
    with locked(folder), engine.opened():
        refuse_other_work(plan, folder)
        workers, connections = _shares(plan, engine.cores())
        units = [
            _unit(plan, arm, model, folder, connections)
            for arm in plan.arms
            for model in plan.settings.models
        ]
        _refuse_other_folders(folder, units)
        run, failed = partial(_run, prices, options), list[str]()
        done = engine.run("sweep", run, units, attrgetter("folder"), at_once=workers)
        try:
            failed.extend(f"{units[number].folder}: {why}" for number, why in done if why)
        except DataError as error:  # units that failed before count, too
            failed.append(str(error))
    if failed:
        told = "\n".join(sorted(failed))
        raise DataError(
            f"{told}\n{folder}: not everything could be run; give the same command again to run "
            "what is missing"
        )
    return True, current_logs(folder)


def _shares(plan: SweepPlan, cores: int) -> tuple[int, int | None]:
    """Return how many workers there may be, and the connections of each to each model.

    All workers together then hold no more connections than ``max_connections``. They are None if
    no model is called over a network.
    """
    roles = [name for names in plan.roles.values() for name in names]
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


def _unit(plan: SweepPlan, arm: Arm, model: str, folder: Path, connections: int | None) -> _Unit:
    update: dict[str, Any] = {"models": [model]}
    if connections:
        update["generate"] = {**plan.settings.generate, "max_connections": connections}
    shown = re.sub(r"[^A-Za-z0-9+-]+", "-", arm.label)[:40].strip("-")
    own = folder / f"{shown}-{digest(f'{arm.key} {model}')[:8]}"
    settings = plan.settings.model_copy(update=update)
    # A copy has no strategy yet: a user's own cannot be sent to another machine.
    return _Unit(settings, replace(arm), str(own), plan.sizes[arm.label])


def _refuse_other_folders(folder: Path, units: list[_Unit]) -> None:
    """Raise if there are logs that no unit would take up, so that all would be run again."""
    known = {Path(unit.folder).name for unit in units}
    for log in folder_logs(folder):
        if Path(local_path(log.location)).parent.name not in known:
            raise DataError(
                f"{folder}: has logs of a sweep that ran on one machine; go on without --engine, "
                f"or take a fresh folder: --fresh takes {fresh_folder(folder)}"
            )


def _run(prices: Mapping[str, ModelCost] | None, options: Mapping[str, Any], unit: _Unit) -> str:
    """Run a unit; returns why it could not be, or nothing."""
    try:
        plan = SweepPlan(unit.settings, [unit.arm])
        if plan.samples != unit.samples * plan.epochs_of(unit.arm):
            return (
                f"the command planned {unit.samples:,} samples, and a worker finds "
                f"{plan.sizes[unit.arm.label]:,}: it cannot read all fixtures and banks, or they "
                "have changed"
            )
        success, logs = run_sweep(plan, log_folder(unit.folder), prices, **options)
    except DataError as error:
        return str(error)
    return "" if success else "; ".join(map(why_unfinished, logs)) or "it was stopped"
