"""The arms of a sweep: those that are named, once for each budget, and the controls.

`sweep_arms` makes them from the settings; every mistake in one is an error there, before a model is
called. A budget is the ``target_tokens`` of an arm that takes them. A product without that argument
has one in `KNOBS` instead, and `_Fitting` searches its value: the strategy is rehearsed, with the
embedded model as its compressor, on every fixture and cut until the mean of its states comes close
to the budget from below.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
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
from compression_eval.compressors.budget import KNOBS, WINDOW_BUDGETS, Knob
from compression_eval.compressors.names import SUFFIX
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.strategy import CompressorSpec
from compression_eval.compressors.tokens import token_counter
from compression_eval.dataset import dataset_of
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.digests import digest
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.settings import ArmSettings, SweepSettings

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

RUN_ONCE = ("full", "none")
"""Controls that one epoch is enough for."""

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
    control: bool = False
    """Whether it was added as a control."""
    note: str = ""
    """A note about its size."""
    budget: int | None = None
    """The size that its states are to have, in tokens; None if it was given or reaches none."""
    fitted: Mapping[str, Any] = field(default_factory=dict)
    """The ``argument`` that was fitted and the ``budgets`` that it was fitted to; empty if none."""

    @property
    def run_once(self) -> bool:
        """Whether it is an added control whose states are the same every time."""
        return self.control and self.spec.name in RUN_ONCE

    @property
    def not_fitted(self) -> bool:
        """Whether budgets were given, and it reaches none of them."""
        return self.note.startswith(_NOT_FITTED) or (bool(self.fitted) and self.budget is None)

    @cached_property
    def spec(self) -> CompressorSpec:
        """The strategy with its checked arguments."""
        return checked(TaskArguments(**self.arguments)).spec

    @cached_property
    def key(self) -> str:
        """The arm as JSON; as in a `TaskKey`."""
        return json.dumps(self.spec.described(), sort_keys=True)

    def compressions(self) -> list[CompressionPlan]:
        """Return what it compresses: every fixture at every cut."""
        planned = dataset_of(TaskArguments(**self.arguments)).plans
        return list({id(each.compression): each.compression for each in planned.values()}.values())


def sweep_arms(settings: SweepSettings) -> list[Arm]:
    """Return the arms, controls first.

    Raises:
        DataError: An arm is invalid or given twice, or no argument of any gives the size of a
            budget.
    """
    checked(TaskArguments(**settings.task_arguments()))  # what no arm is to blame for
    arms: dict[str, Arm] = {}
    labels: set[str] = set()
    for arm in (arm for named in settings.arms for arm in _with_budgets(settings, named)):
        if arm.key in arms:
            raise DataError(f"arms: {arm.label} is given twice")
        if arm.label in labels:  # prompts from files of one name; tables show this digest, too
            prompt = str(getattr(arm.spec.arguments, "prompt", arm.key))
            arm = replace(arm, label=f"{arm.label} #{digest(prompt)[:6]}")  # noqa: PLW2901
        arms[arm.key] = arm
        labels.add(arm.label)
    if settings.budgets and all(arm.note.startswith(_NOT_FITTED) for arm in arms.values()):
        listed = (f"{arm.label}: {arm.note}" for arm in arms.values())
        raise DataError(f"budgets: {'; '.join(listed)}")
    controls = _controls(settings, list(arms.values())) if settings.controls else ()
    added = {arm.key: arm for arm in controls if arm.key not in arms}
    return [*added.values(), *arms.values()]


def _arm(settings: SweepSettings, arm: ArmSettings, *, control: bool = False) -> Arm:
    arguments = {**settings.task_arguments(), "compressor": arm.compressor}
    if arm.args:
        arguments["compressor_args"] = arm.args
    arguments |= arm.model_dump(include={"prompt", "focus_topic"}, exclude_none=True)
    made = Arm(_label(arm, arm.args), arguments, control, budget=arm.args.get(_TARGET))
    try:
        _ = made.spec
    except DataError as error:
        raise type(error)(f"arms: {shorten(arm.compressor)}: {error}") from error
    return made


def _label(arm: ArmSettings, args: Mapping[str, Any]) -> str:
    shown = dict(args)
    if arm.prompt is not None:
        shown["prompt"] = Path(arm.prompt).name
    if arm.focus_topic is not None:
        shown["focus_topic"] = arm.focus_topic
    listed = ", ".join(f"{name}={_shown(value)}" for name, value in shown.items())
    return f"{arm.compressor} ({listed})" if listed else arm.compressor


def _shown(value: Any) -> str:
    text = str(value)
    return digest(text)[:8] if len(text) > _MAX_SHOWN or not text.isprintable() else text


def _controls(settings: SweepSettings, arms: Sequence[Arm]) -> Iterator[Arm]:
    """Yield ``full``, ``none``, and a ``tail`` for each head and tail that an arm keeps."""
    for name in ("full", "none"):
        yield _arm(settings, ArmSettings(compressor=name), control=True)
    windows = []
    for given in (arm.spec.arguments for arm in arms):
        if type(given).model_fields.keys() >= set(WINDOW_BUDGETS):
            named = [name for name in WINDOW_BUDGETS if name in given.model_fields_set]
            windows.append({name: getattr(given, name) for name in named})
    for args in windows or [{}]:
        if _TARGET in args:
            # Tail gets the whole target, so tail_tokens has no effect.
            args.pop("tail_tokens", None)
        yield _arm(settings, ArmSettings(compressor="tail", args=args), control=True)


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


# ----- fitting an argument to a budget


def _fitted(fitting: "_Fitting", plain: Arm) -> Iterator[Arm]:
    """Yield an arm for each budget that it can fit; the arm itself if it fits none."""
    budgets_of: dict[int, list[int]] = {}
    failures: dict[str, list[str]] = {}
    for budget in fitting.settings.budgets:
        try:
            found = fitting.fit(budget)
            # What gives states of almost the same size is not paid for twice.
            same = (each for each in budgets_of if fitting.as_large(each, found, budget))
            budgets_of.setdefault(next(same, found), []).append(budget)
        except _NoFitError as error:
            failures.setdefault(str(error), []).append(f"{budget:,}")
    missing = "; ".join(
        f"{_NOT_FITTED} to {' and '.join(budgets)} tokens: {why}"
        for why, budgets in failures.items()
    )
    *others, last = [fitting.fitted_arm(*each) for each in budgets_of.items()] or [plain]
    yield from others
    yield replace(last, note="; ".join(filter(None, [last.note, missing])))


REACHED = 0.9
"""Share of a budget below which an arm is not an arm of that size."""
TOO_SMALL = "this is far below the budget, and it keeps no more"


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

    def fitted_arm(self, number: int, budgets: Sequence[int]) -> Arm:
        """Return the arm for the budgets that a number fits.

        Its label has the budgets, not the number that was fitted to them.
        """
        sizes = self.tried[number] or []
        mean = sum(sizes) / len(sizes)
        found = (
            f"{self._at(number)}, states of {min(sizes):,} to {max(sizes):,}, mean {mean:,.0f}, "
            "rehearsed"
        )
        named = {**self.arm.args, "budget": " and ".join(map(str, budgets))}
        return replace(
            self.arm_with(number),
            label=_label(self.arm, named),
            note="; ".join(
                f"for {budget:,} tokens: {found}"
                + (f" (WARNING: {TOO_SMALL})" if mean < REACHED * budget else "")
                for budget in budgets
            ),
            budget=max((each for each in budgets if mean >= REACHED * each), default=None),
            fitted={"argument": self.knob.argument, "budgets": list(budgets)},
        )

    def fit(self, budget: int) -> int:
        """Return the number that comes closest to a budget of tokens."""
        low = self.knob.lowest(self.arm.args)
        high = self.knob.highest or max(anyio.run(self._longest, low), low + 1)
        if (least := self._mean(low)) > budget:
            outcome = f"are of {least:,.0f} tokens" if math.isfinite(least) else "remove nothing"
            raise _NoFitError(f"even with {self._at(low)} its states {outcome}")
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

    def as_large(self, number: int, other: int, budget: int) -> bool:
        """Return whether a number gives states as large as another's, within a budget."""
        return CLOSE_ENOUGH * self._mean(other) <= self._mean(number) <= budget

    def _at(self, number: int) -> str:
        return f"{self.knob.argument}={self.knob.value(number)}"

    async def _longest(self, number: int) -> int:
        histories = [await plan.history() for plan in self.arm_with(number).compressions()]
        return max(token_counter().messages(history) for history in histories)

    def _mean(self, number: int) -> float:
        if number not in self.tried:
            with redirect_stdout(sys.stderr):  # Inspect prints a banner with its first model
                self.tried[number] = anyio.run(self._sizes, number)
        sizes = self.tried[number]
        return sum(sizes) / len(sizes) if sizes else math.inf

    async def _sizes(self, number: int) -> list[int] | None:
        model, sizes = rehearsing_model(), []
        for plan in self.arm_with(number).compressions():
            state = await compress(plan, 0, model)
            if state.status in TOO_LARGE:
                return None
            if state.status != "ok":
                raise _NoFitError(f"with {self._at(number)} a compression fails ({state.failure})")
            sizes.append(state.state_tokens)
        return sizes


class _RehearsingAPI(ModelAPI):
    """The embedded model, with usage in the tokens of the estimate.

    The output counts as at least as large as the request's budget, if it states one: the form that
    a strategy asks for can take more room than the summary in it. The same request comes again for
    each number that a fitting tries, and is answered once.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._replies: dict[str, ModelOutput] = {}

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - named by Inspect
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the embedded model's reply."""
        dumped = [message.model_dump_json(exclude={"id"}) for message in input]
        offered = sorted(tool.name for tool in tools)
        asked = digest("\n".join([*dumped, *offered, str(tool_choice), config.model_dump_json()]))
        if asked not in self._replies:
            self._replies[asked] = await self._answered(input, tools, tool_choice, config)
        return self._replies[asked].model_copy(deep=True)

    @staticmethod
    async def _answered(
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        # Not `Model.generate`, which would count as another call.
        replies = get_model(EMBEDDED_MODEL).api.generate(messages, tools, tool_choice, config)
        counter, output = token_counter(), cast(ModelOutput, await replies)
        read = counter.messages(messages)
        budgets = (_BUDGET.findall(message.text) for message in reversed(messages))
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


@cache
def rehearsing_model() -> Model:
    """Return the model that takes the place of the compressing one in a rehearsal."""
    return get_model("rehearsal/lexical", memoize=False)
