"""Scores of the arms: the table to paste, means with both intervals, and groups of probes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.measures import HEADLINE, ungraded, values
from compression_eval.analysis.statistics.intervals import Estimate, arm_mean
from compression_eval.grading.rubric import KNOWLEDGE, OVERALL, structure

if TYPE_CHECKING:
    from pandas import DataFrame

TABLE_MEASURES: tuple[str, ...] = (KNOWLEDGE, *structure().dimensions, OVERALL)
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
    """Mean over the conversations, see `ArmValues`; NaN if there is none."""
    probes: int
    """Probes that have a value."""


@dataclass(frozen=True)
class Row:
    """A fixture's line of the table, or that of all fixtures."""

    label: str
    probes: int
    cells: dict[str, Cell]


def common(samples: "DataFrame") -> "tuple[DataFrame, int]":
    """Return samples as arms can be held beside one another, and the number of their probes.

    Kept are the probes that every arm was asked, arms without any score left out, and on which
    no grading failed in any of them. On those a failure counts as 0, on the measures that some arm
    has a value of: an arm that fails on the hard conversations would else look better by it. Where
    no probe is common to all arms, the number is 0 and each arm keeps its own graded samples.
    """
    keys = ["unit", "sample"]
    having_scores = set(samples.loc[samples["scored"], "arm"])
    without = ungraded(samples)
    known = samples[~without]
    counted = samples["arm"].isin(having_scores)
    asked = samples[counted].groupby(keys)["arm"].nunique()
    lost = samples.loc[counted & without, keys].itertuples(index=False, name=None)
    everywhere = set(asked[asked == len(having_scores)].index).difference(lost)
    at = [item in everywhere for item in zip(known["unit"], known["sample"], strict=True)]
    kept = (known[at] if everywhere else known).copy()
    failed = kept["failure"].astype(bool) & kept["arm"].isin(having_scores)
    for measure in HEADLINE:
        applies = kept.groupby(keys)[measure].transform("count") > 0
        graded_on = applies if measure not in (KNOWLEDGE, OVERALL) else True
        kept.loc[failed & kept[measure].isna() & graded_on, measure] = 0.0
    return kept, len(everywhere)


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
        if mean is not None:
            found[measure] = mean
    return found


def groups(samples: "DataFrame") -> dict[str, dict[str, Cell]]:
    """Return the leading score by group of probes; properties that do not vary are left out."""
    return {
        column: {
            str(name): _cell(rows, KNOWLEDGE)
            for name, rows in samples.groupby(samples[column].astype(str))
        }
        for column in GROUPS
    }


def _row(label: str, samples: "DataFrame") -> Row:
    return Row(
        label=label,
        probes=len(samples.drop_duplicates(["unit", "sample"])),
        cells={measure: _cell(samples, measure) for measure in TABLE_MEASURES},
    )


def _cell(samples: "DataFrame", measure: str) -> Cell:
    found = values(samples, measure)
    return Cell(found.mean(), len(found.by_item))
