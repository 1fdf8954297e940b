"""Probes that crossed the line between a miss and an answer that will do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.sides import Side
from compression_eval.grading.rubric import KNOWLEDGE

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MISS = 3.0
"""A mean of knowledge under this is a miss."""

_LONGEST_REASON = 200


@dataclass(frozen=True)
class Flip:
    """A probe that is a miss on one side only."""

    unit: str
    """The fixture at its cut."""
    probe: str
    base: float
    """Mean over epochs of knowledge."""
    new: float
    reason: str
    """What the grader said on the criterion that came out worst where it is a miss; one line."""

    @property
    def missed_now(self) -> bool:
        """Whether the new side is the one that misses it."""
        return self.new < MISS


def flips(base: Side, new: Side) -> list[Flip]:
    """Return the probes that flipped, those that are missed now first."""
    first, second = _means(base.samples), _means(new.samples)
    shared = first.index.intersection(second.index)
    crossed = [key for key in shared if (first[key] < MISS) != (second[key] < MISS)]
    before, after = (
        _reasons(side, [key for key in crossed if means[key] < MISS])
        for side, means in ((base, first), (new, second))
    )
    found = [
        Flip(
            unit=key[0],
            probe=key[1],
            base=float(first[key]),
            new=float(second[key]),
            reason=(after if second[key] < MISS else before).get(key, ""),
        )
        for key in crossed
    ]
    return sorted(found, key=lambda flip: (not flip.missed_now, flip.unit, flip.probe))


def _means(samples: "DataFrame") -> "Series[float]":
    scored = samples[samples[KNOWLEDGE].notna()]
    return scored.groupby(["unit", "probe_id"])[KNOWLEDGE].mean()


def _reasons(side: Side, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return one line for each probe: why its worst criterion got what it got."""
    if not keys:
        return {}
    rows = side.criteria
    rows = rows[(rows["grader"] == "panel") & (rows["grading"] == 0) & rows["score"].notna()]
    rows = rows.assign(score=rows["score"].astype(float)).sort_values("score", kind="stable")
    worst = rows.drop_duplicates(["unit", "probe_id"])
    wanted = set(keys)
    cells = worst[["unit", "probe_id", "criterion", "reasoning"]].itertuples(index=False)
    return {
        (unit, probe): f"{criterion}: {' '.join(str(reason or '').split())}"[:_LONGEST_REASON]
        for unit, probe, criterion, reason in cells
        if (unit, probe) in wanted
    }
