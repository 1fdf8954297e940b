"""Calls and tokens of one arm, from its states and questions.

Each arm compresses each fixture and cut once: mechanical strategies as in the run, summarising ones
with the embedded model as their compressor. Requests are then built as a run builds them, and
counted. What cannot be counted before a run is assumed (``assumptions.yaml``).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from inspect_ai.model import ContentText, Model
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.compressors.names import calls_model
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.fetching.answering import instructions
from compression_eval.fixtures.tokens import MESSAGE_OVERHEAD
from compression_eval.grading.request import grading_request
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.state_reader import reading_requests
from compression_eval.plans import ProbePlan, question_preamble
from compression_eval.record import StateRecord, render_messages
from compression_eval.sweeping.arms import TOO_LARGE, Arm
from compression_eval.sweeping.settings import SweepSettings
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

    def sharing(self, prefix: float) -> "Tokens":
        """Return the total where these calls about one state share a prefix, if it is long."""
        kept = prefix >= assumed().cached_prefix_tokens and self.calls > 1
        return Tokens(self.calls, self.input, self.output, prefix * (self.calls - 1) * kept)


@dataclass
class ArmCosts:
    """The cost of one arm with one model and one grader, over all compressions."""

    basis: Basis
    roles: dict[CostRole, Tokens] = field(default_factory=dict)
    states: int = 0
    history_tokens: float = 0.0
    """Mean over fixtures and cuts; the same the following."""
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
    arm: Arm, plans: Sequence[ProbePlan], settings: SweepSettings, model: Model
) -> ArmCosts:
    """Return the cost of an arm.

    Args:
        arm: What compresses.
        plans: All its questions.
        settings: Of the sweep.
        model: Takes the place of the compressing one.
    """
    by_model, epochs = calls_model(arm.spec.name), 1 if arm.run_once else settings.epochs
    costs = ArmCosts("rehearsed" if by_model else "computed")
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
        size, why = state.state_tokens, f"{state.status}: {state.failure}"
        # Without a call, a target failed for what it cannot hold, whatever a model would reply.
        certain = state.status in TOO_LARGE or (arm.budget is not None and not compressing.calls)
        fails = state.status != "ok" and (not by_model or certain)
        if state.status != "ok" and not fails:
            # A real model's reply is unknown, and some strategies need their vendor.
            costs.basis, costs.unrehearsed = "assumed", costs.unrehearsed or why
            compressing = await _assumed_compressing(group[0].compression)
            size = min(assumed().state_tokens, state.original_tokens)
        costs.add("compressor", compressing.times(epochs))
        if fails:
            costs.failing[why] += epochs
            continue
        sizes.append(size)
        costs.add("answerer", _answering(group, size, settings).times(epochs))
        costs.add("refetch", _refetching(group, size, settings).times(epochs))
        shown = _shown(state, size)
        costs.add("grader", _grading(group, shown, settings).times(epochs))
        if settings.state_facts != "match" and state.readable:
            # Epochs of a strategy without a model share one state, which is read once.
            costs.add("reader", _reading(group[0], shown).times(epochs if by_model else 1))
    costs.state_tokens = sum(sizes) / len(sizes) if sizes else 0.0
    return costs


async def _assumed_compressing(plan: CompressionPlan) -> Tokens:
    """Return the cost of a compression that cannot be rehearsed: one call for each cut."""
    sizes = [token_counter().message(message) for message in await plan.history()]
    fed, previous = 0, 0
    for position, cut in enumerate(plan.cuts):
        kept = min(assumed().state_tokens, fed) if position else 0
        fed += kept + sum(sizes[previous:cut])
        previous = cut
    return Tokens(len(plan.cuts), fed, assumed().summary_tokens * len(plan.cuts))


# ----- the questions about one state in one epoch


def _asking(plan: ProbePlan) -> int:
    return token_counter().count(plan.probe.question) + MESSAGE_OVERHEAD


def _shown(state: State, size: int) -> int:
    """Return the tokens of a state in a grader's request; ``size`` is that of an assumed one."""
    if not state.readable:
        return 0
    if state.status != "ok":
        return size
    shown = {"compacted_context": render_messages(state.messages)}
    return token_counter().count(one_line_json(shown))


def _answering(plans: Sequence[ProbePlan], size: int, settings: SweepSettings) -> Tokens:
    prefix = size + token_counter().count(question_preamble())
    sent = sum(prefix + _asking(plan) for plan in plans)
    tokens = Tokens(len(plans), sent, len(plans) * assumed().answer_tokens)
    return tokens.times(settings.answers).sharing(prefix)


def _refetching(plans: Sequence[ProbePlan], size: int, settings: SweepSettings) -> Tokens:
    """Return the cost of the second answers, if there are any."""
    if (limits := settings.fetch_limits) is None:
        return Tokens()
    given = assumed()
    calls = min(given.refetch_calls, limits.calls)
    fetched = min(calls * given.refetch_tokens_per_call, limits.tokens)
    # Each request sends again what the calls before it returned, and their replies.
    again = fetched * (calls + 1) / 2 + (calls + 1) * calls * given.refetch_reply_tokens / 2
    replies = calls * given.refetch_reply_tokens + given.answer_tokens
    prefix = size + token_counter().count(instructions(limits))
    tokens = Tokens()
    for plan in plans:
        tokens += Tokens(calls + 1, (calls + 1) * (prefix + _asking(plan)) + again, replies)
    return tokens.times(settings.answers).sharing(prefix)


def _grading(plans: Sequence[ProbePlan], shown: int, settings: SweepSettings) -> Tokens:
    """Return the cost of grading first and second answers."""
    given, counter = assumed(), token_counter()
    tokens, prefix = Tokens(), 0
    for plan in plans:
        rubric = load_rubric(plan.language)
        request = grading_request(
            rubric=rubric,
            criteria=rubric.criteria_for(plan.probe, settings.criteria),
            probe=plan.probe,
            answer="",
            state=StateRecord(state_id="", status="ok"),
            context=[],
            grader_context="none",
        )
        system, user = request.messages
        question = user.content[-1] if isinstance(user.content, list) else user.content
        text = question.text if isinstance(question, ContentText) else str(question)
        begins = counter.message(system) + (0 if settings.grader_context == "none" else shown)
        prefix = prefix or begins
        sent = begins + counter.count(text) + MESSAGE_OVERHEAD + given.answer_tokens
        reply = len(request.criteria) * given.grader_tokens_per_criterion
        reply += len(request.facts) * given.grader_tokens_per_fact
        tokens += Tokens(1, sent, reply)
    return tokens.times(settings.answers * (2 if settings.fetch_limits else 1)).sharing(prefix)


def _reading(plan: ProbePlan, shown: int) -> Tokens:
    """Return the cost of reading the state for facts."""
    requests = reading_requests([], plan.asked, plan.language)
    sent = sum(shown + sum(map(token_counter().message, request)) for request in requests)
    facts = sum(len(probe.facts) for probe in plan.asked)
    return Tokens(len(requests), sent, facts * assumed().reader_tokens_per_fact)
