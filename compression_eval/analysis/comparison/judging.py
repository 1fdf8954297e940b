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
from compression_eval.analysis.statistics.intervals import Difference, paired_difference
from compression_eval.analysis.statistics.verdicts import Judged, judge, known_exactly
from compression_eval.grading.rubric import KNOWLEDGE

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
    group: str = ""

    @property
    def difference(self) -> Difference:
        """The difference with its intervals."""
        return self.judged.difference


@dataclass(frozen=True)
class Rules:
    """What verdicts are given by."""

    threshold: float
    """For scores from 0 to 5: the margin of the decision, and what counts on the others."""
    exact: frozenset[str]
    """Measures on which both arms come out the same every time."""
    failures_rise: bool


Sides = tuple["DataFrame", "DataFrame"]
"""Samples of base and new, with states."""


def primary(samples: Sides, rules: Rules, *, failed_as_zero: bool = False) -> Difference | None:
    """Return the difference in knowledge, which decides; None if no probe has it on both sides."""
    found = difference(samples, KNOWLEDGE, failed_as_zero=failed_as_zero)
    return known_exactly({KNOWLEDGE: found}, rules.exact)[KNOWLEDGE] if found else None


def others(samples: Sides, rules: Rules, *, failed_as_zero: bool = False) -> list[Line]:
    """Return a line for each measure beside it that both sides have; one family of tests.

    Args:
        samples: Of base and new.
        rules: What verdicts are given by.
        failed_as_zero: Count samples that failed as 0.
    """
    found = {
        ("", name): difference(samples, name, failed_as_zero=failed_as_zero)
        for name in HEADLINE
        if name != KNOWLEDGE
    }
    return _judged(found, rules)


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
            (group, name): difference(
                (base[base[column] == group], new[new[column] == group]), name
            )
            for group in groups
            for name in IN_GROUPS
        },
        rules,
    )


def difference(samples: Sides, measure: str, *, failed_as_zero: bool = False) -> Difference | None:
    """Return the difference of two sides on a measure; None if they share no probe that has it."""
    base, new = (values(frame, measure, failed_as_zero=failed_as_zero) for frame in samples)
    return paired_difference(base, new)


def _judged(found: Mapping[tuple[str, str], Difference | None], rules: Rules) -> list[Line]:
    keys = {f"{group}\n{measure}": (group, measure) for group, measure in found}
    differences = {key: each for key, pair in keys.items() if (each := found[pair]) is not None}
    thresholds = {key: threshold_of(keys[key][1], rules.threshold) for key in differences}
    exact = {key for key in differences if keys[key][1] in rules.exact}
    differences = known_exactly(differences, exact)
    judged = judge(differences, thresholds, failures_rise=rules.failures_rise)
    return [Line(keys[key][1], each, group=keys[key][0]) for key, each in judged.items()]
