"""Scores of the arms: the table to paste, means with both intervals, and groups of probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.measures import HEADLINE, values
from compression_eval.analysis.statistics.means import Limits, arm_mean
from compression_eval.grading.rubric import structure
from compression_eval.grading.six_dimensions import OVERALL

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TABLE_MEASURES: tuple[str, ...] = (*structure().dimensions, OVERALL)
"""Columns of the table, in its order."""

GROUPS: Mapping[str, str] = {
    "probe_type": "probe type",
    "task_type": "task type",
    "length": "length of the conversation",
    "language": "language",
    "qualified": "verdict on the probe",
    "region": "answered by the kept tail alone",
}
"""Columns that results are reported by, with their titles."""

ALL = "all"
"""Name of the row over all fixtures."""


@dataclass(frozen=True)
class Cell:
    """One value of a table."""

    value: float
    """Over epochs the median, over probes the mean; NaN if there is none."""
    probes: int
    """Probes that have a value."""


@dataclass(frozen=True)
class Row:
    """A fixture's line of the table, or that of all fixtures."""

    label: str
    probes: int
    cells: dict[str, Cell]


@dataclass(frozen=True)
class Estimate:
    """A mean over probes of the means over compressions; epochs are not reduced first."""

    mean: float
    probes: int
    fixtures: int
    states: int
    here: Limits | None
    """95 % interval on these conversations; None if nothing was compressed twice."""
    elsewhere: Limits | None
    """95 % interval for new conversations; None with one fixture."""
    no_spread: bool
    """Whether all compressions gave the same: the interval is a point."""


def table(samples: "DataFrame") -> list[Row]:
    """Return an arm's table: a row per fixture, then one over all of them.

    A fixture with several cuts has a row for each.
    """
    several = samples.groupby("fixture")["unit"].transform("nunique") > 1
    labelled = samples.assign(label=samples["fixture"].where(~several, samples["unit"]))
    rows = [_row(str(label), found) for label, found in labelled.groupby("label", sort=True)]
    return [*rows, _row(ALL, samples)] if len(rows) != 1 else rows


def estimates(samples: "DataFrame") -> dict[str, Estimate]:
    """Return the means of an arm with their intervals, for the measures that have any value."""
    found = {}
    for measure in HEADLINE:
        mean = arm_mean(values(samples, measure))
        if mean is None:
            continue
        here, elsewhere = mean.here, mean.elsewhere
        found[measure] = Estimate(
            mean=mean.mean,
            probes=mean.probes,
            fixtures=mean.fixtures,
            states=mean.states,
            here=here.interval(mean.mean) if here else None,
            elsewhere=elsewhere.interval(mean.mean) if elsewhere else None,
            no_spread=here is not None and here.error == 0,
        )
    return found


def groups(samples: "DataFrame") -> dict[str, dict[str, Cell]]:
    """Return the overall score by group of probes; properties that do not vary are left out."""
    medians = probe_medians(samples, [OVERALL])[OVERALL]
    found: dict[str, dict[str, Cell]] = {}
    keys = ["unit", "sample"]
    for column in GROUPS:
        of_probe = samples.drop_duplicates(keys).set_index(keys)[column].astype(str)
        by_group = medians.groupby(of_probe.reindex(medians.index))
        found[column] = {str(name): _cell(group) for name, group in by_group}
    return found


def probe_medians(samples: "DataFrame", measures: Sequence[str]) -> "DataFrame":
    """Return the median over epochs by probe; index: unit and sample."""
    return samples.groupby(["unit", "sample"])[list(measures)].median()


def _row(label: str, samples: "DataFrame") -> Row:
    medians = probe_medians(samples, TABLE_MEASURES)
    return Row(
        label=label,
        probes=len(medians),
        cells={measure: _cell(medians[measure]) for measure in TABLE_MEASURES},
    )


def _cell(medians: "Series[float]") -> Cell:
    return Cell(float(medians.mean()), int(medians.notna().sum()))
