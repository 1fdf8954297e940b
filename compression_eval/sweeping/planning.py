"""What a sweep runs, every arm with every model, and what of it a folder contains already.

`sweep_plan` makes the plan from the settings, and `SweepPlan.tasks` the tasks for Inspect. The logs
of a folder say what they were made from: the arm and its arguments, models, roles and options, and
digests of fixtures, banks, prompts and rubrics. Inspect's eval sets refuse logs of anything else;
`refuse_other_work` says first what has changed.
"""

import inspect
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from contextvars import Context
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

import anyio
from inspect_ai import Epochs, Task, task_with
from inspect_ai.log import (
    EvalLog,
    EvalSpec,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
)
from inspect_ai.model import GenerateConfig, Model, get_model

from compression_eval.arguments import TaskArguments
from compression_eval.compressors.errors import root_cause
from compression_eval.dataset import PlannedDataset, dataset_of
from compression_eval.errors import DataError, PassedOverError, shorten
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.finding_files import is_address, local_path
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.arms import Arm, TaskKey, sweep_arms, task_key
from compression_eval.sweeping.settings import SHARED, SweepSettings
from compression_eval.terminal import named_model, plain_error
from compression_eval.versioning import MADE_FROM

_QUOTED = re.compile("[#?]|%[0-9A-Fa-f]{2}")
"""In a path: what Inspect reads as part of an address."""

_BESIDE_RESULTS = {
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
    *("adaptive_connections", "batch", "cache", "cache_prompt"),
}
"""Generation options that change how calls are made but not their results."""

_MAY_BE_SECRET = ("model argument", "generation option extra_")
"""Beginnings of the names of settings that are shown as digests."""


@dataclass(frozen=True)
class SweepPlan:
    """Everything that a sweep runs."""

    settings: SweepSettings
    """The settings with the chosen models, and the embedded one as the default grader."""
    arms: list[Arm]

    @property
    def epochs(self) -> int:
        """Inspect's epochs: compressions times the answers from each."""
        return self.settings.epochs * self.settings.answers

    def epochs_of(self, arm: Arm) -> int:
        """Return the epochs of an arm: there is nothing to compress again in `RUN_ONCE`."""
        return self.settings.answers if arm.run_once else self.epochs

    @property
    def by_task(self) -> dict[TaskKey, Arm]:
        """The arm of each task, in the order of the run."""
        return {(arm.key, model): arm for arm in self.arms for model in self.settings.models}

    @property
    def roles(self) -> dict[str, list[str]]:
        """Names of the models by role."""
        return {str(role): list(names) for role, names in self.settings.roles.items()}

    def dataset(self, arm: Arm) -> PlannedDataset:
        """Return the samples of an arm with their plans; no model is called."""
        try:
            return dataset_of(TaskArguments(**arm.arguments))
        except PassedOverError as error:
            raise DataError(f"arms: {arm.label}: {error}") from error

    @cached_property
    def _found(self) -> dict[str, tuple[int, list[PassedOverError]]]:
        """Number of samples, and skipped fixtures, by the label of the arm."""
        planned: dict[str, tuple[int, list[PassedOverError]]] = {}
        found = {}
        for arm in self.arms:
            # Only a strategy that cannot take every fixture has samples of its own.
            own = arm.label if arm.spec.compressor.kind.unsupported is not None else ""
            if own not in planned:
                dataset = self.dataset(arm)
                planned[own] = len(dataset.samples), dataset.passed_over
            found[arm.label] = planned[own]
        return found

    @property
    def sizes(self) -> dict[str, int]:
        """Samples of one model in one epoch, by the label of the arm.

        They differ if an arm skips fixtures that others take, as ``recorded`` does.
        """
        return {label: samples for label, (samples, _) in self._found.items()}

    @property
    def widest(self) -> Arm:
        """An arm with the most samples."""
        return max(self.arms, key=lambda arm: self.sizes[arm.label])

    @property
    def samples(self) -> int:
        """Samples over all arms, models and epochs."""
        of_arms = sum(self.sizes[arm.label] * self.epochs_of(arm) for arm in self.arms)
        return of_arms * len(self.settings.models)

    @property
    def passed_over(self) -> list[PassedOverError]:
        """Skipped fixtures and cuts, with the arms if not skipped by all."""
        arms: dict[str, list[str]] = {}
        for label, (_, reasons) in self._found.items():
            for text in dict.fromkeys(map(str, reasons)):
                arms.setdefault(text, []).append(label)
        return [
            PassedOverError(
                text if len(labels) == len(self.arms) else f"for {', '.join(labels)}: {text}"
            )
            for text, labels in arms.items()
        ]

    def tasks(self) -> Iterator[Task]:
        """Yield the task of each arm and model."""
        from compression_eval.task import with_models

        models = [(name, _model(self.settings, name)) for name in self.settings.models]
        for arm in self.arms:
            for name, model in models:
                # Each model has its own task, because a task's log names the model that answers.
                task = with_models(self.task_of(arm), name, self.roles)
                yield task_with(task, model=model, epochs=Epochs(self.epochs_of(arm), "mean"))

    def task_of(self, arm: Arm) -> Task:
        """Return the task of an arm, for any model."""
        from compression_eval.analysis.arms import FITTED, fitted_to
        from compression_eval.task import arm_task_name, compression

        # In a context of its own: to one of an earlier sweep in this process Inspect would
        # tell the task that no model was chosen, and the embedded one would grade.
        created = Context().run(compression, **arm.arguments)
        if not arm.fitted:
            return created
        # It is named by the budget that was asked for, not by the argument fitted to it.
        derived, budget = f"{arm.fitted['argument']}=", f"budget={fitted_to(arm.fitted)}"
        tags = [budget if tag.startswith(derived) else tag for tag in created.tags or []]
        metadata = {**(created.metadata or {}), FITTED: dict(arm.fitted)}
        return task_with(created, name=arm_task_name(tags), tags=tags, metadata=metadata)

    def call_models(self) -> None:
        """Call each model once: a key that is wrong would fail every sample after the others paid.

        Raises:
            DataError: A model does not answer.
        """
        # Not the models of the run: their connections belong to its event loop.
        models = {
            _place(role, name): named_model(name, _place(role, name), memoize=False)
            for role, names in self.roles.items()
            for name in names
        }
        for name in self.settings.models:
            models[_place("models", name)] = _model(self.settings, name, memoize=False)
        anyio.run(_call_each, models)


def check_models(settings: SweepSettings) -> None:
    """Raise if a model cannot be created, as without a key."""
    with redirect_stdout(sys.stderr):  # where Inspect greets
        for name in with_default_models(settings).models:
            _model(settings, name)
        for role, names in settings.roles.items():
            for name in names:
                named_model(name, _place(role, name))


def _model(settings: SweepSettings, name: str, **options: Any) -> Model:
    return named_model(
        name,
        _place("models", name),
        base_url=settings.model_base_url,
        config=GenerateConfig.model_validate(settings.generate),
        **settings.model_args,
        **options,
    )


def _place(role: str, name: str) -> str:
    return f"{role}: {shorten(name)}"


async def _call_each(models: Mapping[str, Model]) -> None:
    for place, model in models.items():
        if str(model) == EMBEDDED_MODEL:
            continue
        try:
            await model.generate("Reply with one word: ready", config=GenerateConfig(max_retries=1))
        except Exception as error:  # each provider has its own
            told = f"{place}: does not answer: {root_cause(error)}; nothing was run"
            raise DataError(told) from error


def sweep_plan(settings: SweepSettings) -> SweepPlan:
    """Return the plan for the settings, with defaults filled in."""
    settings = with_default_models(settings)
    return SweepPlan(settings, sweep_arms(settings))


def with_default_models(settings: SweepSettings) -> SweepSettings:
    """Return the settings with Inspect's model, or the embedded one, where none is named."""
    named = os.environ.get("INSPECT_EVAL_MODEL", "").split(",")
    chosen = settings.models or [name.strip() for name in named if name.strip()]
    update: dict[str, Any] = {"models": chosen or [EMBEDDED_MODEL]}
    if not chosen:
        update["roles"] = {"grader": [EMBEDDED_MODEL], **settings.roles}
    return settings.model_copy(update=update)


# ----- the folder


def log_folder(text: str) -> Path:
    """Return a folder for logs; one at an address behaves as one on this machine."""
    text = local_path(text)
    if not is_address(text):
        return Path(text)
    from upath import UPath  # Inspect's own way to such folders

    # Other workers write meanwhile, which a kept listing would hide.
    return cast(Path, UPath(text, use_listings_cache=False))


def fresh_folder(folder: Path) -> Path:
    """Return a folder next to one that does not exist yet: ``NAME-2`` and so on."""
    number = 2
    while (candidate := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return candidate


def folder_logs(folder: Path, *, set_aside: bool = False) -> list[EvalLog]:
    """Return the headers of the logs in a folder, oldest first.

    A log that a kill left half-written is left out, on which an eval set would fail.

    Args:
        folder: As of `log_folder`.
        set_aside: Whether such a log is renamed, so that nothing takes it for one.

    Raises:
        DataError: The folder or a log cannot be read for another reason.
    """
    logs: list[EvalLog] = []
    if not folder.is_dir():
        return logs
    for info in sorted(list_eval_logs(str(folder)), key=lambda info: info.mtime or 0.0):
        try:
            logs.append(read_eval_log(info, header_only=True))
        except (ValueError, KeyError, EOFError, BadZipFile):
            if set_aside:
                path = log_folder(info.name)
                path.rename(path.with_name(f"{path.name}.broken"))
        except Exception as error:  # each store raises its own; the log itself may be whole
            raise DataError(f"{info.name}: cannot be read: {plain_error(error)}") from error
    return logs


def current_logs(folder: Path) -> list[EvalLog]:
    """Return the newest log of each task in a folder."""
    return list({log.eval.task_id: log for log in folder_logs(folder)}.values())


def finished_samples(folder: Path) -> Counter[TaskKey]:
    """Return the number of samples without an error in a folder's current logs, by task."""
    return Counter(
        task_key(log.eval)
        for log in current_logs(folder)
        for summary in read_eval_log_sample_summaries(log.location)
        if summary.error is None and summary.completed
    )


def refuse_other_work(plan: SweepPlan, folder: Path, way_out: str = "") -> None:
    """Raise if a folder was not made from a plan, or Inspect could not read its logs."""
    place = str(folder) if is_address(str(folder)) else str(folder.absolute())
    if match := _QUOTED.search(place):
        raise DataError(
            f"log_dir: {place}: Inspect cannot read logs in a folder with {match[0]!r} in its path"
        )
    if changes := dict.fromkeys(_changes(plan, folder)):
        way_out = way_out or (
            f"Put this into a fresh folder: --fresh takes {fresh_folder(folder)}, or name one with "
            "--log-dir."
        )
        listed = "".join(f"\n  {change}" for change in changes)
        raise DataError(
            f"{folder}: this folder was made from something else, and its results cannot be "
            f"mixed with new ones. Changed since:{listed}\n{way_out}"
        )


def _changes(plan: SweepPlan, folder: Path) -> Iterator[str]:
    """Yield what differs between the logs in a folder and the tasks of a plan."""
    arms = plan.by_task
    known: dict[str, dict[str, Any]] = {}
    for log in folder_logs(folder):
        spec, arm = log.eval, arms.get(task_key(log.eval))
        if arm is None:
            name = ((spec.metadata or {}).get("compressor") or {}).get("name")
            yield f"arm {name} ({spec.task}, {spec.model}): not among these arms and models"
            continue
        if arm.label not in known:
            known[arm.label] = _planned(plan, arm)
        before, now = _made(spec), known[arm.label]
        for name in dict.fromkeys((*before, *now)):
            if before.get(name) != now.get(name):
                yield f"{name}: {_told(name, before)}, now {_told(name, now)}"
        if (epochs := spec.config.epochs or 1) > plan.epochs_of(arm):
            yield f"epochs: {epochs}, now only {plan.epochs_of(arm)}"


def _told(name: str, settings: Mapping[str, Any]) -> str:
    value = settings.get(name)
    if value is None:
        return "none"
    return digest(str(value))[:12] if name.startswith(_MAY_BE_SECRET) else str(value)


def _planned(plan: SweepPlan, arm: Arm) -> dict[str, Any]:
    """Return what decides the results of an arm, by name."""
    settings = plan.settings
    shared = {name: getattr(settings, name) for name in SHARED}
    # An API key, say, is a parameter of its own and not in a log.
    named = inspect.signature(get_model).parameters
    model_args = {name: value for name, value in settings.model_args.items() if name not in named}
    config = GenerateConfig.model_validate(settings.generate)
    return _decisive(shared, config, model_args, plan.roles, plan.task_of(arm).metadata or {})


def _made(spec: EvalSpec) -> dict[str, Any]:
    """Return what decided the results of a log, by name."""
    roles = {
        role: [each.model for each in (models if isinstance(models, list) else [models])]
        for role, models in (spec.model_roles or {}).items()
    }
    config = spec.model_generate_config
    return _decisive(spec.task_args, config, spec.model_args, roles, spec.metadata or {})


def _decisive(
    arguments: Mapping[str, Any],
    config: GenerateConfig,
    model_args: Mapping[str, Any],
    roles: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    from compression_eval.analysis.arms import FITTED, fitted_to

    # The files are known by their digests, and an arm runs to its end before failures are judged.
    besides = ("fixtures", "probes", "max_failed")
    shared = {name: arguments.get(name) for name in SHARED if name not in besides}
    options = config.model_dump(mode="json", exclude_none=True, exclude=_BESIDE_RESULTS)
    first: dict[str, Any] = next(
        (value for name, value in metadata.items() if name.startswith(MADE_FROM)), {}
    )
    fitted = metadata.get(FITTED) or {}
    made = {
        **{f"setting {name}": value for name, value in shared.items()},
        **{f"generation option {name}": value for name, value in options.items()},
        **{f"model argument {name}": value for name, value in model_args.items()},
        **{f"role {name}": value for name, value in roles.items()},
        # They are in the name of the task, by which Inspect finds it again.
        **({f"budgets that fit {fitted['argument']}": fitted_to(fitted)} if fitted else {}),
        **first,
    }
    return cast(dict[str, Any], json.loads(json.dumps(made, default=str)))
