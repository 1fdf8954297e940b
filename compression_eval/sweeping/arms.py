"""The arms of a sweep: those that are named, once for each budget, and the controls.

A budget is the ``target_tokens`` of an arm that takes them. A product without that argument has one
in `KNOBS` instead: the strategy is rehearsed, with the embedded model as its compressor, on every
fixture and cut until the mean of its states comes close to the budget from below. Every mistake in
an arm is an error here, before a model is called.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import anyio
import click
from inspect_ai.log import EvalSpec
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from compression_eval.arguments import TaskArguments, checked
from compression_eval.compressors.budget import KNOBS, WINDOW_BUDGETS, Knob, split, split_system
from compression_eval.compressors.names import SUFFIX
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.strategy import CompressorSpec
from compression_eval.compressors.tokens import token_counter
from compression_eval.dataset import dataset_of
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.digests import digest
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.settings import ArmSettings, SweepSettings

CONTROLS = ("full", "none", "tail")

TOO_LARGE = ("not_applied", "not_smaller")
"""Failures due to the conversation and the budgets, whatever a model replies."""

CLOSE_ENOUGH = 0.97
"""Share of a budget that ends the search for it."""

_TARGET = "target_tokens"
_MAX_SHOWN = 20
"""Characters of a value in a label; a longer one is shown by its digest."""

_NOT_FITTED = "not fitted"
"""Begins the note of an arm that fits none of the budgets."""

_BUDGET = re.compile(r'^\{[^\n]*"budget_tokens": ?([1-9]\d*)', re.MULTILINE)
"""The budget that a request of ours for a summary states."""

TaskKey = tuple[str, str]
"""Key of a sweep's task: its arm as JSON, and its model."""


def task_key(spec: EvalSpec) -> TaskKey:
    """Return the arm and model of an evaluation's log."""
    return json.dumps((spec.metadata or {}).get("compressor"), sort_keys=True), spec.model


@dataclass(frozen=True)
class Arm:
    """One configuration, for each model of the sweep."""

    label: str
    """Unique in the sweep: the strategy with its explicit arguments."""
    arguments: dict[str, Any]
    """Of the task."""
    spec: CompressorSpec
    control: bool = False
    """Whether it was added as a control."""
    note: str = ""
    """A note about its size."""
    budget: int | None = None
    """The size that its states are to have, in tokens; None if it was given none."""
    fitted: Mapping[str, Any] = field(default_factory=dict)
    """The ``argument`` that was fitted and the ``budgets`` that it was fitted to; empty if none."""

    @property
    def key(self) -> str:
        """The arm as JSON; as in a `TaskKey`."""
        return json.dumps(self.spec.described(), sort_keys=True)


def sweep_arms(settings: SweepSettings) -> list[Arm]:
    """Return the arms, controls first.

    Raises:
        DataError: An arm is invalid or given twice, or every state of it must fail: no argument
            gives the size of any budget, or its target has no room for what always stays.
    """
    checked(TaskArguments(**settings.task_arguments()))  # what no arm is to blame for
    arms: list[Arm] = []
    for each in settings.arms:
        named = each if isinstance(each, ArmSettings) else ArmSettings(compressor=each)
        arms.extend(_with_budgets(settings, named))
    if settings.budgets and all(arm.note.startswith(_NOT_FITTED) for arm in arms):
        raise DataError(f"budgets: {'; '.join(f'{arm.label}: {arm.note}' for arm in arms)}")
    seen: set[str] = set()
    labels: set[str] = set()
    for number, arm in enumerate(arms):
        if arm.key in seen:
            raise DataError(f"arms: {arm.label} is given twice")
        seen.add(arm.key)
        if arm.label in labels:  # prompts from files of one name; tables show this digest, too
            prompt = str(getattr(arm.spec.arguments, "prompt", arm.key))
            arms[number] = replace(arm, label=f"{arm.label} #{digest(prompt)[:6]}")
        labels.add(arm.label)
    controls = _controls(settings, arms) if settings.controls else ()
    added = {arm.key: arm for arm in controls if arm.key not in seen}
    return list(_with_room([*added.values(), *arms], settings.budgets))


def _with_room(arms: Sequence[Arm], budgets: Sequence[int]) -> Iterator[Arm]:
    """Yield the arms, with a note if a target cannot hold the head of every conversation."""
    known: dict[int, list[int]] = {}
    for arm in arms:
        target = getattr(arm.spec.arguments, _TARGET, None)
        if target is None:
            yield arm
            continue
        tokens = getattr(arm.spec.arguments, "head_tokens", 0)
        if tokens not in known:
            known[tokens] = anyio.run(_heads, _compressions(arm), tokens)
        over = [size for size in known[tokens] if size >= target]
        why = (
            "a target is for the whole state, and system prompt and head alone take "
            f"{max(over, default=0):,} tokens"
        )
        if over and len(over) == len(known[tokens]):
            setting = "budgets" if target in budgets else "arms"
            raise DataError(f"{setting}: {arm.label}: {why}")
        failing = f"{len(over)} of {len(known[tokens])} histories cannot be compressed: {why}"
        yield replace(arm, note=failing) if over else arm


async def _heads(plans: Sequence[CompressionPlan], head_tokens: int) -> list[int]:
    """Return the tokens of system prompt and head in each history."""
    sizes = []
    for plan in plans:
        history = await plan.history()
        # The rest of a history is long, and only has to be counted to find a head in it.
        head = split(history, head_tokens, 0).head if head_tokens else split_system(history)[0]
        sizes.append(token_counter().messages(head))
    return sizes


def _compressions(arm: Arm) -> list[CompressionPlan]:
    """Return what an arm compresses: every fixture at every cut."""
    planned = dataset_of(TaskArguments(**arm.arguments)).plans
    return list({id(each.compression): each.compression for each in planned.values()}.values())


def _arm(settings: SweepSettings, arm: ArmSettings, *, control: bool = False) -> Arm:
    arguments = {**settings.task_arguments(), "compressor": arm.compressor}
    if arm.args:
        arguments["compressor_args"] = arm.args
    arguments |= arm.model_dump(include={"prompt", "focus_topic"}, exclude_none=True)
    try:
        spec = checked(TaskArguments(**arguments)).spec
    except DataError as error:
        raise type(error)(f"arms: {shorten(arm.compressor)}: {error}") from error
    return Arm(_label(arm, arm.args), arguments, spec, control, budget=arm.args.get(_TARGET))


def _label(arm: ArmSettings, args: Mapping[str, Any]) -> str:
    shown_args = {name: _shown(value) for name, value in args.items()}
    if arm.prompt is not None:
        shown_args["prompt"] = _shown(Path(arm.prompt).name)
    if arm.focus_topic is not None:
        shown_args["focus_topic"] = _shown(arm.focus_topic)
    listed = ", ".join(f"{name}={value}" for name, value in shown_args.items())
    return f"{arm.compressor} ({listed})" if listed else arm.compressor


def _shown(value: Any) -> str:
    text = str(value)
    return digest(text)[:8] if len(text) > _MAX_SHOWN or not text.isprintable() else text


def _controls(settings: SweepSettings, arms: Sequence[Arm]) -> Iterator[Arm]:
    """Yield ``full``, ``none``, and a ``tail`` for each head and tail that an arm keeps."""
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
    for budget_args in budgets or [{}]:
        if _TARGET in budget_args:
            # Tail gets the whole target, so tail_tokens has no effect.
            budget_args.pop("tail_tokens", None)
        yield _arm(settings, ArmSettings(compressor="tail", args=budget_args), control=True)


def _with_budgets(settings: SweepSettings, arm: ArmSettings) -> Iterator[Arm]:
    """Yield an arm once per budget; one that cannot be fitted once, with a note that says why."""
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
        click.echo(f"rehearsing {plain.label} for the budgets", err=True)
        yield from _fitted(_Fitting(settings, arm, knob), plain)


def _fitted(fitting: "_Fitting", plain: Arm) -> Iterator[Arm]:
    """Yield an arm for each budget that it can fit; the arm itself if it fits none."""
    by_key: dict[str, Arm] = {}
    failures: dict[str, list[str]] = {}
    for budget in fitting.settings.budgets:
        try:
            number = fitting.fit(budget)
        except _NoFitError as error:
            failures.setdefault(str(error), []).append(f"{budget:,}")
            continue
        fitted, sizes = fitting.arm_with(number), fitting.tried[number] or []
        knob = fitting.knob
        note = (
            f"for {budget:,} tokens: {knob.argument}={knob.value(number)}, states of "
            f"{min(sizes):,} to {max(sizes):,}, mean {sum(sizes) / len(sizes):,.0f}, rehearsed"
        )
        earlier = by_key.get(fitted.key)
        # Two budgets above everything that it can keep give the same arm.
        note = f"{earlier.note}; {note}" if earlier else note
        budgets = [*(earlier.fitted["budgets"] if earlier else ()), budget]
        asked = {"argument": knob.argument, "budgets": budgets}
        # It is called by what was asked for, and not by what that took.
        named = {**fitting.arm.args, "budget": " and ".join(map(str, budgets))}
        label = _label(fitting.arm, named)
        by_key[fitted.key] = replace(fitted, label=label, note=note, budget=budget, fitted=asked)
    missing = [
        f"{_NOT_FITTED} to {' and '.join(budgets)} tokens: {why}"
        for why, budgets in failures.items()
    ]
    *others, last = by_key.values() or [plain]
    yield from others
    yield replace(last, note="; ".join(filter(None, [last.note, *missing])))


class _NoFitError(Exception):
    """No value of an argument gives states of the wanted size; the text says why."""


class _Fitting:
    """Finds the number for a strategy's knob that gives states of a wanted size, by bisection.

    A state counts as too large if nothing is removed. The mean of the tokens over fixtures and cuts
    should be as close to the budget as possible without exceeding it.
    """

    def __init__(self, settings: SweepSettings, arm: ArmSettings, knob: Knob) -> None:
        self.settings, self.arm, self.knob = settings, arm, knob
        self.tried: dict[int, list[int] | None] = {}
        """Tokens of each state by number; None if one is not smaller than the history."""

    def arm_with(self, number: int) -> Arm:
        """Return the arm with its knob at a number."""
        args = {**self.arm.args, self.knob.argument: self.knob.value(number)}
        return _arm(self.settings, self.arm.model_copy(update={"args": args}))

    def fit(self, budget: int) -> int:
        """Return the number that comes closest to a budget of tokens."""
        low = self.knob.lowest(self.arm.args)
        high = self.knob.highest or max(anyio.run(self._longest, low), low + 1)
        if (least := self._mean(low)) > budget:
            outcome = f"are of {least:,.0f} tokens" if math.isfinite(least) else "remove nothing"
            tried = f"{self.knob.argument}={self.knob.value(low)}"
            raise _NoFitError(f"even with {tried} its states {outcome}")
        if self._mean(high) <= budget:
            return high
        while high - low > 1 and self._mean(low) < CLOSE_ENOUGH * budget:
            wide = high > 4 * max(low, 1)
            middle = math.isqrt(max(low, 1) * high) if wide else (low + high) // 2
            if self._mean(middle) <= budget:
                low = middle
            else:
                high = middle
        return low

    async def _longest(self, number: int) -> int:
        histories = [await plan.history() for plan in _compressions(self.arm_with(number))]
        return max(token_counter().messages(history) for history in histories)

    def _mean(self, number: int) -> float:
        if number not in self.tried:
            with redirect_stdout(sys.stderr):  # Inspect prints a banner with its first model
                self.tried[number] = anyio.run(self._sizes, number)
        sizes = self.tried[number]
        return sum(sizes) / len(sizes) if sizes else math.inf

    async def _sizes(self, number: int) -> list[int] | None:
        model, sizes = rehearsing_model(), []
        for plan in _compressions(self.arm_with(number)):
            state = await compress(plan, 0, model)
            if state.status in TOO_LARGE:
                return None
            if state.status != "ok":
                tried = f"{self.knob.argument}={self.knob.value(number)}"
                raise _NoFitError(f"with {tried} a compression fails ({state.failure})")
            sizes.append(state.state_tokens)
        return sizes


class _RehearsingAPI(ModelAPI):
    """The embedded model, with usage in the tokens of the estimate.

    The output counts as at least as large as the request's budget, if it states one: the form that
    a strategy asks for can take more room than the summary in it.
    """

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - named by Inspect
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the embedded model's reply."""
        # Not `Model.generate`, which would count as another call.
        replies = get_model(EMBEDDED_MODEL).api.generate(input, tools, tool_choice, config)
        counter, output = token_counter(), cast(ModelOutput, await replies)
        read = counter.messages(input)
        budgets = (_BUDGET.findall(message.text) for message in reversed(input))
        stated = next(filter(None, budgets), [str(config.max_tokens or 0)])
        written = max(int(stated[0]), counter.count(output.completion))
        output.usage = ModelUsage(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
        return output


@modelapi(name="rehearsal")
def rehearsal() -> type[ModelAPI]:
    """Return the provider, which is registered only for estimates."""
    return _RehearsingAPI


def rehearsing_model() -> Model:
    """Return the model that takes the place of the compressing one in a rehearsal."""
    return get_model("rehearsal/lexical", memoize=False)
