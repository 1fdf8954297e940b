"""Quality between floor and ceiling, and quality against what is kept."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.measures import HEADLINE, SHARES, values
from compression_eval.analysis.report.arms import Arm, control
from compression_eval.analysis.statistics.intervals import between_states
from compression_eval.analysis.statistics.means import Limits, Retention, retention
from compression_eval.analysis.statistics.observations import ArmValues
from compression_eval.grading.rubric import MAX_SCORE
from compression_eval.grading.six_dimensions import OVERALL

if TYPE_CHECKING:
    from pandas import DataFrame

CLOSEST = 0.5
"""Ceiling and floor nearer than this (0 to 5; shares the same part of their range) are close."""


@dataclass(frozen=True)
class Retained:
    """Normalised retention of one arm on every measure."""

    floor: str
    ceiling: str
    measures: dict[str, Retention]


@dataclass(frozen=True)
class Point:
    """An arm as quality against retained tokens."""

    arm: str
    tokens: float
    """Mean size of a state; every conversation counts the same."""
    quality: float
    """Mean overall score on the probes that every arm has."""
    interval: Limits | None
    """On these conversations."""
    dominated_by: str
    """An arm that keeps no more tokens and is no worse, and better in one; empty if none is."""
    control: bool
    """Whether it is a control, which takes no part in the frontier."""


@dataclass(frozen=True)
class Frontier:
    """Quality against retained tokens."""

    probes: int
    """Probes that all these arms have; 0 if there is none, and then no point."""
    points: list[Point]
    left_out: list[str]
    """Arms without any score."""


def retained(arms: list[Arm], by_arm: "dict[str, DataFrame]") -> dict[str, Retained]:
    """Return the retention of the arms that have both controls beside them."""
    found = {}
    for arm in arms:
        floor, ceiling = control(arms, "floor", arm), control(arms, "ceiling", arm)
        if arm.role or floor is None or ceiling is None:
            continue
        measures = {}
        for measure in HEADLINE:
            closest = CLOSEST / MAX_SCORE if measure in SHARES else CLOSEST
            three = [values(by_arm[each.name], measure) for each in (arm, floor, ceiling)]
            share = retention(*three, closest=closest)
            if share is not None:
                measures[measure] = share
        found[arm.name] = Retained(floor.name, ceiling.name, measures)
    return found


def frontier(arms: list[Arm], by_arm: "dict[str, DataFrame]") -> Frontier:
    """Return every arm's size and quality, and which arms another one dominates.

    Only probes count that every arm has a score for: an arm that failed on the hard
    conversations would look better by it.
    """
    scored = {arm.name: values(by_arm[arm.name], OVERALL) for arm in arms}
    present = [arm for arm in arms if scored[arm.name].by_item]
    left_out = [arm.name for arm in arms if not scored[arm.name].by_item]
    if not present:
        return Frontier(0, [], left_out)
    items = sorted(set.intersection(*(set(scored[arm.name].by_item) for arm in present)))
    if not items:
        return Frontier(0, [], left_out)
    units = {unit for unit, _ in items}
    plain = [_point(arm, scored[arm.name].only(items), by_arm[arm.name], units) for arm in present]
    return Frontier(len(items), [_judged(point, plain) for point in plain], left_out)


def _point(arm: Arm, quality: ArmValues, samples: "DataFrame", units: set[str]) -> Point:
    mean, spread = quality.mean(), between_states((quality,))
    states = samples[samples["unit"].isin(units)].drop_duplicates(["log_path", "unit", "state"])
    tokens = states.groupby("unit")["tokens_state"].mean().mean()
    interval = spread.interval(mean) if spread else None
    return Point(arm.name, float(tokens), mean, interval, "", bool(arm.role))


def _judged(point: Point, points: list[Point]) -> Point:
    if point.control:
        return point
    for other in points:
        no_worse = other.tokens <= point.tokens and other.quality >= point.quality
        better = other.tokens < point.tokens or other.quality > point.quality
        if not other.control and no_worse and better:
            return Point(**{**point.__dict__, "dominated_by": other.arm})
    return point
