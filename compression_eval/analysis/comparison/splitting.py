"""The spread of each side, split into compressions, answers and gradings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.sides import Side
from compression_eval.analysis.statistics.spread import Graded, SpreadParts, spread_parts
from compression_eval.grading.rubric import KNOWLEDGE, structure
from compression_eval.grading.six_dimensions import OVERALL

if TYPE_CHECKING:
    from pandas import DataFrame

_SETUP = ("graded_by", "criteria", "grader_context", "language", "rubric_digest")

SPLIT: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions)
"""Measures whose spread is split: those that a grader gives."""


@dataclass(frozen=True)
class SideSpread:
    """The spread of one side."""

    parts: dict[str, SpreadParts]
    """By measure of `SPLIT`."""
    others: int
    """Gradings left out because other graders made them, or made them by another rubric."""


def side_spread(side: Side) -> SideSpread:
    """Split the spread of a side.

    Args:
        side: Its samples must have a column ``state``.
    """
    if (side.samples["gradings"] > 1).any():
        rows, others = _same_setup(side.gradings)
    else:
        rows, others = side.samples, 0
    states = {
        (log, epoch): state
        for log, epoch, state in side.samples[["log_path", "epoch", "state"]].itertuples(
            index=False
        )
    }
    keys = ["unit", "sample", "log_path", "epoch"]
    parts = {}
    for measure in SPLIT:
        known = rows[rows[measure].notna()]
        parts[measure] = spread_parts(
            Graded(
                str(unit),
                str(sample),
                f"{log} {states[log, epoch]}",
                f"{log} epoch {epoch}",
                float(value),
            )
            for unit, sample, log, epoch, value in known[[*keys, measure]].itertuples(index=False)
        )
    return SideSpread(parts, others)


def _same_setup(gradings: "DataFrame") -> tuple["DataFrame", int]:
    """Keep the gradings that were made as the first of their answer was."""
    setup = gradings[list(_SETUP)].astype(str).agg("\n".join, axis=1)
    first = setup[gradings["grading"] == 0]
    by_sample = dict(zip(gradings.loc[first.index, "sample_uuid"], first, strict=True))
    kept = gradings["sample_uuid"].map(by_sample) == setup
    return gradings[kept], int((~kept).sum())
