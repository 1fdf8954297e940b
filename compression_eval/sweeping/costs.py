"""Calls and tokens of one arm, from its states and its questions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from inspect_ai.model import ChatMessage, ContentText, Model

from compression_eval.calibration.anchors import chosen_anchors
from compression_eval.compressors.running import CompressionPlan
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.tokens import MESSAGE_OVERHEAD
from compression_eval.grading.request import grading_request
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.state_reader import reading_requests
from compression_eval.record import StateRecord
from compression_eval.solver import ProbePlan, question_preamble
from compression_eval.sweeping.arms import Arm
from compression_eval.sweeping.assumptions import Assumptions
from compression_eval.sweeping.rehearsal import TOO_LARGE, rehearse
from compression_eval.sweeping.settings import SweepSettings

Basis = Literal["computed", "rehearsed", "assumed"]


@dataclass
class Tokens:
    """What some calls add up to."""

    calls: int = 0
    input: float = 0.0
    """All that is sent."""
    output: float = 0.0
    first: float = 0.0
    """Of the input, prefixes that are sent for the first time and read again by later calls."""
    repeated: float = 0.0
    """Of the input, prefixes that an earlier call about the same state has sent."""

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            self.calls + other.calls,
            self.input + other.input,
            self.output + other.output,
            self.first + other.first,
            self.repeated + other.repeated,
        )

    def times(self, number: int) -> "Tokens":
        """Return the same so many times."""
        return Tokens(
            self.calls * number,
            self.input * number,
            self.output * number,
            self.first * number,
            self.repeated * number,
        )


@dataclass
class ArmCosts:
    """What one arm costs with one model and one grader, all compressions counted."""

    basis: Basis
    compressing: Tokens = field(default_factory=Tokens)
    answering: Tokens = field(default_factory=Tokens)
    grading: Tokens = field(default_factory=Tokens)
    reading: Tokens = field(default_factory=Tokens)
    """Asking the first grader, if it is a language model, which facts the states hold."""
    states: int = 0
    history_tokens: float = 0.0
    """Mean over fixtures and cuts; likewise the following."""
    state_tokens: float = 0.0
    failing: Counter[str] = field(default_factory=Counter)
    """Compressions that are known to fail, by reason; they are neither answered nor graded."""
    unrehearsed: str = ""
    """Why states are assumed; empty if none is."""


async def arm_costs(
    arm: Arm,
    plans: Sequence[ProbePlan],
    settings: SweepSettings,
    assumptions: Assumptions,
    model: Model,
) -> ArmCosts:
    """Return what an arm costs.

    Args:
        arm: The arm.
        plans: One per sample.
        settings: Epochs, answers and what the grader reads.
        assumptions: Lengths of replies.
        model: Stands in for the model that compresses.
    """
    costs = ArmCosts("rehearsed" if arm.spec.compressor.calls_model else "computed")
    places: dict[int, list[ProbePlan]] = {}
    for plan in plans:
        places.setdefault(id(plan.compression), []).append(plan)
    standing: list[int] = []
    for group in places.values():
        compression = group[0].compression
        state = await rehearse(compression, model)
        costs.history_tokens += state.original_tokens / len(places)
        costs.states += settings.epochs
        compressing, size = await _compressed(arm, compression, state, assumptions, costs)
        costs.compressing += compressing.times(settings.epochs)
        if size is None:
            costs.failing[f"{state.status}: {state.failure}"] += settings.epochs
            continue
        standing.append(size)
        answering, grading = _asked(group, state, size, settings, assumptions)
        costs.answering += answering.times(settings.epochs)
        costs.grading += grading.times(settings.epochs)
        # Epochs of a strategy without a model hold the same state, and it is read once.
        states = settings.epochs if arm.spec.compressor.calls_model else 1
        costs.reading += _reading(group, state, size, settings, assumptions).times(states)
    for anchor in chosen_anchors(settings.anchors):
        request = anchor.request(settings.grader_context, settings.language)
        sent = sum(token_counter().message(message) for message in request.messages)
        reply = len(request.criteria) * assumptions.grader_tokens_per_criterion
        costs.grading += Tokens(1, sent, reply)
    costs.state_tokens = sum(standing) / len(standing) if standing else 0.0
    return costs


async def _compressed(
    arm: Arm, plan: CompressionPlan, state: State, assumptions: Assumptions, costs: ArmCosts
) -> tuple[Tokens, int | None]:
    """Return what compressing costs and the tokens of the state; None for one that fails."""
    spent = Tokens(
        sum(cycle.model_calls for cycle in state.cycles),
        sum(cycle.input_tokens for cycle in state.cycles),
        sum(cycle.output_tokens for cycle in state.cycles),
    )
    if state.status == "ok":
        return spent, state.state_tokens
    if not arm.spec.compressor.calls_model or state.status in TOO_LARGE:
        return spent, None
    # What a real model would have replied is not known, and some strategies need their vendor.
    costs.basis = "assumed"
    costs.unrehearsed = costs.unrehearsed or f"{state.status}: {state.failure}"
    counter = token_counter()
    history = await plan.history()
    sizes = [counter.message(message) for message in history]
    fed, previous = 0, 0
    for position, cut in enumerate(plan.cuts):
        kept = min(assumptions.state_tokens, fed) if position else 0
        fed += kept + sum(sizes[previous:cut])
        previous = cut
    size = min(assumptions.state_tokens, state.original_tokens)
    written = assumptions.summary_tokens * len(plan.cuts)
    return Tokens(len(plan.cuts), fed, written), size


def _asked(
    plans: Sequence[ProbePlan],
    state: State,
    size: int,
    settings: SweepSettings,
    assumptions: Assumptions,
) -> tuple[Tokens, Tokens]:
    """Return what answering from one state and grading that costs."""
    counter = token_counter()
    answering, grading = Tokens(), Tokens()
    prefix = size + counter.count(question_preamble())
    shown = _shown_to_grader(state, size, settings)
    for plan in plans:
        asked = prefix + counter.count(plan.probe.question) + MESSAGE_OVERHEAD
        answering += Tokens(1, asked, assumptions.answer_tokens)
        criteria, begins, ends = _grading_tokens(plan, settings)
        sent = begins + shown + ends + assumptions.answer_tokens
        reply = criteria * assumptions.grader_tokens_per_criterion
        grading += Tokens(1, sent, reply)
    answering = answering.times(settings.answers)
    grading = grading.times(settings.answers)
    least = assumptions.cached_prefix_tokens
    rubric = _grading_tokens(plans[0], settings)[1]
    return _sharing(answering, prefix, least), _sharing(grading, rubric + shown, least)


def _reading(
    plans: Sequence[ProbePlan],
    state: State,
    size: int,
    settings: SweepSettings,
    assumptions: Assumptions,
) -> Tokens:
    """Return what it costs to have one state read for facts; its beginning is that of a grading."""
    if settings.state_facts == "match" or not state.readable:
        return Tokens()
    asked = plans[0].asked
    requests = reading_requests([], asked, plans[0].language)
    counter = token_counter()
    shown = size if state.status != "ok" else _context_tokens(state.messages)
    sent = sum(shown + sum(map(counter.message, request)) for request in requests)
    facts = sum(len(probe.facts) for probe in asked)
    return Tokens(len(requests), sent, facts * assumptions.reader_tokens_per_fact)


def _sharing(tokens: Tokens, prefix: float, least: int) -> Tokens:
    """Say which part of the input is a prefix that the calls about one state share."""
    if prefix >= least and tokens.calls > 1:
        tokens.first, tokens.repeated = prefix, prefix * (tokens.calls - 1)
    return tokens


def _shown_to_grader(state: State, size: int, settings: SweepSettings) -> int:
    """Return the tokens of the state as a grader is shown it."""
    if settings.grader_context == "none" or not state.readable:
        return 0
    return size if state.status != "ok" else _context_tokens(state.messages)


def _context_tokens(messages: Sequence[ChatMessage]) -> int:
    from compression_eval.compressors.summarising import one_line_json
    from compression_eval.record import render_messages

    shown = one_line_json({"compacted_context": render_messages(messages)})
    return token_counter().count(shown)


def _grading_tokens(plan: ProbePlan, settings: SweepSettings) -> tuple[int, int, int]:
    """Return how many criteria are graded, and the tokens before and after the state."""
    rubric = load_rubric(plan.language)
    criteria = rubric.criteria_for(plan.probe, settings.criteria)
    request = grading_request(
        rubric=rubric,
        criteria=criteria,
        probe=plan.probe,
        answer="",
        state=StateRecord(state_id="", status="ok"),
        context=[],
        grader_context="none",
    )
    system, user = request.messages
    counter = token_counter()
    question = user.content[-1] if isinstance(user.content, list) else user.content
    text = question.text if isinstance(question, ContentText) else str(question)
    return len(criteria), counter.message(system), counter.count(text) + MESSAGE_OVERHEAD
