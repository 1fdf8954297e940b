"""Means of arms and their paired differences, with the two intervals that answer two questions.

*On these conversations*: fixtures and probes are taken as they are; what varies is the
compression (and the answer from it). The unit is the state. This is what a maintainer asks who
changed a prompt, and what a verdict rests on.

*For more conversations like these*: the fixtures are a sample of conversations of the same kind,
and of no other. The unit is the fixture; with few of them Student's t is wide. Whatever varies on
these conversations varies on others as well, so this interval is never the narrower.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import covariance, fmean, stdev, variance
from typing import NamedTuple

LEVEL = 0.95

_ROUNDING = 1e-9
"""Smaller values are rounding errors."""

Limits = tuple[float, float]
Item = tuple[str, str]
"""A unit and a probe of it: what two runs are paired by."""


class Observation(NamedTuple):
    """One value of one measure."""

    fixture: str
    """The conversation."""
    unit: str
    """The conversation at one of its cuts: what is compressed."""
    probe: str
    """Unique within the unit."""
    state: str
    """The compression behind the answer; several answers may share one."""
    value: float


@dataclass(frozen=True)
class ArmValues:
    """The values of one arm and one measure.

    The one point estimate of every table: answers are averaged within a state, states within a
    probe, probes within a conversation, and every conversation counts the same.
    """

    by_item: Mapping[Item, Mapping[str, float]]
    """Mean over the answers by probe and state."""
    fixture_of: Mapping[str, str]
    """The fixture of each unit."""

    @classmethod
    def of(cls, observations: Iterable[Observation]) -> "ArmValues":
        """Average the answers of each state."""
        answers: dict[Item, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        fixtures: dict[str, str] = {}
        for each in observations:
            answers[each.unit, each.probe][each.state].append(each.value)
            fixtures[each.unit] = each.fixture
        means = {
            item: {state: sum(values) / len(values) for state, values in states.items()}
            for item, states in answers.items()
        }
        return cls(means, fixtures)

    def only(self, items: Iterable[Item]) -> "ArmValues":
        """Return the values of some probes, all of which must be there."""
        return ArmValues({item: self.by_item[item] for item in items}, self.fixture_of)

    def probe_means(self) -> dict[Item, float]:
        """Return each probe's mean over states."""
        return {item: sum(s.values()) / len(s) for item, s in self.by_item.items()}

    @property
    def states(self) -> int:
        """Number of compressions behind the values."""
        return len(
            {(unit, state) for (unit, _), by_state in self.by_item.items() for state in by_state}
        )

    def conversation_means(self) -> dict[str, float]:
        """Return each conversation's mean over its probes, by fixture, in one order."""
        by_fixture: dict[str, list[float]] = defaultdict(list)
        for (unit, _), value in self.probe_means().items():
            by_fixture[self.fixture_of[unit]].append(value)
        return {name: fmean(by_fixture[name]) for name in sorted(by_fixture)}

    def weights(self) -> dict[Item, float]:
        """Return the share that each probe has in the mean."""
        probes = Counter(self.fixture_of[unit] for unit, _ in self.by_item)
        return {item: 1 / len(probes) / probes[self.fixture_of[item[0]]] for item in self.by_item}

    def mean(self) -> float:
        """Return the mean over conversations; NaN if there is none."""
        means = self.conversation_means()
        return fmean(means.values()) if means else float("nan")


@dataclass(frozen=True)
class Spread:
    """An estimated standard error and how well it is known."""

    error: float
    """Standard error of the estimate; 0 if nothing varied."""
    freedom: float
    """Degrees of freedom. Where nothing varied: one less than there are independent runs that all
    came out the same; infinite if they cannot come out otherwise."""

    @property
    def exact(self) -> bool:
        """Whether nothing is random, so that there is nothing to test."""
        return self.error == 0 and math.isinf(self.freedom)

    def interval(self, estimate: float, level: float = LEVEL) -> Limits:
        """Return the limits of the interval around an estimate."""
        if self.error == 0:
            return estimate, estimate
        half = _student_quantile(0.5 + level / 2, self.freedom) * self.error
        return estimate - half, estimate + half

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


def _student_quantile(probability: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


@dataclass(frozen=True)
class Estimate:
    """The mean over an arm's conversations, with its intervals."""

    mean: float
    probes: int
    fixtures: int
    states: int
    """Compressions behind it."""
    here: Limits | None
    """On these conversations; None if none was compressed twice."""
    elsewhere: Limits | None
    """For more conversations like these; None with a single fixture."""
    no_spread: bool
    """Whether all compressions gave the same: the interval is a point."""


def arm_mean(arm: ArmValues) -> Estimate | None:
    """Return the mean of an arm; None if no probe has a value."""
    if not arm.by_item:
        return None
    mean, means, here = arm.mean(), arm.conversation_means(), between_states((arm,))
    elsewhere = between_conversations(list(means.values()), here)
    return Estimate(
        mean=mean,
        probes=len(arm.by_item),
        fixtures=len(means),
        states=arm.states,
        here=here.interval(mean) if here else None,
        elsewhere=elsewhere.interval(mean) if elsewhere else None,
        no_spread=here is not None and here.error == 0,
    )


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
    """For more conversations like these; None with a single fixture."""

    @property
    def estimate(self) -> float:
        """New minus base."""
        return self.new - self.base


def paired_difference(base: ArmValues, new: ArmValues) -> Difference | None:
    """Return the difference between two arms on the probes that both have; None if there are none.

    The error on these conversations adds up, over units and both arms, the variance between the
    states of a unit, each state counting with the share that its probes have in the mean; the
    degrees of freedom are those of Satterthwaite (1946), with the terms corrected for being
    estimated from few states. For more conversations like these it is the paired t-test over the
    means of the conversations, or the spread on these ones where that is the wider.
    """
    items = sorted(base.by_item.keys() & new.by_item.keys())
    if not items:
        return None
    base, new = base.only(items), new.only(items)
    old, later = base.conversation_means(), new.conversation_means()
    here = between_states((base, new))
    return Difference(
        base=base.mean(),
        new=new.mean(),
        probes=len(items),
        fixtures=len(old),
        states=(base.states, new.states),
        here=here,
        elsewhere=between_conversations([later[name] - old[name] for name in old], here),
    )


def between_states(arms: Sequence[ArmValues]) -> Spread | None:
    """Return the spread of an arm's mean, or of the difference of two, from compressing again.

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
    freedoms = [free for _, free in terms]
    # The twos undo the bias that comes from the squares being estimated as well.
    freedom = total**2 / sum(variance**2 / (free + 2) for variance, free in terms) - 2
    return Spread(math.sqrt(total), min(max(freedom, min(freedoms)), sum(freedoms)))


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
    return sum((each - centre) ** 2 for each in contributions) * count / (count - 1)


def between_conversations(values: Sequence[float], here: Spread | None) -> Spread | None:
    """Return the spread of a mean over conversations; None with a single one.

    Args:
        values: The mean of each conversation.
        here: The spread of the same mean on these conversations. It is returned where its interval
            is the wider one: what comes from compressing again is there elsewhere, too.
    """
    if len(values) < 2:
        return None
    error = stdev(values) / math.sqrt(len(values))
    own = Spread(error if error > _ROUNDING else 0.0, len(values) - 1)
    return max((own, here or own), key=lambda spread: spread.interval(0.0)[1])


@dataclass(frozen=True)
class Retention:
    """Where an arm is between the floor (0) and the ceiling (1)."""

    share: float | None
    """(arm - floor) / (ceiling - floor), a ratio of means; None if those two are close."""
    arm: float
    floor: float
    ceiling: float
    probes: int
    """Probes that all three have a value for."""
    conversations: int
    """Conversations that these are of."""
    here: Limits | None
    """Limits on these conversations; None if they cannot be given."""
    elsewhere: Limits | None
    """Limits for more conversations like these."""

    @property
    def reach(self) -> float:
        """The range between floor and ceiling."""
        return self.ceiling - self.floor


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
    mean, low, high = (each.mean() for each in kept)
    clear = high - low >= closest
    here = _retention_here(kept) if clear else None
    return Retention(
        share=(mean - low) / (high - low) if clear else None,
        arm=mean,
        floor=low,
        ceiling=high,
        probes=len(items),
        conversations=len(kept[0].conversation_means()),
        here=here,
        elsewhere=_retention_elsewhere(kept, here) if clear else None,
    )


def _retention_here(arms: Sequence[ArmValues]) -> Limits | None:
    """Return the limits from the spread between compressions, which arms do not share."""
    spreads = [spread for each in arms if (spread := between_states((each,)))]
    if len(spreads) < len(arms):
        return None
    mean, low, high = (each.mean() for each in arms)
    above, apart = mean - low, high - low
    ratio = above / apart
    of_arm, of_floor, of_ceiling = (each.error**2 for each in spreads)
    weighted = [of_arm, (1 - ratio) ** 2 * of_floor, ratio**2 * of_ceiling]
    # Satterthwaite's plain form: never more degrees of freedom than the corrected one, so that the
    # limits are rather too wide.
    parts = sum(part**2 / each.freedom for part, each in zip(weighted, spreads, strict=True))
    freedom = sum(weighted) ** 2 / parts if parts else math.inf
    return _fieller(above, apart, (of_arm + of_floor, of_ceiling + of_floor, of_floor), freedom)


def _retention_elsewhere(arms: Sequence[ArmValues], here: Limits | None) -> Limits | None:
    """Return the limits from the spread between conversations, on which all arms were run."""
    arm, floor, ceiling = (list(each.conversation_means().values()) for each in arms)
    count = len(arm)
    if count < 2:
        return None
    above = [value - low for value, low in zip(arm, floor, strict=True)]
    apart = [high - low for high, low in zip(ceiling, floor, strict=True)]
    variances = (variance(above), variance(apart), covariance(above, apart))
    first, second, both = (each / count for each in variances)
    interval = _fieller(fmean(above), fmean(apart), (first, second, both), count - 1)
    if interval is None or here is None:
        return interval
    return max(interval, here, key=lambda limits: limits[1] - limits[0])


def _fieller(
    above: float, apart: float, variances: tuple[float, float, float], freedom: float
) -> Limits | None:
    """Return Fieller's limits of a ratio of two means; None if they are unbounded."""
    of_above, of_apart, both = variances
    squared = _student_quantile(0.5 + LEVEL / 2, freedom) ** 2
    denominator = apart**2 - squared * of_apart
    if denominator <= 0:
        return None
    middle = above * apart - squared * both
    root = middle**2 - denominator * (above**2 - squared * of_above)
    half = math.sqrt(max(0.0, root))
    return (middle - half) / denominator, (middle + half) / denominator
