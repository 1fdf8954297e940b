"""A paired difference between two arms, with the two intervals that answer different questions.

*On these conversations*: fixtures and probes are taken as they are; what varies is the
compression (and the answer from it). The unit is the state. This is what a maintainer asks who
changed a prompt, and what a verdict rests on.

*For new conversations*: the fixtures are a sample of those that the compressor will meet. The
unit is the fixture; with few of them Student's t is wide, and that is the truth of it. Whatever
varies on these conversations varies on new ones as well, so this interval is never the narrower.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Any

from compression_eval.analysis.statistics.observations import ArmValues, shared

_ROUNDING = 1e-9
"""What is smaller comes from adding floats, not from runs."""


@dataclass(frozen=True)
class Spread:
    """An estimated standard error and how well it is known."""

    error: float
    """Standard error of the difference; 0 if nothing varied."""
    freedom: float
    """Degrees of freedom. Where nothing varied: one less than there are independent runs that all
    came out the same; infinite if they cannot come out otherwise."""

    def interval(self, estimate: float, level: float = 0.95) -> tuple[float, float]:
        """Return the limits of the interval around an estimate."""
        if self.error == 0:
            return estimate, estimate
        half = self.quantile(0.5 + level / 2) * self.error
        return estimate - half, estimate + half

    def quantile(self, probability: float) -> float:
        """Return the quantile of Student's t with these degrees of freedom."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, probability))

    def p_value(self, estimate: float) -> float:
        """Return the two-sided probability of so large a difference if there were none."""
        return min(1.0, 2 * self.tail(abs(estimate)))

    def tail(self, distance: float) -> float:
        """Return the one-sided probability of an estimate so far beyond a limit, by chance.

        That nothing varied is no proof that nothing can. Then it is the probability that as many
        runs all come out on one side, as in a sign test.

        Args:
            distance: From the limit to the estimate; negative if it is not beyond.
        """
        if self.error > 0:
            from scipy.special import stdtr

            return float(stdtr(self.freedom, -distance / self.error))
        return 0.5 ** (self.freedom + 1) if distance > _ROUNDING else 1.0


@dataclass(frozen=True)
class Difference:
    """New minus base, paired by probe."""

    base: float
    """Mean of the base over the conversations, on the shared probes."""
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
    estimated from few states. For new conversations it is the paired t-test over the means of the
    conversations, or the spread on these ones where that is the wider.
    """
    base, new = shared(base, new)
    if not base.by_item:
        return None
    arms = (base, new)
    old, later = base.conversation_means(), new.conversation_means()
    here = between_states(arms)
    return Difference(
        base=base.mean(),
        new=new.mean(),
        probes=len(base.by_item),
        fixtures=len(old),
        states=(base.states, new.states),
        here=here,
        elsewhere=between_conversations([later[name] - old[name] for name in old], here),
    )


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
        return Spread(0.0, min(arm.states for arm in arms) - 1)
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
    weights = arm.weights()
    by_unit: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for item, states in arm.by_item.items():
        mean = sum(states.values()) / len(states)
        for state, value in states.items():
            by_unit[item[0]][state] += (value - mean) / len(states) * weights[item]
    return [list(states.values()) for states in by_unit.values()]


def _variance(contributions: Sequence[float]) -> float:
    """Return the variance of the sum of what the states of a unit contribute."""
    count = len(contributions)
    centre = sum(contributions) / count
    squares = sum((each - centre) ** 2 for each in contributions)
    return squares * count / (count - 1)


def between_conversations(values: Sequence[float], here: Spread | None) -> Spread | None:
    """Return the spread of a mean over conversations; None with a single one.

    Args:
        values: The mean of each conversation.
        here: The spread of the same mean on these conversations. It is returned where its interval
            is the wider one: what comes from compressing anew is there elsewhere, too.
    """
    if len(values) < 2:
        return None
    error = stdev(values) / math.sqrt(len(values))
    found = Spread(error if error > _ROUNDING else 0.0, len(values) - 1)
    return max((found, here or found), key=lambda spread: spread.interval(0.0)[1])
