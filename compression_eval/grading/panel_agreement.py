"""How far the graders of a panel agree: on one answer, and over a run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from inspect_ai.scorer import (
    Metric,
    MetricProtocol,
    SampleScore,
    Score,
    Value,
    krippendorff_alpha,
    metric,
)

from compression_eval.grading.panel import PanelGrading
from compression_eval.grading.rubric import (
    FORM_DIMENSION,
    KNOWLEDGE,
    dimension_scores,
    overall,
    structure,
)

_FEWEST = 2


@dataclass(frozen=True)
class Disagreement:
    """How far a panel is apart on one answer, in points of the rubric."""

    overall: dict[int, float]
    """Overall score by the number of the grader, from 1; those that failed left out."""
    criterion: str
    """The criterion on which they are furthest apart."""
    largest: float
    """Highest minus lowest score there."""

    @property
    def range(self) -> float:
        """Highest minus lowest overall score; NaN if fewer than two have one."""
        values = [value for value in self.overall.values() if not math.isnan(value)]
        return max(values) - min(values) if len(values) >= _FEWEST else math.nan


def disagreement(panel: PanelGrading) -> Disagreement | None:
    """Return how far a panel is apart; None if fewer than two graders came to a result.

    The scores are the graders' own, before the mechanical rules, which would hide that they
    differ.
    """
    if len(panel.succeeded) < _FEWEST:
        return None
    every = {
        number: overall(
            dimension_scores(
                {
                    name: math.nan if result.score is None else result.score
                    for name, result in grading.results.items()
                }
            )
        )
        for number, grading in enumerate(panel.gradings, start=1)
        if not grading.failure
    }
    spreads = {name: panel.spread(name) for name in panel.succeeded[0].results}
    valued = {name: spread for name, spread in spreads.items() if not math.isnan(spread)}
    if not valued:
        return None
    worst = max(valued, key=lambda name: valued[name])
    return Disagreement(every, worst, valued[worst])


@metric
def panel_agreement(key: str) -> Metric:
    """Return Krippendorff's alpha (interval scale) of the graders of a panel.

    A unit is one criterion of one answer, a rating what one grader gave it. 1 is perfect
    agreement, 0 what chance gives. With several epochs it is over the first of each probe. With
    a single grader there is nothing.

    Args:
        key: A dimension, for its criteria only; ``knowledge``, for those of all dimensions that it
            is made of; else all criteria count.
    """
    compute = cast(MetricProtocol, krippendorff_alpha(level="interval"))
    known = structure().dimensions
    if key in known:
        counted = {key}
    else:
        counted = {name for name in known if key != KNOWLEDGE or name != FORM_DIMENSION}
    wanted = {c.id for c in structure().criteria if c.dimension in counted}

    def alpha(scores: list[SampleScore]) -> Value:
        units = [
            SampleScore(score=Score(value=cast(list[str | int | float | bool], ratings)))
            for item in scores
            for ratings in _ratings(item.score, wanted)
        ]
        return {"krippendorff_alpha": cast(float, compute(units))} if units else {}

    return alpha


def _ratings(score: Score, wanted: set[str]) -> Iterator[Sequence[float]]:
    """Yield the ratings of each wanted criterion that two graders or more gave a value."""
    by_criterion: dict[str, list[float]] = {}
    for grader in (score.metadata or {}).get("graders") or []:
        for result in grader.get("criterionResults") or []:
            if result["criterionId"] in wanted and result["score"] is not None:
                by_criterion.setdefault(result["criterionId"], []).append(float(result["score"]))
    return (ratings for ratings in by_criterion.values() if len(ratings) >= _FEWEST)
