"""Anchors: answers of known worth that a run has graded beside its own.

Graders change: a vendor updates a model, a role gets other settings. Two runs that graded the same
anchors can tell such a change from one of the arm. The answers are those of the calibration sets.
"""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, get_args

from inspect_ai.model import ChatMessage, ChatMessageUser
from inspect_ai.scorer import Metric, SampleScore, Score, Value, metric
from pydantic import BaseModel, Field

from compression_eval.errors import DataError
from compression_eval.fixtures.banks import Probe, ProbeType
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Language
from compression_eval.grading.graded_answers import (
    GradedAnswer,
    ScoreValue,
    by_key,
    load_sets,
    shown_state,
)
from compression_eval.grading.panel import grade_with_panel, graders_for
from compression_eval.grading.request import GraderContext, GradingRequest, grading_request
from compression_eval.grading.rubric import (
    KNOWLEDGE,
    MAX_SCORE,
    dimension_scores,
    knowledge,
    load_rubric,
)

ANCHOR = "anchor"
"""Key of a score's metadata under which the anchor stands that was graded beside the answer."""

POSITION = "position"
"""Key of a sample's metadata in a run with anchors: its place in the dataset, from 0, which decides
on its anchor."""


@dataclass(frozen=True)
class Anchor:
    """An answer of known worth, with what a grader is shown of it."""

    fixture: str
    answer: GradedAnswer
    probe: Probe
    context: str
    """The summary that the grader is shown as what the assistant had."""
    language: Language

    @property
    def id(self) -> str:
        """The answer's id with its fixture."""
        return f"{self.fixture}/{self.answer.id}"

    @property
    def mark(self) -> float:
        """What the answer is worth as knowledge, 0 to 5."""
        return _by_key(self.answer.scores)[KNOWLEDGE]

    @property
    def digest(self) -> str:
        """Digest of all that is graded and of its marks: anchors are the same where it is."""
        answer = self.answer.model_copy(update={"second_scores": None})
        return digest("".join([digest(answer), digest(self.probe), digest(self.context)]))

    def request(
        self, grader_context: GraderContext = "state", language: Language | None = None
    ) -> GradingRequest:
        """Return what a grader is asked, which is like what it is asked about any answer.

        Args:
            grader_context: ``state`` shows the grader the summary, ``none`` does not.
            language: Language of the rubric; by default that of the anchor.
        """
        rubric = load_rubric(language or self.language)
        context: list[ChatMessage] = [ChatMessageUser(content=self.context)]
        return grading_request(
            rubric=rubric,
            criteria=[each for each in rubric.criteria if each.id in self.answer.scores],
            probe=self.probe,
            answer=self.answer.answer,
            state=shown_state(self.fixture),
            context=context,
            grader_context=grader_context,
        )


class AnchorGrading(BaseModel):
    """The grades of an anchor, as a score's metadata holds them."""

    id: str
    digest: str
    """The anchor's digest; see `Anchor.digest`."""
    expected: dict[str, ScoreValue]
    """What it is worth, 0 to 5, by criterion id."""
    graded: dict[str, ScoreValue] = Field(default_factory=dict)
    """The graders' median by criterion id, criteria without a value left out."""
    difference: dict[str, Annotated[float, Field(ge=-5, le=5)]] = Field(default_factory=dict)
    """Graded minus expected, as ``knowledge``, ``overall`` and by dimension, over the criteria
    that were graded."""
    graders: list[str] = Field(default_factory=list)
    attempts: int = 0
    """Calls that it took."""
    failure: str = ""
    """Why there are no grades; empty if there are."""


def chosen_anchors(number: int) -> list[Anchor]:
    """Return a fixed selection of the shipped graded answers.

    They alternate between probe types, and within each go from the middle of the scale outwards,
    where a grader can change both ways. A smaller selection is the beginning of a larger one.

    Args:
        number: How many; 0 or more.

    Raises:
        DataError: The number is negative, no integer, or more than there are.
    """
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise DataError(f"anchors: {number!r} is not a whole number of at least 0")
    if not number:
        return []
    left = list(_every_anchor())
    if number > len(left):
        raise DataError(f"anchors: {number} is more than the {len(left)} graded answers there are")
    types = get_args(ProbeType)
    used: Counter[str] = Counter()
    chosen: list[Anchor] = []
    for position in range(number):
        wanted = types[position % len(types)]
        target = MAX_SCORE * _halved(position // len(types))
        fitting = [each for each in left if each.probe.type == wanted] or left
        best = min(
            fitting,
            key=lambda each: (
                round(abs(each.mark - target)),
                used[each.fixture],
                abs(each.mark - target),
                each.id,
            ),
        )
        left.remove(best)
        used[best.fixture] += 1
        chosen.append(best)
    return chosen


@functools.cache
def _every_anchor() -> tuple[Anchor, ...]:
    return tuple(
        Anchor(
            fixture=group.answers.fixture,
            answer=answer,
            probe=group.probes[answer.probe],
            context=group.answers.context,
            language=group.language,
        )
        for group in load_sets()
        for answer in group.answers.answers
        # What models answered is marked less surely, and the older choice shall stay.
        if answer.kind != "recorded"
    )


def _halved(position: int) -> float:
    """Return 1/2, 1/4, 3/4, 1/8, 5/8 and so on: van der Corput's sequence."""
    value, share, rest = 0.0, 0.5, position + 1
    while rest:
        value += share * (rest % 2)
        share, rest = share / 2, rest // 2
    return value


async def grade_anchor(
    anchor: Anchor, grader_context: GraderContext, language: Language | None
) -> AnchorGrading:
    """Have the models of the role ``grader`` judge an anchor as they judge any answer.

    The mechanical rules are not applied: they would hide changes of the grader.

    Args:
        anchor: What to grade.
        grader_context: As of the run.
        language: Language of the rubric; None for that of the anchor.
    """
    request = anchor.request(grader_context, language)
    panel = await grade_with_panel(request, graders_for(answer_model=""))
    medians = {name: panel.score(name) for name in request.ids} if panel.succeeded else {}
    graded = {name: score for name, score in medians.items() if not math.isnan(score)}
    failure = panel.failure or ("" if graded else "no criterion has a value")
    grades = _by_key(graded)
    right = _by_key({name: anchor.answer.scores[name] for name in graded})
    return AnchorGrading(
        id=anchor.id,
        digest=anchor.digest,
        expected=anchor.answer.scores,
        graded=graded,
        difference={
            key: round(grades[key] - right[key], 3) for key in grades if not math.isnan(grades[key])
        },
        graders=[each.grader for each in panel.gradings],
        attempts=panel.attempts,
        failure=failure,
    )


def _by_key(scores: Mapping[str, float]) -> dict[str, float]:
    return {KNOWLEDGE: knowledge(dimension_scores(scores)), **by_key(scores)}


def anchor_of(score: Score) -> AnchorGrading | None:
    """Return the anchor that was graded beside an answer; None if there was none."""
    grading = (score.metadata or {}).get(ANCHOR)
    return AnchorGrading.model_validate(grading) if isinstance(grading, dict) else None


def off_by(gradings: Iterable[AnchorGrading], key: str = KNOWLEDGE) -> dict[str, float]:
    """Return how far graders were off each anchor's mark, by the anchor's digest.

    Args:
        gradings: Of one run or several; an anchor that was graded more than once has the mean.
        key: ``knowledge``, ``overall`` or a dimension.

    Returns:
        Graded minus expected in points; anchors without a value are left out.
    """
    differences: dict[str, list[float]] = {}
    for each in gradings:
        if key in each.difference:
            differences.setdefault(each.digest, []).append(each.difference[key])
    return {name: statistics.fmean(values) for name, values in differences.items()}


@metric(name="anchors")
def anchor_difference() -> Metric:
    """Return how far the graders are off the known marks of a run's anchors.

    That is the mean of graded minus expected knowledge, in points, with its standard error over
    the anchors, and how many gradings succeeded and failed. Without anchors there is nothing.
    """

    def compute(scores: list[SampleScore]) -> Value:
        gradings = [each for item in scores if (each := anchor_of(item.score)) is not None]
        if not gradings:
            return {}
        values = list(off_by(gradings).values())
        failed = sum(bool(each.failure) for each in gradings)
        return {
            "off_by": statistics.fmean(values) if values else math.nan,
            "stderr": (
                statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            ),
            "graded": len(gradings) - failed,
            "failed": failed,
        }

    return compute
