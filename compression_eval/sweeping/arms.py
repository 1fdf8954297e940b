"""The arms of a sweep: those that are named, a frontier over budgets, and the controls."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compression_eval.arguments import TaskArguments, checked
from compression_eval.compressors.arguments import WindowArguments
from compression_eval.compressors.spec import CompressorSpec
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.errors import DataError, shorten
from compression_eval.sweeping.settings import ArmSettings, SweepSettings

CONTROLS = ("full", "none", "tail")
_TARGET = "target_tokens"
_LONG = 20
"""Characters from which a value is shown by its digest."""


@dataclass(frozen=True)
class Arm:
    """One configuration, for each model of the sweep."""

    label: str
    """Unique in the sweep; strategy with those of its arguments that were given."""
    arguments: dict[str, Any]
    """Of the task."""
    spec: CompressorSpec
    control: bool = False
    """Whether it was added as a control."""


def sweep_arms(settings: SweepSettings) -> list[Arm]:
    """Return the arms, controls first.

    Every arm that takes ``target_tokens`` is there once per budget. As controls, ``full`` and
    ``none`` are added, and ``tail`` with the budgets of every arm that keeps a head and tail.

    Raises:
        DataError: An arm is unknown or given twice, its arguments do not fit, or no arm takes a
            budget that is asked for.
    """
    arms: list[Arm] = []
    for each in settings.arms:
        named = each if isinstance(each, ArmSettings) else ArmSettings(compressor=each)
        arms.extend(_with_budgets(settings, named))
    if settings.budgets and not any(_TARGET in arm.spec.arguments.model_fields_set for arm in arms):
        raise DataError(f"budgets: none of these arms takes {_TARGET}")
    seen: set[str] = set()
    for arm in arms:
        if _identity(arm) in seen:
            raise DataError(f"arms: {arm.label} is given twice")
        seen.add(_identity(arm))
    controls = list(_controls(settings, arms)) if settings.controls else []
    added = {_identity(arm): arm for arm in controls if _identity(arm) not in seen}
    return [*added.values(), *arms]


def _with_budgets(settings: SweepSettings, arm: ArmSettings) -> Iterator[Arm]:
    plain = _arm(settings, arm)
    takes = _TARGET in type(plain.spec.arguments).model_fields
    if not settings.budgets or not takes or _TARGET in arm.args:
        yield plain
        return
    for budget in settings.budgets:
        yield _arm(settings, arm.model_copy(update={"args": {**arm.args, _TARGET: budget}}))


def _controls(settings: SweepSettings, arms: Sequence[Arm]) -> Iterator[Arm]:
    for name in ("full", "none"):
        yield _arm(settings, ArmSettings(compressor=name), control=True)
    budgets = [
        {
            name: getattr(arm.spec.arguments, name)
            for name in WindowArguments.model_fields
            if name in arm.spec.arguments.model_fields_set
        }
        for arm in arms
        if isinstance(arm.spec.arguments, WindowArguments)
    ]
    for each in budgets or [{}]:
        # With a target, tail gets all of it, so a share for the tail says nothing there.
        given = {k: v for k, v in each.items() if _TARGET not in each or k != "tail_tokens"}
        yield _arm(settings, ArmSettings(compressor="tail", args=given), control=True)


def _arm(settings: SweepSettings, arm: ArmSettings, *, control: bool = False) -> Arm:
    arguments = task_arguments(settings) | {
        "compressor": arm.compressor,
        **({"compressor_args": arm.args} if arm.args else {}),
        **({"prompt": arm.prompt} if arm.prompt is not None else {}),
        **({"focus_topic": arm.focus_topic} if arm.focus_topic is not None else {}),
    }
    try:
        spec = checked(TaskArguments(**arguments)).spec
    except DataError as error:
        raise DataError(f"arms: {shorten(arm.compressor)}: {error}") from error
    return Arm(_label(arm, spec), arguments, spec, control)


def task_arguments(settings: SweepSettings) -> dict[str, Any]:
    """Return the task's arguments that all arms share."""
    names = ("probes", "probe_types", "shard", "language")
    return {
        "fixtures": list(settings.fixtures),
        **{name: value for name in names if (value := getattr(settings, name)) is not None},
        "cut": settings.cut,
        "cycles": settings.cycles,
        "answers": settings.answers,
        "min_removed": settings.min_removed,
        "criteria": settings.criteria,
        "grader_context": settings.grader_context,
    }


def _identity(arm: Arm) -> str:
    return json.dumps(arm.spec.described(), sort_keys=True)


def _label(arm: ArmSettings, spec: CompressorSpec) -> str:
    given = {name: _shown(value) for name, value in arm.args.items()}
    if arm.prompt is not None:
        given["prompt"] = _shown(getattr(spec.arguments, "prompt", arm.prompt))
    if arm.focus_topic is not None:
        given["focus_topic"] = _shown(arm.focus_topic)
    listed = ", ".join(f"{name}={value}" for name, value in given.items())
    return f"{arm.compressor} ({listed})" if listed else arm.compressor


def _shown(value: Any) -> str:
    text = str(value)
    return digest(text)[:8] if len(text) > _LONG or not text.isprintable() else text
