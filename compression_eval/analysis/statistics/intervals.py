"""A paired difference between two arms, with the two intervals that answer different questions.

*On these conversations*: fixtures and probes are taken as they are; what varies is the
compression (and the answer from it). The unit is the state. This is what a maintainer asks who
changed a prompt, and what a verdict rests on.

*For new conversations*: the fixtures are a sample of those that the compressor will meet. The
unit is the fixture; with few of them Student's t is wide, and that is the truth of it.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compression_eval.analysis.statistics.observations import ArmValues, Item, shared
from compression_eval.analysis.statistics.student import t_quantile, t_two_sided

_ROUNDING = 1e-9
"""An error below this comes from adding floats, not from runs."""


@dataclass(frozen=True)
class Spread:
    """An estimated standard error and how well it is known."""

    error: float
    """Standard error of the difference."""
    freedom: float
    """Degrees of freedom."""

    def interval(self, estimate: float, level: float = 0.95) -> tuple[float, float]:
        """Return the limits of the interval around an estimate."""
        if self.error == 0:
            return estimate, estimate
        half = t_quantile(0.5 + level / 2, self.freedom) * self.error
        return estimate - half, estimate + half

    def p_value(self, estimate: float) -> float:
        """Return the two-sided probability of so large a difference if there were none."""
        if self.error == 0:
            return 1.0 if estimate == 0 else 0.0
        return t_two_sided(estimate / self.error, self.freedom)


@dataclass(frozen=True)
class Difference:
    """New minus base, paired by probe."""

    base: float
    """Mean of the base over the shared probes."""
    new: float
    probes: int
    """How many probes have a value in both."""
    fixtures: int
    states: tuple[int, int]
    """Compressions behind the values of base and new."""
    here: Spread | None
    """On these conversations; None if no fixture was compressed twice."""
    elsewhere: Spread | None
    """For new conversations; None with a single fixture."""

    @property
    def estimate(self) -> float:
        """New minus base."""
        return self.new - self.base


def paired_difference(base: ArmValues, new: ArmValues) -> Difference | None:
    """Return the difference between two arms on the probes that both have; None if there are none.

    The error on these conversations adds up, over units and both arms, the variance between the
    states of a unit, each state counting with the share that its probes have in the mean; the
    degrees of freedom are those of Satterthwaite (1946), with the terms corrected for being
    estimated from few states. The error for new conversations is the cluster-robust one (CR1) of
    the mean over probes with fixtures as clusters, on Student's t with one degree less than there
    are fixtures.
    """
    base, new = shared(base, new)
    if not base.by_item:
        return None
    arms = (base, new)
    fixtures = {base.fixture_of[unit] for unit, _ in base.by_item}
    counts = [_states(arm) for arm in arms]
    return Difference(
        base=base.mean(),
        new=new.mean(),
        probes=len(base.by_item),
        fixtures=len(fixtures),
        states=(counts[0], counts[1]),
        here=between_states(arms),
        elsewhere=_difference_between_fixtures(base, new),
    )


def _states(arm: ArmValues) -> int:
    return len({(unit, state) for (unit, _), states in arm.by_item.items() for state in states})


def between_states(arms: Sequence[ArmValues]) -> Spread | None:
    """Return the spread that comes from compressing (and answering) anew.

    Args:
        arms: One for the spread of its mean, two for that of their difference.

    Returns:
        None if no unit of an arm was compressed twice.
    """
    terms: list[tuple[float, int]] = []
    for arm in arms:
        parts = _contributions(arm)
        known = [(_variance(states), len(states) - 1) for states in parts if len(states) > 1]
        lone = sum(len(states) == 1 for states in parts)
        if not known:
            return None
        terms.extend(known)
        # A unit with one state has no spread of its own; it is taken to be like the others.
        typical = sum(variance * (free + 1) for variance, free in known) / len(known)
        terms.extend([(typical, 1)] * lone)
    total = sum(variance for variance, _ in terms)
    if total < _ROUNDING**2:
        return Spread(0.0, math.inf)
    corrected = sum(variance**2 / (free + 2) for variance, free in terms)
    most = sum(free for _, free in terms)
    least = min(free for _, free in terms)
    freedom = float(satterthwaite(total, corrected))
    return Spread(math.sqrt(total), min(max(freedom, least), most))


def satterthwaite(total: Any, corrected: Any) -> Any:
    """Return the degrees of freedom of a sum of estimated variances.

    Args:
        total: The sum; a number or an array of them.
        corrected: Sum of each variance's square over its own degrees of freedom plus two, which
            undoes the bias that comes from the squares being estimated as well.
    """
    return total**2 / corrected - 2


def _contributions(arm: ArmValues) -> list[list[float]]:
    """Return, per unit, what each state adds to the arm's mean beyond what its probes' means do."""
    probes = len(arm.by_item)
    by_unit: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (unit, _), states in arm.by_item.items():
        mean = sum(states.values()) / len(states)
        for state, value in states.items():
            by_unit[unit][state] += (value - mean) / len(states) / probes
    return [list(states.values()) for states in by_unit.values()]


def _variance(contributions: Sequence[float]) -> float:
    """Return the variance of the sum of what the states of a unit contribute."""
    count = len(contributions)
    centre = sum(contributions) / count
    squares = sum((each - centre) ** 2 for each in contributions)
    return squares * count / (count - 1)


def _difference_between_fixtures(base: ArmValues, new: ArmValues) -> Spread | None:
    old, later = base.probe_means(), new.probe_means()
    differences = {item: later[item] - old[item] for item in old}
    return between_fixtures(differences, base.fixture_of)


def between_fixtures(values: Mapping[Item, float], fixture_of: Mapping[str, str]) -> Spread | None:
    """Return the cluster-robust spread of a mean over probes; None with a single fixture.

    Args:
        values: By probe.
        fixture_of: The fixture of each unit.
    """
    overall = sum(values.values()) / len(values)
    sums: dict[str, float] = defaultdict(float)
    for (unit, _), value in values.items():
        sums[fixture_of[unit]] += value - overall
    count = len(sums)
    if count < 2:
        return None
    squares = sum(each**2 for each in sums.values())
    error = math.sqrt(squares * count / (count - 1)) / len(values)
    return Spread(error, count - 1)
