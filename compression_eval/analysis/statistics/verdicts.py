"""From differences to verdicts, with several measures tested at once."""

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal

from compression_eval.analysis.statistics.intervals import Difference

Verdict = Literal["better", "worse", "no change", "cannot tell"]

DEFAULT_THRESHOLD = 0.3
"""The smallest difference on a dimension (0 to 5) that counts as a win or a loss."""

LEVEL = 0.95


@dataclass(frozen=True)
class Judged:
    """A difference with its verdict."""

    difference: Difference
    p_value: float | None
    """Adjusted by Holm's method for the measures that were tested with it."""
    verdict: Verdict
    why: str
    """What the verdict rests on, in a few words."""


def judge(
    differences: Mapping[str, Difference],
    thresholds: Mapping[str, float],
    *,
    failures_rise: bool | Container[str] = False,
    same_every_time: bool | Container[str] = False,
) -> dict[str, Judged]:
    """Return a verdict on each of several measures that are looked at together.

    *Better* and *worse* need a difference of at least the threshold and a p-value, adjusted by
    Holm's method over these measures, under 5 %. *No change* needs the 90 % interval to lie
    within the threshold on both sides (two one-sided tests at 5 %). Everything else cannot be
    told from these runs.

    Args:
        differences: By measure.
        thresholds: By measure, in its unit.
        failures_rise: Whether the new arm fails more often, then nothing is better; or the names
            of the measures for which it does.
        same_every_time: Whether both arms are mechanical, so that no spread is no surprise; or
            the names of the measures for which they are.
    """
    adjusted = _holm(
        {
            name: each.here.p_value(each.estimate)
            for name, each in differences.items()
            if each.here and (each.here.error > 0 or _holds(same_every_time, name))
        }
    )
    return {
        name: _judged(
            difference,
            adjusted.get(name),
            thresholds[name],
            failures_rise=_holds(failures_rise, name),
        )
        for name, difference in differences.items()
    }


def _holds(of: bool | Container[str], name: str) -> bool:
    return of if isinstance(of, bool) else name in of


def _holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values adjusted for their number, by Holm's step-down method (1979)."""
    ordered = sorted(p_values, key=lambda name: p_values[name])
    adjusted: dict[str, float] = {}
    highest = 0.0
    for position, name in enumerate(ordered):
        highest = max(highest, min(1.0, p_values[name] * (len(ordered) - position)))
        adjusted[name] = highest
    return adjusted


def _judged(
    difference: Difference, p_value: float | None, threshold: float, *, failures_rise: bool
) -> Judged:
    verdict, why = _verdict(difference, p_value, threshold, failures_rise=failures_rise)
    return Judged(difference, p_value, verdict, why)


def _verdict(
    difference: Difference, p_value: float | None, threshold: float, *, failures_rise: bool
) -> tuple[Verdict, str]:
    here, estimate = difference.here, difference.estimate
    if here is None or p_value is None:
        once = "on a side, each conversation was compressed only once"
        unseen = "no spread between compressions was seen, so noise is not known"
        return "cannot tell", unseen if here else once
    large = abs(estimate) >= threshold or math.isclose(abs(estimate), threshold)
    low, high = here.interval(estimate, 2 * LEVEL - 1)
    if large and p_value < 1 - LEVEL and estimate < 0:
        return "worse", f"at least {threshold:g} lower, not noise"
    if large and p_value < 1 - LEVEL:
        if failures_rise:
            return "cannot tell", "higher, but it fails more often"
        return "better", f"at least {threshold:g} higher, not noise"
    if -threshold < low and high < threshold:
        return "no change", f"less than {threshold:g} either way"
    return "cannot tell", "the interval is too wide for either"
