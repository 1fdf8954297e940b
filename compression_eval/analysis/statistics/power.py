"""What a design can detect before it is paid for, and which more runs would tell.

`standard_error` follows from a design and the variances of a measure. From it come `power` at a
distance, the smallest `detectable` difference, and, for a comparison that could not tell, the runs
that would (`what_would_tell`). Variances that are estimated make t distributions with their degrees
of freedom.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from compression_eval.analysis.statistics.intervals import LEVEL, Difference

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

WANTED = 0.8
"""How often something is to be found."""

_DRAWS = 4000

MAX_REPEATED = 200
"""More compressions or conversations are not considered."""

TESTS: Mapping[str, float] = {"difference": 1 - (1 - LEVEL) / 2, "margin": LEVEL}
"""The level of each test of `significance.decide`: two-sided, that there is a difference;
one-sided, that it is smaller than the margin."""


@dataclass(frozen=True)
class Variances:
    """Variance components of one measure."""

    state: float
    """Between compressions of one conversation: what all its probes share."""
    probe: float
    """Between compressions, of one probe besides the others."""
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

    It is that on these conversations, or (`elsewhere`) for more conversations like these.
    """
    per_state = (
        variances.state
        + variances.probe / design.probes
        + (variances.answer + variances.grading) / design.probes / design.answers
    )
    here = 2 * per_state / design.states
    return math.sqrt((here + (variances.fixture if elsewhere else 0.0)) / design.fixtures)


def power(distance: float, design: Design, variances: Variances, test: str = "difference") -> float:
    """Return how often a test on these conversations rejects, by a true distance from its limit.

    The spread and its degrees of freedom are estimated from the states as `intervals` does it.

    Args:
        distance: Of the true difference from 0, or from the margin; positive.
        design: Of each of the two arms.
        variances: Of the measure.
        test: A name of `TESTS`.
    """
    if design.states < 2:
        return 0.0
    error = standard_error(design, variances)
    return _chance(distance, error, 2 * design.fixtures, design.states - 1, test)


def detectable(design: Design, variances: Variances, *, wanted: float = WANTED) -> float:
    """Return the smallest true difference of two arms that is found as often as wanted.

    It is infinite if none is; `wanted` is the power, between 0 and 1.
    """
    if design.states < 2:
        return math.inf
    if standard_error(design, variances) == 0:
        return 0.0
    from scipy.optimize import brentq

    def lacking(difference: float) -> float:
        return power(difference, design, variances) - wanted

    high = 1.0
    while lacking(high) < 0:
        high *= 2
    return float(brentq(lacking, 0.0, high))


@dataclass(frozen=True)
class More:
    """Runs needed for a decision, if the true difference is the observed one."""

    states: int | None
    """Compressions of each conversation and arm in all; None if that is not known or too many."""
    fixtures: int | None
    """Conversations in all, each compressed as often as now; the same."""


def what_would_tell(difference: Difference, margin: float) -> More:
    """Return the runs needed for a decision that these do not give, four times out of five.

    It is that of the test of `significance.decide` which needs the least. From a single compression
    of each conversation it is not known what more compressions would do.
    """
    spread, fixtures = difference.here or difference.elsewhere, difference.fixtures
    distances = {"difference": abs(difference.estimate), "margin": difference.estimate + margin}
    if spread is None:
        return More(None, None)
    here = difference.here is not None
    now = max(2, round(sum(difference.states) / 2 / fixtures)) if here else 1

    def told(states: int, conversations: int) -> bool:
        if spread.error == 0:  # a sign test: see `Spread.tail`
            return 2 * 0.5 ** (states * conversations) < 1 - LEVEL
        error = spread.error * math.sqrt(now * fixtures / states / conversations)
        groups, free = (2 * conversations, states - 1) if here else (1, conversations - 1)
        return any(
            _chance(distance, error, groups, free, test) >= WANTED
            for test, distance in distances.items()
        )

    def least(first: int, enough: Callable[[int], bool]) -> int | None:
        number = first + bisect_left(range(first, MAX_REPEATED), True, key=enough)
        return number if number < MAX_REPEATED else None

    return More(
        least(now + 1, lambda states: told(states, fixtures)) if here else None,
        least(fixtures + 1, lambda conversations: told(now, conversations)),
    )


def _chance(distance: float, error: float, groups: int, free: int, test: str) -> float:
    """Return how often a test rejects whose variance is a mean of so many estimated ones."""
    if error == 0:
        return float(distance > 0)
    from scipy.special import ndtr, stdtrit

    ratios, freedoms = _spreads_seen(groups, free)
    limits = stdtrit(freedoms, TESTS[test]) * ratios
    return float(ndtr(distance / error - limits).mean())


@cache
def _spreads_seen(groups: int, free: int) -> "tuple[NDArray[float64], NDArray[float64]]":
    """Return what estimates of the standard error come out: its ratio to the true one, and df."""
    import numpy

    # A fixed seed: the same design has the same power, and it rises with the difference.
    generator = numpy.random.default_rng(1908)
    variances = generator.chisquare(free, size=(_DRAWS, groups)) / free / groups
    total = variances.sum(axis=1)
    # As `intervals.between_states` estimates them.
    freedoms = total**2 / ((variances**2).sum(axis=1) / (free + 2)) - 2
    return numpy.sqrt(total), freedoms.clip(free, groups * free)
