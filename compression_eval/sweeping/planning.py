"""Turn settings into tasks: every arm with every model."""

import os
from collections.abc import Iterable, Iterator
from contextvars import Context
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inspect_ai import Epochs, Task, task_with
from inspect_ai.model import GenerateConfig, Model

from compression_eval.analysis.arms import FITTED, fitted_to
from compression_eval.arguments import TaskArguments
from compression_eval.dataset import PlannedDataset, dataset_of
from compression_eval.errors import DataError, PassedOverError, shorten
from compression_eval.fixtures.loading import FixtureSource
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.arms import Arm, TaskKey, sweep_arms
from compression_eval.sweeping.settings import SweepSettings
from compression_eval.task import arm_task_name, compression, with_models
from compression_eval.terminal import named_model


@dataclass(frozen=True)
class SweepPlan:
    """Everything that a sweep runs."""

    settings: SweepSettings
    """The settings with the chosen models, and the embedded one as the default grader."""
    arms: list[Arm]
    parts: int = 1
    """Into how many the fixtures are divided, each with logs of its own."""

    @property
    def epochs(self) -> int:
        """Inspect's epochs: compressions times the answers from each."""
        return self.settings.epochs * self.settings.answers

    @property
    def by_task(self) -> dict[TaskKey, Arm]:
        """The arm of each task, in the order of the run."""
        return {(arm.key, model): arm for arm in self.arms for model in self.settings.models}

    def dataset(self, arm: Arm) -> PlannedDataset:
        """Return the samples of an arm with their plans; no model is called."""
        try:
            return dataset_of(TaskArguments(**arm.arguments))
        except PassedOverError as error:
            raise DataError(f"arms: {arm.label}: {error}") from error

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Samples of one model in one epoch, by the label of the arm.

        They differ if an arm skips fixtures that others take, as ``recorded`` does.
        """
        return {label: sum(sizes.values()) for label, (sizes, _) in self._found.items()}

    def size_of(self, arm: Arm, sources: Iterable[FixtureSource]) -> int:
        """Return the samples of an arm and one model in one epoch, from some of the fixtures."""
        sizes, _ = self._found[arm.label]
        return sum(sizes.get(source.origin, 0) for source in sources)

    @property
    def widest(self) -> Arm:
        """An arm with the most samples."""
        return max(self.arms, key=lambda arm: self.sizes[arm.label])

    @cached_property
    def samples(self) -> int:
        """Samples over all arms, models and epochs."""
        return sum(self.sizes.values()) * len(self.settings.models) * self.epochs

    @cached_property
    def passed_over(self) -> list[PassedOverError]:
        """Skipped fixtures and cuts, with the arms if not skipped by all."""
        arms: dict[str, list[str]] = {}
        errors: dict[str, PassedOverError] = {}
        for label, (_, reasons) in self._found.items():
            for error in reasons:
                errors.setdefault(str(error), error)
                arms.setdefault(str(error), []).append(label)
        return [
            error
            if len(arms[text]) == len(self.arms)
            else PassedOverError(f"for {', '.join(arms[text])}: {text}")
            for text, error in errors.items()
        ]

    @cached_property
    def _found(self) -> dict[str, tuple[dict[str, int], list[PassedOverError]]]:
        """Number of samples by fixture, and skipped fixtures, by the label of the arm."""
        by_label: dict[str, tuple[dict[str, int], list[PassedOverError]]] = {}
        usual: tuple[dict[str, int], list[PassedOverError]] | None = None
        for arm in self.arms:
            own = arm.spec.compressor.unsupported is not None
            if own or usual is None:
                dataset = self.dataset(arm)
                by_label[arm.label] = dataset.sizes, dataset.passed_over
                usual = usual if own else by_label[arm.label]
            else:
                by_label[arm.label] = usual
        return by_label

    def tasks(self) -> Iterator[Task]:
        """Yield the task of each arm and model."""
        models = [(name, self._model(name)) for name in self.settings.models]
        roles = {str(role): names for role, names in self.settings.roles.items()}
        for arm in self.arms:
            for name, model in models:
                # Each model has its own task, because a task's log names the model that answers.
                # In a context of its own: to one of an earlier sweep in this process Inspect would
                # tell the task that no model was chosen, and the embedded one would grade.
                created = Context().run(compression, **arm.arguments)
                task = with_models(_named_by_budget(created, arm), name, roles)
                yield task_with(task, model=model, epochs=Epochs(self.epochs, "mean"))

    def check_models(self) -> None:
        """Raise if a model cannot be created."""
        for name in self.settings.models:
            self._model(name)
        for role, names in self.settings.roles.items():
            for name in names:
                named_model(name, f"{role}: {shorten(name)}")

    def _model(self, name: str) -> Model:
        return named_model(
            name,
            f"models: {shorten(name)}",
            base_url=self.settings.model_base_url,
            config=GenerateConfig.model_validate(self.settings.generate),
            **self.settings.model_args,
        )


def _named_by_budget(created: Task, arm: Arm) -> Task:
    """Return a task named by the budget that was asked for, not by the argument fitted to it."""
    if not arm.fitted:
        return created
    derived, budget = f"{arm.fitted['argument']}=", f"budget={fitted_to(arm.fitted)}"
    tags = [budget if tag.startswith(derived) else tag for tag in created.tags or []]
    metadata = {**(created.metadata or {}), FITTED: dict(arm.fitted)}
    return task_with(created, name=arm_task_name(tags), tags=tags, metadata=metadata)


def sweep_plan(settings: SweepSettings) -> SweepPlan:
    """Return the plan for the settings, with defaults filled in."""
    named = os.environ.get("INSPECT_EVAL_MODEL", "").split(",")
    chosen = settings.models or [name.strip() for name in named if name.strip()]
    update: dict[str, Any] = {"models": chosen or [EMBEDDED_MODEL]}
    if not chosen:
        update["roles"] = {"grader": [EMBEDDED_MODEL], **settings.roles}
    settings = settings.model_copy(update=update)
    return SweepPlan(settings, sweep_arms(settings))
