"""Differences between two sides with their verdicts: the headline, its bound, and breakdowns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.measures import (
    HEADLINE,
    IN_GROUPS,
    threshold_of,
    values,
)
from compression_eval.analysis.statistics.borrowing import known_exactly, with_borrowed_spread
from compression_eval.analysis.statistics.intervals import Difference, paired_difference
from compression_eval.analysis.statistics.verdicts import Judged, judge

if TYPE_CHECKING:
    from pandas import DataFrame

BREAKDOWNS: Mapping[str, str] = {
    "probe_type": "probe type",
    "task_type": "task type",
    "length": "length of the conversation",
    "qualified": "verdict on the probe",
}
"""Columns that results are broken down by, with what they are called."""


@dataclass(frozen=True)
class Line:
    """One measure, on all probes or on those of one group."""

    measure: str
    judged: Judged
    borrowed: bool
    """Whether the interval on these conversations is that of another measure; see `borrowing`."""
    group: str = ""

    @property
    def difference(self) -> Difference:
        """The difference with its intervals."""
        return self.judged.difference


@dataclass(frozen=True)
class Rules:
    """What verdicts are given by."""

    threshold: float
    """For scores from 0 to 5."""
    exact: frozenset[str]
    """Measures on which both arms come out the same every time."""
    failures_rise: bool


Sides = tuple["DataFrame", "DataFrame"]
"""Samples of base and new, with states."""


def headline(samples: Sides, rules: Rules) -> list[Line]:
    """Return a line for each headline measure that both sides have; one family of tests."""
    return _judged({("", name): _difference(samples, name) for name in HEADLINE}, rules)


def bound(samples: Sides, rules: Rules) -> list[Line]:
    """Return the headline with samples that failed counted as 0."""
    differences = {("", name): _difference(samples, name, failed_as_zero=True) for name in HEADLINE}
    return _judged(differences, rules)


def breakdown(samples: Sides, column: str, rules: Rules) -> list[Line]:
    """Return the lines of each group of a column; one family of tests.

    Nothing is returned where there is only one group: the headline says the same.
    """
    groups = sorted({str(value) for frame in samples for value in frame[column].dropna()})
    if len(groups) < 2:
        return []
    base, new = samples
    return _judged(
        {
            (group, name): _difference(
                (base[base[column] == group], new[new[column] == group]), name
            )
            for group in groups
            for name in IN_GROUPS
        },
        rules,
    )


def _difference(samples: Sides, measure: str, *, failed_as_zero: bool = False) -> Difference | None:
    base, new = (values(frame, measure, failed_as_zero=failed_as_zero) for frame in samples)
    return paired_difference(base, new)


def _judged(found: Mapping[tuple[str, str], Difference | None], rules: Rules) -> list[Line]:
    keys = {f"{group}\n{measure}": (group, measure) for group, measure in found}
    differences = {key: each for key, pair in keys.items() if (each := found[pair]) is not None}
    thresholds = {key: threshold_of(keys[key][1], rules.threshold) for key in differences}
    exact = {key for key in differences if keys[key][1] in rules.exact}
    differences = known_exactly(differences, exact)
    differences, borrowed = with_borrowed_spread(differences, thresholds, exact)
    judged = judge(
        differences, thresholds, failures_rise=rules.failures_rise, same_every_time=exact
    )
    return [
        Line(keys[key][1], each, key in borrowed, group=keys[key][0])
        for key, each in judged.items()
    ]
