"""What is measured, on which scale, and the values of one side of it."""

import math
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.sides import Side
from compression_eval.analysis.statistics.observations import ArmValues, Observation
from compression_eval.analysis.statistics.verdicts import DEFAULT_THRESHOLD
from compression_eval.compressors.artifacts import SUFFIX
from compression_eval.compressors.registry import COMPRESSORS
from compression_eval.compressors.yours.command import COMPRESSOR as COMMAND
from compression_eval.grading.rubric import MAX_SCORE, structure
from compression_eval.grading.six_dimensions import OVERALL

if TYPE_CHECKING:
    from pandas import DataFrame

RECALL, SURVIVAL = "fact_recall", "fact_survival"

SHARES = frozenset({RECALL, SURVIVAL})
"""Measures from 0 to 1; the others go from 0 to 5."""

HEADLINE: tuple[str, ...] = (OVERALL, *structure().dimensions, RECALL, SURVIVAL)
"""Measures that a verdict is given on, tested together."""

IN_GROUPS: tuple[str, ...] = (OVERALL, RECALL, SURVIVAL)
"""Measures that are looked at in each group of a breakdown."""


def threshold_of(measure: str, threshold: float = DEFAULT_THRESHOLD) -> float:
    """Return the smallest difference that counts, in the unit of a measure.

    Args:
        measure: One of `HEADLINE`.
        threshold: The one for scores from 0 to 5; a share has the same part of its range.
    """
    return threshold / MAX_SCORE if measure in SHARES else threshold


def values(samples: "DataFrame", measure: str, *, failed_as_zero: bool = False) -> ArmValues:
    """Return a side's values of a measure.

    Args:
        samples: Rows of a side's samples.
        measure: One of `HEADLINE`.
        failed_as_zero: Give the samples that have no value because something failed a 0. Those
            that were not graded on the measure have no value in any case.
    """
    rows = samples[["fixture", "unit", "sample", "log_path", "state", measure, "failure"]]
    found = []
    for fixture, unit, probe, log, state, value, failure in rows.itertuples(index=False):
        number = float(value)
        if math.isnan(number):
            if not (failed_as_zero and failure):
                continue
            number = 0.0
        found.append(Observation(str(fixture), str(unit), str(probe), f"{log} {state}", number))
    return ArmValues.of(found)


def with_states(samples: "DataFrame") -> "DataFrame":
    """Return samples with a column ``state``: which compression of its run each is about.

    A sample that ended in an error may have no record that says so; the others of its epoch do.
    """
    known = samples.dropna(subset=["replicate"]).drop_duplicates(["log_path", "epoch"])
    by_epoch = {
        (log, epoch): str(int(replicate))
        for log, epoch, replicate in known[["log_path", "epoch", "replicate"]].itertuples(
            index=False
        )
    }
    pairs = samples[["log_path", "epoch"]].itertuples(index=False)
    return samples.assign(
        state=[by_epoch.get((log, epoch), f"epoch {epoch}") for log, epoch in pairs]
    )


def exact_measures(base: Side, new: Side) -> frozenset[str]:
    """Return the measures on which both arms come out the same every time."""
    return _exact(base) & _exact(new)


def _exact(side: Side) -> frozenset[str]:
    if not compresses_the_same(side):
        return frozenset()
    if not _embedded(side.model):
        return frozenset({SURVIVAL})
    if not all(_embedded(name) for graders in side.graders for name in graders.split(", ")):
        return SHARES
    return frozenset(HEADLINE)


def no_language_model(side: Side) -> bool:
    """Return whether an arm is known to have been run without any language model."""
    return len(_exact(side)) == len(HEADLINE)


def compresses_the_same(side: Side) -> bool:
    """Return whether an arm's compressions of one history are all the same."""
    name = side.settings["compressor"].removesuffix(SUFFIX)
    known = COMPRESSORS.get(name)
    # What is the user's own may do something else each time, whatever model it is given.
    if known is None or name == COMMAND.name:
        return False
    return not known.calls_model or _embedded(side.settings["compressor model"])


def _embedded(model: str) -> bool:
    return model.startswith("embedded/")
