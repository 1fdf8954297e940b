"""What the statistics see of a run: one value per probe, state and answer."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple


class Observation(NamedTuple):
    """One value of one measure."""

    fixture: str
    """The conversation."""
    unit: str
    """The conversation at one of its cuts: what is compressed."""
    probe: str
    """Unique within the unit."""
    state: str
    """The compression that was answered from; several answers may share one."""
    value: float


Item = tuple[str, str]
"""A unit and a probe of it: what two runs are paired by."""


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
        """How many compressions the values come from."""
        return len({(unit, state) for (unit, _), found in self.by_item.items() for state in found})

    def conversation_means(self) -> dict[str, float]:
        """Return each conversation's mean over its probes, by fixture, in one order."""
        found: dict[str, list[float]] = defaultdict(list)
        for (unit, _), value in self.probe_means().items():
            found[self.fixture_of[unit]].append(value)
        return {name: fmean(found[name]) for name in sorted(found)}

    def weights(self) -> dict[Item, float]:
        """Return the share that each probe has in the mean."""
        probes = Counter(self.fixture_of[unit] for unit, _ in self.by_item)
        return {item: 1 / len(probes) / probes[self.fixture_of[item[0]]] for item in self.by_item}

    def mean(self) -> float:
        """Return the mean over conversations; NaN if there is none."""
        means = self.conversation_means()
        return fmean(means.values()) if means else float("nan")


def shared(base: ArmValues, new: ArmValues) -> tuple[ArmValues, ArmValues]:
    """Return both arms with only the probes that have a value in both, in one order."""
    items: Sequence[Item] = sorted(base.by_item.keys() & new.by_item.keys())
    return base.only(items), new.only(items)
