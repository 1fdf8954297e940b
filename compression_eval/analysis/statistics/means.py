"""The mean of one arm with its intervals, and how much of what could be kept it kept.

On the same principle as `intervals`: *on these conversations* the spread is that between
compressions, *for new conversations* that between fixtures.
"""

import math
from dataclasses import dataclass
from statistics import covariance, fmean, variance

from compression_eval.analysis.statistics.intervals import (
    Spread,
    between_conversations,
    between_states,
)
from compression_eval.analysis.statistics.observations import ArmValues
from compression_eval.analysis.statistics.verdicts import LEVEL

Limits = tuple[float, float]


@dataclass(frozen=True)
class ArmMean:
    """The mean over an arm's conversations."""

    mean: float
    probes: int
    fixtures: int
    states: int
    """Compressions behind it."""
    here: Spread | None
    """On these conversations; None if none was compressed twice."""
    elsewhere: Spread | None
    """For new conversations; None with a single fixture."""


def arm_mean(arm: ArmValues) -> ArmMean | None:
    """Return the mean of an arm; None if no probe has a value."""
    if not arm.by_item:
        return None
    here = between_states((arm,))
    means = arm.conversation_means()
    return ArmMean(
        mean=arm.mean(),
        probes=len(arm.by_item),
        fixtures=len(means),
        states=arm.states,
        here=here,
        elsewhere=between_conversations(list(means.values()), here),
    )


@dataclass(frozen=True)
class Retention:
    """Where an arm stands between the floor (0) and the ceiling (1)."""

    share: float | None
    """(arm - floor) / (ceiling - floor), a ratio of means; None where those two are close."""
    arm: float
    floor: float
    ceiling: float
    probes: int
    """Probes that all three have a value for."""
    conversations: int
    """Conversations that these are of."""
    here: Limits | None
    """Limits on these conversations; None where they cannot be given."""
    elsewhere: Limits | None
    """Limits for new conversations."""


def retention(
    arm: ArmValues, floor: ArmValues, ceiling: ArmValues, *, closest: float
) -> Retention | None:
    """Return the normalised retention of an arm; None if there is no probe that all three have.

    The limits are those of Fieller (1954), which allow for the denominator being estimated too.
    Where they would be unbounded, because ceiling and floor cannot be told apart, there are none.

    Args:
        arm: The arm.
        floor: The control that knows nothing of the history.
        ceiling: The control that knows all of it.
        closest: The smallest distance of ceiling and floor that a share is given for.
    """
    items = sorted(arm.by_item.keys() & floor.by_item.keys() & ceiling.by_item.keys())
    if not items:
        return None
    kept = [each.only(items) for each in (arm, floor, ceiling)]
    means = [each.mean() for each in kept]
    apart = means[2] - means[1]
    clear = apart >= closest
    here = _here(kept) if clear else None
    return Retention(
        share=(means[0] - means[1]) / apart if clear else None,
        arm=means[0],
        floor=means[1],
        ceiling=means[2],
        probes=len(items),
        conversations=len(kept[0].conversation_means()),
        here=here,
        elsewhere=_elsewhere(kept, here) if clear else None,
    )


def _here(arms: list[ArmValues]) -> Limits | None:
    """Return the limits from the spread between compressions, which arms do not share."""
    spreads = [between_states((each,)) for each in arms]
    arm, floor, ceiling = spreads
    if arm is None or floor is None or ceiling is None:
        return None
    means = [each.mean() for each in arms]
    above, apart = means[0] - means[1], means[2] - means[1]
    ratio = above / apart
    variances = [each.error**2 for each in (arm, floor, ceiling)]
    weighted = [
        weight**2 * variance
        for weight, variance in zip((1.0, 1 - ratio, ratio), variances, strict=True)
    ]
    corrected = sum(
        part**2 / each.freedom for part, each in zip(weighted, (arm, floor, ceiling), strict=True)
    )
    freedom = sum(weighted) ** 2 / corrected if corrected else math.inf
    return _fieller(
        above,
        apart,
        (variances[0] + variances[1], variances[2] + variances[1], variances[1]),
        freedom,
    )


def _elsewhere(arms: list[ArmValues], here: Limits | None) -> Limits | None:
    """Return the limits from the spread between conversations, on which all arms were run.

    They are never the narrower ones; see `intervals`.
    """
    arm, floor, ceiling = (list(each.conversation_means().values()) for each in arms)
    count = len(arm)
    if count < 2:
        return None
    above = [value - low for value, low in zip(arm, floor, strict=True)]
    apart = [high - low for high, low in zip(ceiling, floor, strict=True)]
    found = _fieller(
        fmean(above),
        fmean(apart),
        (variance(above) / count, variance(apart) / count, covariance(above, apart) / count),
        count - 1,
    )
    if found is None or here is None:
        return found
    return max(found, here, key=lambda limits: limits[1] - limits[0])


def _fieller(
    above: float, apart: float, variances: tuple[float, float, float], freedom: float
) -> Limits | None:
    """Return Fieller's limits of a ratio of two means; None if they are unbounded.

    Args:
        above: Numerator.
        apart: Denominator.
        variances: Of the numerator, of the denominator, and their covariance.
        freedom: Degrees of freedom.
    """
    of_above, of_apart, covariance = variances
    squared = Spread(0.0, freedom).quantile(0.5 + LEVEL / 2) ** 2
    denominator = apart**2 - squared * of_apart
    if denominator <= 0:
        return None
    middle = above * apart - squared * covariance
    root = middle**2 - denominator * (above**2 - squared * of_above)
    half = math.sqrt(max(0.0, root))
    return (middle - half) / denominator, (middle + half) / denominator
