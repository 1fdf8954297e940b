"""A sweep over the machines of a cluster: an eval set for each arm, model and part of the fixtures.

Each is a sweep of its own in a folder of its own, run by `run_sweep`, which takes up what a worker
or a command that died has left there: so a sample is in one log, once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, read_eval_log_sample_summaries

from compression_eval.arguments import TaskArguments, checked
from compression_eval.engine import MAX_SHOWN, Engine
from compression_eval.errors import DataError, PassedOverError, one_line
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.loading import find_sources, shards
from compression_eval.grading.failures import RunFailures, run_failures
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.arms import Arm, TaskKey, task_key
from compression_eval.sweeping.folder import (
    FolderLog,
    folder_logs,
    locked,
    log_folder,
    manifest_of,
    refuse_other_work,
    write_manifest,
)
from compression_eval.sweeping.planning import SweepPlan, sweep_plan
from compression_eval.sweeping.running import RunOptions, run_sweep
from compression_eval.sweeping.settings import ArmSettings, SweepSettings

PART = 20
"""Fixtures for each eval set: minutes of calls to a model, which take up a worker that long."""


@dataclass(frozen=True)
class _Unit:
    """A sweep of one arm and model on a part of the fixtures."""

    settings: SweepSettings
    folder: str
    samples: int
    """In one epoch, as the command has planned them."""


def in_parts(plan: SweepPlan, size: int) -> SweepPlan:
    """Return a plan whose fixtures are divided into parts of a size.

    Raises:
        DataError: The settings name a shard.
    """
    if plan.settings.shard:
        raise DataError("shard: not with --engine, which divides the fixtures by itself")
    return replace(plan, parts=-(-len(find_sources(plan.settings.fixtures)) // size))


def spread(plan: SweepPlan, folder: Path, options: RunOptions, engine: Engine) -> None:
    """Run the part of a plan that a folder does not hold yet.

    Args:
        plan: As `in_parts` returns it.
        folder: On this machine, where all workers see it, or at an address.
        options: As for `run_sweep`, of each eval set.
        engine: Who works.

    Raises:
        DataError: The folder holds something else or is another sweep's, a model cannot be created,
            or some of it could not be run; all else was.
    """
    plan.check_models()
    # Only when the cluster has let its workers go may another sweep begin.
    with locked(folder), engine.opened():
        refuse_other_work(plan, folder)
        shares = _shares(plan, engine.cores())
        sources = checked(TaskArguments(**plan.widest.arguments)).sources
        units = [
            _Unit(
                _settings(plan, arm, model, part, shares),
                _place(plan, folder, arm, model, part),
                plan.size_of(arm, own),
            )
            for part, own in enumerate(shards(sources, plan.parts))
            for arm in plan.arms
            for model in plan.settings.models
        ]
        folder.mkdir(parents=True, exist_ok=True)
        write_manifest(folder, manifest_of(plan))
        run = partial(_run, options)
        done = engine.run("sweep", run, units, _name, at_once=shares.workers)
        failed: list[str] = []
        try:
            failed.extend(f"{units[number].folder}: {why}" for number, why in done if why)
        except DataError as error:  # what was told before it counts, too
            failed.append(str(error))
    if failed:
        more = [f"and {len(failed) - MAX_SHOWN} more"] if len(failed) > MAX_SHOWN else []
        raise DataError(
            "\n".join((*sorted(failed)[:MAX_SHOWN], *more))
            + f"\n{folder}: not everything could be run; the same command takes up what is missing"
        )


def failures_of(plan: SweepPlan, folder: Path) -> dict[str, RunFailures]:
    """Return what failed in each arm and model, over all parts, by a name for people."""
    logs: dict[TaskKey, list[FolderLog]] = defaultdict(list)
    for log in folder_logs(folder):
        logs[task_key(log.header.eval)].append(log)
    several = len(plan.settings.models) > 1
    found: dict[str, RunFailures] = {}
    for key, arm in plan.by_task.items():
        summaries = chain.from_iterable(map(FolderLog.summaries, logs[key]))
        if failures := run_failures(summaries):
            found[f"{arm.label} [{key[1]}]" if several else arm.label] = failures
    return found


@dataclass(frozen=True)
class _Shares:
    """How connections are divided, so that all workers together hold no more than was said."""

    workers: int
    connections: int | None
    """Of each worker to each model; None if no model is called over a network."""


def _shares(plan: SweepPlan, cores: int) -> _Shares:
    roles = [name for names in plan.settings.roles.values() for name in names]
    called = [{model, *roles} - {EMBEDDED_MODEL} for model in plan.settings.models]
    # Inspect counts by model: those of one provider that a sample calls share the provider's.
    providers = [Counter(name.partition("/")[0] for name in names) for names in called]
    models = max((count for each in providers for count in each.values()), default=0)
    most = plan.settings.generate.get("max_connections")
    if not models:
        return _Shares(cores, None)
    if not isinstance(most, int) or most < models:
        raise DataError(
            f"generate: max_connections: expected a number of at least {models}: how many "
            "connections all workers together may have to one provider"
        )
    workers = min(cores, most // models)
    return _Shares(workers, most // (workers * models))


def _settings(plan: SweepPlan, arm: Arm, model: str, part: int, shares: _Shares) -> SweepSettings:
    given: Mapping[str, Any] = arm.arguments
    generate = plan.settings.generate
    if shares.connections:
        generate = {**generate, "max_connections": shares.connections}
    update = {
        "arms": [
            ArmSettings(
                compressor=given["compressor"],
                args=given.get("compressor_args", {}),
                prompt=given.get("prompt"),
                focus_topic=given.get("focus_topic"),
            )
        ],
        "controls": False,
        "budgets": [],
        "models": [model],
        "generate": generate,
        "shard": f"{part + 1}/{plan.parts}" if plan.parts > 1 else None,
    }
    return plan.settings.model_copy(update=update)


def _place(plan: SweepPlan, folder: Path, arm: Arm, model: str, part: int) -> str:
    shown = re.sub(r"[^A-Za-z0-9+-]+", "-", arm.label)[:40].strip("-")
    task = f"{shown}-{digest(f'{arm.key} {model}')[:8]}"
    return str(folder / task / f"{part + 1:05}-of-{plan.parts:05}")


def _name(unit: _Unit) -> str:
    return unit.folder


def _run(options: RunOptions, unit: _Unit) -> str:
    """Run a unit; returns why it could not be, or nothing."""
    try:
        plan = sweep_plan(unit.settings)
        found = sum(plan.sizes.values())
    except DataError as error:
        # Of some parts no fixture has a probe that is asked for.
        if not any(isinstance(each, PassedOverError) for each in (error, error.__cause__)):
            return str(error)
        found = 0
    if found != unit.samples:
        return (
            f"the command planned {unit.samples:,} samples, and a worker finds {found:,}: it "
            "cannot read all fixtures and banks, or they have changed"
        )
    if not found:
        return ""
    try:
        success, logs = run_sweep(plan, log_folder(unit.folder), options)
    except DataError as error:
        return str(error)
    return "" if success else "; ".join(map(_reason, logs)) or "it was stopped"


def _reason(log: EvalLog) -> str:
    failures = run_failures(read_eval_log_sample_summaries(log.location))
    if failures and failures.errors.count:
        return failures.errors.line()
    return one_line(log.error.message, 200) if log.error else log.status
