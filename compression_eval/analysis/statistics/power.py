"""What a design can detect, before anything is spent on it."""

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from compression_eval.analysis.statistics.intervals import satterthwaite
from compression_eval.analysis.statistics.verdicts import DEFAULT_THRESHOLD, LEVEL

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

_DRAWS = 4000


@dataclass(frozen=True)
class Variances:
    """Variances of one measure between what can differ from run to run."""

    state: float
    """Between compressions of one conversation: what all its probes share."""
    probe: float
    """Between compressions, of one probe beside the others."""
    answer: float
    """Between answers from one state; gradings of one answer are in it unless told apart."""
    grading: float = 0.0
    """Between gradings of one answer."""
    fixture: float = 0.0
    """Between conversations, of the true difference of two arms."""


@dataclass(frozen=True)
class Design:
    """How much is run per arm."""

    fixtures: int
    probes: float
    """Per fixture."""
    states: int
    """Compressions per fixture."""
    answers: int = 1
    """Per state and probe."""


def standard_error(design: Design, variances: Variances, *, elsewhere: bool = False) -> float:
    """Return the standard error of the difference of two arms of one design.

    Args:
        design: Of each of the two arms.
        variances: Of the measure.
        elsewhere: For new conversations instead of for these.
    """
    per_state = (
        variances.state
        + variances.probe / design.probes
        + (variances.answer + variances.grading) / design.probes / design.answers
    )
    here = 2 * per_state / design.states
    return math.sqrt((here + (variances.fixture if elsewhere else 0.0)) / design.fixtures)


def power(
    difference: float,
    design: Design,
    variances: Variances,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    measures: int = 1,
) -> float:
    """Return how often a true difference gets the verdict *better* on these conversations.

    That is how often the estimate reaches the threshold and its interval excludes zero, where the
    spread and its degrees of freedom are estimated from the states as `intervals` does it.

    Args:
        difference: The true one; positive.
        design: Of each of the two arms.
        variances: Of the measure.
        threshold: The smallest difference that counts.
        measures: How many measures are tested together; the adjustment is that of the first step
            of Holm's method, so with true differences on others it is found a little more often.
    """
    if design.states < 2:
        return 0.0
    error = standard_error(design, variances)
    if error == 0:
        return float(difference >= threshold)
    from scipy.special import ndtr, stdtrit

    ratios, freedoms = _spreads_seen(2 * design.fixtures, design.states - 1)
    limits = stdtrit(freedoms, 1 - (1 - LEVEL) / measures / 2) * ratios * error
    return float(ndtr((difference - limits.clip(min=threshold)) / error).mean())


@cache
def _spreads_seen(groups: int, free: int) -> "tuple[NDArray[float64], NDArray[float64]]":
    """Return what estimates of the standard error come out: its ratio to the true one, and df.

    Args:
        groups: Fixtures of both arms.
        free: Degrees of freedom of each.
    """
    import numpy

    # A fixed seed: the same design has the same power, and it rises with the difference.
    generator = numpy.random.default_rng(1908)
    variances = generator.chisquare(free, size=(_DRAWS, groups)) / free / groups
    total = variances.sum(axis=1)
    freedoms = satterthwaite(total, (variances**2).sum(axis=1) / (free + 2))
    return numpy.sqrt(total), freedoms.clip(free, groups * free)


def detectable(
    design: Design,
    variances: Variances,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    measures: int = 1,
    wanted: float = 0.8,
) -> float:
    """Return the smallest true difference that is found as often as wanted; infinite if none is.

    Args:
        design: Of each of the two arms.
        variances: Of the measure.
        threshold: The smallest difference that counts.
        measures: How many measures are tested together.
        wanted: The power, between 0 and 1.
    """
    low, high = 0.0, max(threshold, 1.0)
    if design.states < 2:
        return math.inf
    while power(high, design, variances, threshold=threshold, measures=measures) < wanted:
        low, high = high, high * 2
    for _ in range(40):
        middle = (low + high) / 2
        if power(middle, design, variances, threshold=threshold, measures=measures) < wanted:
            low = middle
        else:
            high = middle
    return high
