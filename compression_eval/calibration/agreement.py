"""Agreement of a grader's scores with those of a careful reader."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.calibration.cases import Case

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 2000
LEVEL = 0.95
_SEED = 20_260_307
_MIN_ANSWERS = 3
"""Minimum answers for anything but the error."""


@dataclass(frozen=True)
class Agreement:
    """One dimension, over the answers that both scored, 0 to 5."""

    answers: int
    error: float
    """Mean absolute error, in points; NaN without answers."""
    bias: float
    """Mean of grader minus reference, in points; above 0 the grader is lenient."""
    rank: float
    """Spearman's rank correlation; NaN if one side gives only one score."""
    kappa: float
    """Quadratic weighted kappa; NaN if both give only one and the same score."""
    low: float
    """Lower limit of its 95 % interval, by bootstrap over answers."""
    high: float


def agreement(cases: Sequence[Case], key: str) -> Agreement:
    """Compare a grader's scores with the references, over answers with both.

    Args:
        cases: Graded answers.
        key: The overall score or a dimension.
    """
    both = [case.compared() for case in cases]
    return compare([grades[key] for grades, _ in both], [right[key] for _, right in both])


def compare(grader: Sequence[float], reference: Sequence[float]) -> Agreement:
    """Compare a grader with the reference, answer by answer.

    Args:
        grader: The grader's scores; NaN, for a missing score, is left out.
        reference: The careful reader's scores, of the same length; NaN is left out too.

    Raises:
        ValueError: The lengths differ.
    """
    import numpy as np

    pairs = [
        (x, y)
        for x, y in zip(grader, reference, strict=True)
        if not (math.isnan(x) or math.isnan(y))
    ]
    if not pairs:
        nan = math.nan
        return Agreement(0, nan, nan, nan, nan, nan, nan)
    grades, right = (np.asarray(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    low, high = _interval(grades, right)
    return Agreement(
        answers=len(pairs),
        error=float(np.abs(grades - right).mean()),
        bias=float((grades - right).mean()),
        rank=_rank_correlation(grades, right),
        kappa=float(_kappa(grades[None, :], right[None, :])[0]),
        low=low,
        high=high,
    )


def _kappa(grades: "Floats", right: "Floats") -> "Floats":
    """Return the quadratic weighted kappa of each row.

    1 - observed / expected squared difference, where expected pairs every score of one side with
    every one of the other. In terms of moments it needs no categories, so half points and means of
    criteria need no rounding.
    """
    import numpy as np

    observed = ((grades - right) ** 2).mean(axis=1)
    shift = grades.mean(axis=1) - right.mean(axis=1)
    expected = grades.var(axis=1) + right.var(axis=1) + shift**2
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa: Floats = np.where(expected > 0, 1 - observed / expected, np.nan)
    return kappa


def _interval(grades: "Floats", right: "Floats") -> tuple[float, float]:
    import numpy as np

    if len(grades) < _MIN_ANSWERS:
        return math.nan, math.nan
    # A fixed seed: the same log must print the same table.
    drawn = np.random.default_rng(_SEED).integers(0, len(grades), (RESAMPLES, len(grades)))
    kappas = _kappa(grades[drawn], right[drawn])
    kappas = kappas[~np.isnan(kappas)]
    if not len(kappas):
        return math.nan, math.nan
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(kappas, [tail, 1 - tail])
    return float(low), float(high)


def _rank_correlation(grades: "Floats", right: "Floats") -> float:
    import numpy as np

    if len(grades) < _MIN_ANSWERS or not grades.std() or not right.std():
        return math.nan
    return float(np.corrcoef(_ranks(grades), _ranks(right))[0, 1])


def _ranks(values: "Floats") -> "Floats":
    """Return ranks; equal values share the mean of theirs."""
    import numpy as np

    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Floats = (last - (counts - 1) / 2).astype(np.float64)
    return means[where]
