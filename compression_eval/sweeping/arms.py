"""The arms of a sweep: those that are named, a frontier over budgets, and the controls."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
from inspect_ai.log import EvalSpec

from compression_eval.arguments import TaskArguments, checked
from compression_eval.compressors.artifacts import SUFFIX
from compression_eval.compressors.budget import WINDOW_BUDGETS
from compression_eval.compressors.running import CompressionPlan
from compression_eval.compressors.spec import CompressorSpec
from compression_eval.dataset import dataset_of
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.errors import DataError, shorten
from compression_eval.sweeping.rehearsal import Fitting, Knob, NoFitError
from compression_eval.sweeping.settings import ArmSettings, SweepSettings

CONTROLS = ("full", "none", "tail")
_TARGET = "target_tokens"
KNOBS = {
    "pi": Knob("keep_recent_tokens"),
    "openhands": Knob("max_size", lowest=lambda given: 2 * (given.get("keep_first", 2) + 2)),
    "codex": Knob("user_tokens", lowest=lambda _: 0),
    "claude-code": Knob("files_tokens"),
    "langchain": Knob("keep", value=lambda number: ["tokens", number]),
    "masking": Knob("keep", lowest=lambda _: 0),
    "clear-tools": Knob("keep", lowest=lambda _: 0),
    "edit": Knob("keep_tool_uses", lowest=lambda _: 0),
    "trim": Knob("preserve", lowest=lambda _: 0, value=lambda number: number / 100, highest=100),
}
"""Of strategies that take no ``target_tokens``, what sets the size of their states."""

_LONG = 20
"""Characters from which a value is shown by its digest."""


_NOT_FITTED = "not fitted"
"""Begins the note of an arm that could be had in no size that was asked for."""

TaskKey = tuple[str, str]
"""Names a task of a sweep: what its arm is, as JSON, and its model."""


def task_key(spec: EvalSpec) -> TaskKey:
    """Return which arm and model the log of an evaluation is of."""
    return json.dumps((spec.metadata or {}).get("compressor"), sort_keys=True), spec.model


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
    note: str = ""
    """What was found about its size."""

    @property
    def key(self) -> str:
        """What the arm is, as JSON; as in a `TaskKey`."""
        return json.dumps(self.spec.described(), sort_keys=True)


def sweep_arms(settings: SweepSettings) -> list[Arm]:
    """Return the arms, controls first.

    Every arm that takes ``target_tokens`` is there once per budget, and so is one of `KNOBS` with
    the value under which its states fit the budget; others are there once, with a note that says
    why. As controls, ``full`` and ``none`` are added, and ``tail`` with the budgets of every arm
    that keeps a head and tail.

    Raises:
        DataError: An arm is unknown or given twice, its arguments do not fit, or no arm takes a
            budget that is asked for.
    """
    arms: list[Arm] = []
    for each in settings.arms:
        named = each if isinstance(each, ArmSettings) else ArmSettings(compressor=each)
        arms.extend(_with_budgets(settings, named))
    if settings.budgets and all(arm.note.startswith(_NOT_FITTED) for arm in arms):
        raise DataError(f"budgets: {'; '.join(f'{arm.label}: {arm.note}' for arm in arms)}")
    seen: set[str] = set()
    for arm in arms:
        if arm.key in seen:
            raise DataError(f"arms: {arm.label} is given twice")
        seen.add(arm.key)
    controls = list(_controls(settings, arms)) if settings.controls else []
    added = {arm.key: arm for arm in controls if arm.key not in seen}
    return [*added.values(), *arms]


def _with_budgets(settings: SweepSettings, arm: ArmSettings) -> Iterator[Arm]:
    plain = _arm(settings, arm)
    knob = KNOBS.get(arm.compressor.removesuffix(SUFFIX))
    takes = _TARGET in type(plain.spec.arguments).model_fields
    if not settings.budgets or (takes and _TARGET in arm.args):
        yield plain
    elif takes:
        for budget in settings.budgets:
            yield _arm(settings, arm.model_copy(update={"args": {**arm.args, _TARGET: budget}}))
    elif knob is None or knob.argument in arm.args:
        why = "no argument of it sets the size" if knob is None else f"{knob.argument} is given"
        yield replace(plain, note=f"{_NOT_FITTED}: {why}")
    else:
        yield from _fitted(settings, arm, plain, knob)


def _fitted(settings: SweepSettings, arm: ArmSettings, plain: Arm, knob: Knob) -> Iterator[Arm]:
    """Yield an arm for each budget that it can be made to fit; itself if there is none."""

    def with_arguments(arguments: dict[str, Any]) -> Arm:
        return _arm(settings, arm.model_copy(update={"args": arguments}))

    def plans(arguments: dict[str, Any]) -> list[CompressionPlan]:
        planned = dataset_of(TaskArguments(**with_arguments(arguments).arguments)).plans
        return list({id(each.compression): each.compression for each in planned.values()}.values())

    click.echo(f"rehearsing {plain.label} for the budgets", err=True)
    fitting = Fitting(knob, arm.args, plans)
    found: dict[str, Arm] = {}
    failures: dict[str, list[str]] = {}
    for budget in settings.budgets:
        try:
            fit = fitting.fit(budget)
        except NoFitError as error:
            failures.setdefault(str(error), []).append(f"{budget:,}")
            continue
        fitted = with_arguments(fit.arguments)
        least, mean, most = min(fit.sizes), sum(fit.sizes) / len(fit.sizes), max(fit.sizes)
        note = (
            f"for {budget:,} tokens: states of {least:,} to {most:,}, mean {mean:,.0f}, rehearsed"
        )
        earlier = found.get(fitted.key)
        # Two budgets above all that it can keep make one arm.
        found[fitted.key] = replace(fitted, note=f"{earlier.note}; {note}" if earlier else note)
    missing = [
        f"{_NOT_FITTED} to {' and '.join(budgets)} tokens: {why}"
        for why, budgets in failures.items()
    ]
    *others, last = found.values() or [plain]
    yield from others
    yield replace(last, note="; ".join(filter(None, [last.note, *missing])))


def _controls(settings: SweepSettings, arms: Sequence[Arm]) -> Iterator[Arm]:
    for name in ("full", "none"):
        yield _arm(settings, ArmSettings(compressor=name), control=True)
    budgets = [
        {
            name: getattr(arm.spec.arguments, name)
            for name in WINDOW_BUDGETS
            if name in arm.spec.arguments.model_fields_set
        }
        for arm in arms
        if type(arm.spec.arguments).model_fields.keys() >= set(WINDOW_BUDGETS)
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
    names = ("probes", "probe_types", "shard", "state_facts", "language")
    return {
        "fixtures": list(settings.fixtures),
        **{name: value for name in names if (value := getattr(settings, name)) is not None},
        "cut": settings.cut,
        "cycles": settings.cycles,
        "answers": settings.answers,
        "min_removed": settings.min_removed,
        "criteria": settings.criteria,
        "grader_context": settings.grader_context,
        # Left out where there are none, as in the folders of sweeps that did not know them.
        **({"anchors": settings.anchors} if settings.anchors else {}),
    }


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
