"""Calls and tokens of one arm, from its states and questions; and the prices of models.

Inspect has a field for prices (`ModelInfo.cost`) but ships none, so they come from a file or from
`set_model_cost`. Unknown prices are reported as unknown.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Literal

from inspect_ai.model import (
    ChatMessage,
    ContentText,
    Model,
    ModelCost,
    ModelInfo,
    get_model_info,
    set_model_info,
)
from pydantic import TypeAdapter, ValidationError

from compression_eval.compressors.running import CompressionPlan
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.errors import DataError, describe_validation_error
from compression_eval.fetching.answering import FetchLimits, instructions
from compression_eval.fixtures.tokens import MESSAGE_OVERHEAD
from compression_eval.grading.request import GradingRequest, grading_request
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.state_reader import reading_requests
from compression_eval.plans import ProbePlan, question_preamble
from compression_eval.record import StateRecord, render_messages
from compression_eval.sweeping.arms import Arm
from compression_eval.sweeping.rehearsal import TOO_LARGE, rehearse
from compression_eval.sweeping.settings import SweepSettings, read_yaml
from compression_eval.sweeping.spreads import Assumptions
from compression_eval.text.printable import one_line_json

Basis = Literal["computed", "rehearsed", "assumed"]


@dataclass
class Tokens:
    """The total of some calls."""

    calls: int = 0
    input: float = 0.0
    """All input tokens."""
    output: float = 0.0
    first: float = 0.0
    """Input tokens of prefixes sent for the first time, which later calls read from the cache."""
    repeated: float = 0.0
    """Input tokens of prefixes that an earlier call about the same state has sent."""

    def __add__(self, other: "Tokens") -> "Tokens":
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tokens(*(one + another for one, another in pairs))

    def times(self, number: int) -> "Tokens":
        """Return the total of so many repetitions."""
        return Tokens(*(value * number for value in astuple(self)))

    def sharing(self, prefix: float, least: int) -> "Tokens":
        """Return the total with caching of the prefix that these calls about one state share."""
        if prefix < least or self.calls < 2:
            return self
        return Tokens(self.calls, self.input, self.output, prefix, prefix * (self.calls - 1))


@dataclass
class ArmCosts:
    """The cost of one arm with one model and one grader, over all compressions."""

    basis: Basis
    compressing: Tokens = field(default_factory=Tokens)
    answering: Tokens = field(default_factory=Tokens)
    refetching: Tokens = field(default_factory=Tokens)
    """Second answers, as many calls and tokens as are assumed."""
    refetching_at_most: Tokens = field(default_factory=Tokens)
    """Second answers that use up what may be fetched."""
    grading: Tokens = field(default_factory=Tokens)
    """Of first and second answers."""
    reading: Tokens = field(default_factory=Tokens)
    """Reading the states for facts by the first grader, if it is a language model."""
    states: int = 0
    history_tokens: float = 0.0
    """Mean over fixtures and cuts; likewise the following."""
    state_tokens: float = 0.0
    failing: Counter[str] = field(default_factory=Counter)
    """Compressions known to fail, by reason; they are neither answered nor graded."""
    unrehearsed: str = ""
    """Why states are assumed; empty if none are."""


async def arm_costs(
    arm: Arm,
    plans: Sequence[ProbePlan],
    settings: SweepSettings,
    assumptions: Assumptions,
    model: Model,
) -> ArmCosts:
    """Return the cost of an arm."""
    calls_model = arm.spec.compressor.calls_model
    costs = ArmCosts("rehearsed" if calls_model else "computed")
    places: dict[int, list[ProbePlan]] = {}
    for plan in plans:
        places.setdefault(id(plan.compression), []).append(plan)
    sizes: list[int] = []
    for group in places.values():
        state = await rehearse(group[0].compression, model)
        costs.history_tokens += state.original_tokens / len(places)
        costs.states += settings.epochs
        compressing = Tokens(
            sum(cycle.model_calls for cycle in state.cycles),
            sum(cycle.input_tokens for cycle in state.cycles),
            sum(cycle.output_tokens for cycle in state.cycles),
        )
        size: int | None = state.state_tokens
        # Without a call, a target failed for what it cannot hold, whatever a model would reply.
        certain = state.status in TOO_LARGE or (arm.budget is not None and not compressing.calls)
        if state.status != "ok" and (not calls_model or certain):
            costs.failing[f"{state.status}: {state.failure}"] += settings.epochs
            size = None
        elif state.status != "ok":
            # A real model's reply is unknown, and some strategies need their vendor.
            costs.basis = "assumed"
            costs.unrehearsed = costs.unrehearsed or f"{state.status}: {state.failure}"
            compressing = await _assumed(group[0].compression, assumptions)
            size = min(assumptions.state_tokens, state.original_tokens)
        costs.compressing += compressing.times(settings.epochs)
        if size is None:
            continue
        sizes.append(size)
        about = _AboutState(group, state, size, settings, assumptions)
        costs.answering += about.answering().times(settings.epochs)
        if limits := settings.fetch_limits:
            calls = min(assumptions.refetch_calls, limits.calls)
            fetched = min(calls * assumptions.refetch_tokens_per_call, limits.tokens)
            # Each later request sends again what the calls before it returned.
            likely = about.refetching(limits, calls, fetched * (calls + 1) / 2)
            most = about.refetching(limits, limits.calls, limits.tokens * limits.calls)
            costs.refetching += likely.times(settings.epochs)
            costs.refetching_at_most += most.times(settings.epochs)
        costs.grading += about.grading().times(settings.epochs)
        # Epochs of a strategy without a model share one state, which is read once.
        costs.reading += about.reading().times(settings.epochs if calls_model else 1)
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


def _reply_tokens(request: GradingRequest, assumptions: Assumptions) -> float:
    return (
        len(request.criteria) * assumptions.grader_tokens_per_criterion
        + len(request.facts) * assumptions.grader_tokens_per_fact
    )


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
        counter, tokens = token_counter(), Tokens()
        prefix = self.size + counter.count(question_preamble())
        for plan in self.plans:
            asked = prefix + counter.count(plan.probe.question) + MESSAGE_OVERHEAD
            tokens += Tokens(1, asked, self.assumptions.answer_tokens)
        tokens = tokens.times(self.settings.answers)
        return tokens.sharing(prefix, self.assumptions.cached_prefix_tokens)

    def refetching(self, limits: FetchLimits, calls: float, sent_again: float) -> Tokens:
        """Return the cost of the second answers.

        Args:
            limits: What the model is told of.
            calls: Tool calls of each answer, one in a request.
            sent_again: Tokens of what they return, summed over the requests that send them.
        """
        counter, tokens = token_counter(), Tokens()
        prefix = self.size + counter.count(instructions(limits))
        reply = self.assumptions.refetch_reply_tokens
        for plan in self.plans:
            asked = prefix + counter.count(plan.probe.question) + MESSAGE_OVERHEAD
            sent = (calls + 1) * (asked + calls * reply / 2) + sent_again
            tokens += Tokens(0, sent, calls * reply + self.assumptions.answer_tokens)
        tokens.calls = round((calls + 1) * len(self.plans))
        tokens = tokens.times(self.settings.answers)
        return tokens.sharing(prefix, self.assumptions.cached_prefix_tokens)

    def grading(self) -> Tokens:
        shown = 0 if self.settings.grader_context == "none" else self._shown()
        counter, tokens, prefix = token_counter(), Tokens(), 0
        for plan in self.plans:
            request = self._request(plan)
            system, user = request.messages
            question = user.content[-1] if isinstance(user.content, list) else user.content
            text = question.text if isinstance(question, ContentText) else str(question)
            begins = counter.message(system) + shown
            prefix = prefix or begins
            ends = counter.count(text) + MESSAGE_OVERHEAD
            sent = begins + ends + self.assumptions.answer_tokens
            tokens += Tokens(1, sent, _reply_tokens(request, self.assumptions))
        tokens = tokens.times(self.settings.answers * (2 if self.settings.fetch_limits else 1))
        return tokens.sharing(prefix, self.assumptions.cached_prefix_tokens)

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

    def _shown(self) -> int:
        """Return the tokens of the state in a grader's request."""
        if not self.state.readable:
            return 0
        return self.size if self.state.status != "ok" else _context_tokens(self.state.messages)

    def _request(self, plan: ProbePlan) -> GradingRequest:
        """Return the request to a grader, without the state and the answer."""
        rubric = load_rubric(plan.language)
        return grading_request(
            rubric=rubric,
            criteria=rubric.criteria_for(plan.probe, self.settings.criteria),
            probe=plan.probe,
            answer="",
            state=StateRecord(state_id="", status="ok"),
            context=[],
            grader_context="none",
        )


def _context_tokens(messages: Sequence[ChatMessage]) -> int:
    return token_counter().count(one_line_json({"compacted_context": render_messages(messages)}))


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
