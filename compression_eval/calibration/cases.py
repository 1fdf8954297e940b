"""One graded answer after it was graded: what metrics and tables are computed from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspect_ai.scorer import SampleScore
from pydantic import BaseModel, Field

from compression_eval.calibration.models import Kind
from compression_eval.calibration.variants import ORIGINAL, Variant
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import dimension_scores, overall, structure
from compression_eval.record import StateRecord

OVERALL = "overall"

KEYS: tuple[str, ...] = (OVERALL, *structure().dimensions)
"""What is compared with the reference: the overall score and each dimension."""


class Reference(BaseModel):
    """What a sample's metadata says about its answer."""

    item: str
    """Id of the answer, with its fixture: the same for all its variants."""
    fixture: str
    kind: Kind
    variant: Variant
    language: Language
    scores: dict[str, float]
    """The careful reader's, by criterion id."""
    why: str


class GraderScores(BaseModel):
    """What one grader gave, as a score's metadata holds it."""

    model: str
    parameters: dict[str, object] = Field(default_factory=dict)
    attempts: int = 0
    failure: str = ""
    scores: dict[str, float] = Field(default_factory=dict)
    """By criterion id; criteria without a value are left out."""


@dataclass(frozen=True)
class Case:
    """One answer, what it is worth and what a grader gave it."""

    reference: Reference
    scores: Mapping[str, float]
    """The grader's, by criterion id; empty if it failed."""

    @property
    def original(self) -> bool:
        """Whether the answer is as it stands in the set."""
        return self.reference.variant == ORIGINAL


def by_key(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the dimensions and the overall score of scores by criterion; NaN without a value."""
    dimensions = dimension_scores(scores)
    result = {OVERALL: overall(dimensions)}
    return result | {str(name): value for name, value in dimensions.items()}


def compared(case: Case) -> tuple[dict[str, float], dict[str, float]]:
    """Return a grader's and the reference's scores by key, from the criteria that both have.

    A grader that leaves criteria out would else be compared with means of other things.
    """
    both = [name for name in case.reference.scores if name in case.scores]
    return (
        by_key({name: case.scores[name] for name in both}),
        by_key({name: case.reference.scores[name] for name in both}),
    )


def moved(cases: Sequence[Case]) -> dict[Variant, list[dict[str, float]]]:
    """Return how far each variant of an answer lies from the original, by variant and key.

    Returns:
        For each variant one entry per answer that was graded in both forms: the difference,
        variant minus original, in points; NaN where one has no value.
    """
    originals = {case.reference.item: case for case in cases if case.original and case.scores}
    result: dict[Variant, list[dict[str, float]]] = {}
    for case in cases:
        base = originals.get(case.reference.item)
        if case.original or base is None or not case.scores:
            continue
        both = [name for name in case.scores if name in base.scores]
        before = by_key({name: base.scores[name] for name in both})
        after = by_key({name: case.scores[name] for name in both})
        shifts = {key: after[key] - before[key] for key in KEYS}
        result.setdefault(case.reference.variant, []).append(shifts)
    return result


def present(values: Sequence[float]) -> list[float]:
    """Return the values that are no NaN."""
    return [value for value in values if not math.isnan(value)]


def case_of(item: SampleScore) -> Case | None:
    """Return what a metric is given as a case; None if it is none."""
    scores = (item.score.metadata or {}).get("scores")
    if not isinstance(scores, dict) or not item.sample_metadata:
        return None
    return Case(
        Reference.model_validate(item.sample_metadata),
        {str(name): float(value) for name, value in scores.items()},
    )


def shown_state(fixture: str) -> StateRecord:
    """Return the record of a context that was written instead of compressed."""
    return StateRecord(
        state_id=f"calibration-{fixture}", status="ok", message_count=1, regions=["summary"]
    )
