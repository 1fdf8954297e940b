"""Calls and tokens of one arm, from its states and questions; and the prices of models.

Each arm compresses each fixture and cut once: mechanical strategies as in the run, summarising ones
with the embedded model as their compressor. Requests are then built as a run builds them, and
counted. Inspect has a field for prices (`ModelInfo.cost`) but ships none, so they come from a file
or from `set_model_cost`; an unknown price stays unknown.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import yaml
from inspect_ai.model import (
    ContentText,
    Model,
    ModelCost,
    ModelInfo,
    get_model_info,
    set_model_info,
)
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.errors import DataError, describe_validation_error
from compression_eval.fetching.answering import instructions
from compression_eval.fixtures.tokens import MESSAGE_OVERHEAD
from compression_eval.grading.request import grading_request
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.state_reader import reading_requests
from compression_eval.plans import ProbePlan, question_preamble
from compression_eval.record import StateRecord, render_messages
from compression_eval.sweeping.arms import TOO_LARGE, Arm
from compression_eval.sweeping.settings import SweepSettings, read_yaml
from compression_eval.text.printable import one_line_json

Basis = Literal["computed", "rehearsed", "assumed"]
CostRole = Literal["answerer", "refetch", "grader", "reader", "compressor"]
"""``refetch`` are the second answers, with tools; the ``reader`` looks for facts in the states."""


class Assumptions(BaseModel):
    """What cannot be counted before a run: ``assumptions.yaml`` says what each is."""

    model_config = ConfigDict(extra="forbid")

    source: str
    """Why they are what they are, for display."""
    variances: dict[str, float]
    """Of knowledge, by the names of `Variances`."""
    answer_tokens: float = Field(gt=0)
    grader_tokens_per_criterion: float = Field(gt=0)
    grader_tokens_per_fact: float = Field(gt=0)
    reader_tokens_per_fact: float = Field(gt=0)
    refetch_calls: float = Field(ge=0)
    refetch_tokens_per_call: float = Field(gt=0)
    refetch_reply_tokens: float = Field(gt=0)
    cached_prefix_tokens: int = Field(ge=0)
    summary_tokens: int = Field(gt=0)
    state_tokens: int = Field(gt=0)


@cache
def assumed() -> Assumptions:
    """Return the assumptions that come with this project."""
    text = (files(__package__) / "assumptions.yaml").read_text(encoding="utf-8")
    return Assumptions.model_validate(yaml.safe_load(text))


@dataclass
class Tokens:
    """The total of some calls."""

    calls: float = 0
    input: float = 0.0
    """All input tokens."""
    output: float = 0.0
    shared: float = 0.0
    """Input tokens of a prefix that an earlier call about the same state has sent."""

    def __add__(self, other: "Tokens") -> "Tokens":
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tokens(*(one + another for one, another in pairs))

    def times(self, number: int) -> "Tokens":
        """Return the total of so many repetitions."""
        return Tokens(*(value * number for value in astuple(self)))

    def sharing(self, prefix: float, least: int) -> "Tokens":
        """Return the total where these calls about one state share a prefix, if it is long."""
        shared = prefix * (self.calls - 1) if prefix >= least and self.calls > 1 else 0.0
        return Tokens(self.calls, self.input, self.output, shared)


@dataclass
class ArmCosts:
    """The cost of one arm with one model and one grader, over all compressions."""

    basis: Basis
    roles: dict[CostRole, Tokens] = field(default_factory=dict)
    states: int = 0
    history_tokens: float = 0.0
    """Mean over fixtures and cuts; likewise the following."""
    state_tokens: float = 0.0
    failing: Counter[str] = field(default_factory=Counter)
    """Compressions known to fail, by reason; they are neither answered nor graded."""
    unrehearsed: str = ""
    """Why states are assumed; empty if none are."""

    def add(self, role: CostRole, tokens: Tokens) -> None:
        """Add the calls of a role."""
        self.roles[role] = self.of(role) + tokens

    def of(self, role: CostRole) -> Tokens:
        """Return the calls of a role."""
        return self.roles.get(role, Tokens())


async def arm_costs(
    arm: Arm,
    plans: Sequence[ProbePlan],
    settings: SweepSettings,
    assumptions: Assumptions,
    model: Model,
) -> ArmCosts:
    """Return the cost of an arm.

    Args:
        arm: What compresses.
        plans: All its questions.
        settings: Of the sweep.
        assumptions: About what cannot be counted.
        model: Takes the place of the compressing one.
    """
    calls_model, epochs = arm.spec.compressor.calls_model, settings.epochs
    costs = ArmCosts("rehearsed" if calls_model else "computed")
    places: dict[int, list[ProbePlan]] = {}
    for plan in plans:
        places.setdefault(id(plan.compression), []).append(plan)
    sizes: list[int] = []
    for group in places.values():
        state = await compress(group[0].compression, 0, model)
        costs.history_tokens += state.original_tokens / len(places)
        costs.states += epochs
        compressing = Tokens(
            sum(cycle.model_calls for cycle in state.cycles),
            sum(cycle.input_tokens for cycle in state.cycles),
            sum(cycle.output_tokens for cycle in state.cycles),
        )
        size: int | None = state.state_tokens
        # Without a call, a target failed for what it cannot hold, whatever a model would reply.
        certain = state.status in TOO_LARGE or (arm.budget is not None and not compressing.calls)
        if state.status != "ok" and (not calls_model or certain):
            costs.failing[f"{state.status}: {state.failure}"] += epochs
            size = None
        elif state.status != "ok":
            # A real model's reply is unknown, and some strategies need their vendor.
            costs.basis = "assumed"
            costs.unrehearsed = costs.unrehearsed or f"{state.status}: {state.failure}"
            compressing = await _assumed(group[0].compression, assumptions)
            size = min(assumptions.state_tokens, state.original_tokens)
        costs.add("compressor", compressing.times(epochs))
        if size is None:
            continue
        sizes.append(size)
        about = _AboutState(group, state, size, settings, assumptions)
        costs.add("answerer", about.answering().times(epochs))
        costs.add("refetch", about.refetching().times(epochs))
        costs.add("grader", about.grading().times(epochs))
        # Epochs of a strategy without a model share one state, which is read once.
        costs.add("reader", about.reading().times(epochs if calls_model else 1))
    costs.state_tokens = sum(sizes) / len(sizes) if sizes else 0.0
    return costs


async def _assumed(plan: CompressionPlan, assumptions: Assumptions) -> Tokens:
    """Return the cost of a compression that cannot be rehearsed: one call for each cut."""
    sizes = [token_counter().message(message) for message in await plan.history()]
    fed, previous = 0, 0
    for position, cut in enumerate(plan.cuts):
        kept = min(assumptions.state_tokens, fed) if position else 0
        fed += kept + sum(sizes[previous:cut])
        previous = cut
    return Tokens(len(plan.cuts), fed, assumptions.summary_tokens * len(plan.cuts))


@dataclass(frozen=True)
class _AboutState:
    """The questions about one state in one epoch."""

    plans: Sequence[ProbePlan]
    state: State
    size: int
    """Tokens of the state, which may be assumed."""
    settings: SweepSettings
    assumptions: Assumptions

    def answering(self) -> Tokens:
        prefix = self.size + token_counter().count(question_preamble())
        questions = [prefix + self._question(plan) for plan in self.plans]
        answers = len(questions) * self.assumptions.answer_tokens
        tokens = Tokens(len(questions), sum(questions), answers).times(self.settings.answers)
        return tokens.sharing(prefix, self.assumptions.cached_prefix_tokens)

    def refetching(self) -> Tokens:
        """Return the cost of the second answers, if there are any."""
        if (limits := self.settings.fetch_limits) is None:
            return Tokens()
        given = self.assumptions
        calls = min(given.refetch_calls, limits.calls)
        fetched = min(calls * given.refetch_tokens_per_call, limits.tokens)
        prefix = self.size + token_counter().count(instructions(limits))
        tokens = Tokens()
        for plan in self.plans:
            asked = prefix + self._question(plan)
            # Each request sends again what the calls before it returned, and their replies.
            again = fetched * (calls + 1) / 2 + (calls + 1) * calls * given.refetch_reply_tokens / 2
            replies = calls * given.refetch_reply_tokens + given.answer_tokens
            tokens += Tokens(calls + 1, (calls + 1) * asked + again, replies)
        return tokens.times(self.settings.answers).sharing(prefix, given.cached_prefix_tokens)

    def grading(self) -> Tokens:
        """Return the cost of grading first and second answers."""
        given, shown = self.assumptions, self._shown()
        shown = 0 if self.settings.grader_context == "none" else shown
        counter, tokens, prefix = token_counter(), Tokens(), 0
        for plan in self.plans:
            rubric = load_rubric(plan.language)
            request = grading_request(
                rubric=rubric,
                criteria=rubric.criteria_for(plan.probe, self.settings.criteria),
                probe=plan.probe,
                answer="",
                state=StateRecord(state_id="", status="ok"),
                context=[],
                grader_context="none",
            )
            system, user = request.messages
            question = user.content[-1] if isinstance(user.content, list) else user.content
            text = question.text if isinstance(question, ContentText) else str(question)
            begins = counter.message(system) + shown
            prefix = prefix or begins
            sent = begins + counter.count(text) + MESSAGE_OVERHEAD + given.answer_tokens
            reply = len(request.criteria) * given.grader_tokens_per_criterion
            reply += len(request.facts) * given.grader_tokens_per_fact
            tokens += Tokens(1, sent, reply)
        tokens = tokens.times(self.settings.answers * (2 if self.settings.fetch_limits else 1))
        return tokens.sharing(prefix, given.cached_prefix_tokens)

    def reading(self) -> Tokens:
        """Return the cost of reading the state for facts."""
        if self.settings.state_facts == "match" or not self.state.readable:
            return Tokens()
        asked = self.plans[0].asked
        requests = reading_requests([], asked, self.plans[0].language)
        shown, counter = self._shown(), token_counter()
        sent = sum(shown + sum(map(counter.message, request)) for request in requests)
        facts = sum(len(probe.facts) for probe in asked)
        return Tokens(len(requests), sent, facts * self.assumptions.reader_tokens_per_fact)

    def _question(self, plan: ProbePlan) -> int:
        return token_counter().count(plan.probe.question) + MESSAGE_OVERHEAD

    def _shown(self) -> int:
        """Return the tokens of the state in a grader's request."""
        if not self.state.readable:
            return 0
        if self.state.status != "ok":
            return self.size
        shown = {"compacted_context": render_messages(self.state.messages)}
        return token_counter().count(one_line_json(shown))


_PRICES: TypeAdapter[dict[str, ModelCost]] = TypeAdapter(dict[str, ModelCost])


def read_prices(file: Path | None) -> dict[str, ModelCost]:
    """Return the prices in a file by model; empty without a file."""
    if file is None:
        return {}
    try:
        prices = _PRICES.validate_python(read_yaml(file))
    except ValidationError as error:
        raise DataError(describe_validation_error(file, error)) from error
    for name, cost in prices.items():
        if any(not 0 <= price < 1e6 for price in cost.model_dump().values()):
            raise DataError(f"{file}: {name}: a price is below 0 or not a price")
    return prices


def price_of(model: str, prices: Mapping[str, ModelCost]) -> ModelCost | None:
    """Return a model's prices in dollars per million tokens; None if unknown."""
    if model in prices:
        return prices[model]
    if model.startswith("embedded/"):
        return ModelCost(input=0, output=0, input_cache_write=0, input_cache_read=0)
    info = _known(model)
    return info.cost if info else None


def register_prices(prices: Mapping[str, ModelCost]) -> None:
    """Register the prices with Inspect, so that logs hold the cost of each call.

    Its own ``model_cost_config`` refuses models that it does not know.
    """
    for model, cost in prices.items():
        info = _known(model) or ModelInfo()
        set_model_info(model, info.model_copy(update={"cost": cost}))


def _known(model: str) -> ModelInfo | None:
    try:
        return get_model_info(model)
    except Exception:  # a provider's package may be missing, which does not matter here
        return None
