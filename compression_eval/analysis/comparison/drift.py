"""Whether the grader changed between two runs, by the anchors that both had graded."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison import wording
from compression_eval.analysis.comparison.blocks import Lines, Section, Table
from compression_eval.analysis.gradings import ANCHOR
from compression_eval.analysis.statistics.intervals import Spread
from compression_eval.calibration.anchors import AnchorGrading, off_by
from compression_eval.grading.six_dimensions import KEYS

if TYPE_CHECKING:
    from compression_eval.analysis.comparison.sides import Side

DRIFT = 0.3
"""A change of the grader, in points of knowledge, that is warned of whatever the margin is."""


@dataclass(frozen=True)
class Shift:
    """How far the graders of two runs are apart on the anchors that both graded."""

    measure: str
    anchors: int
    base: float
    """Graded minus expected, in points, on average; likewise the next."""
    new: float
    spread: Spread | None
    """Over the anchors; None with a single one."""

    @property
    def change(self) -> float:
        """How much more the graders of the new side give, in points."""
        return self.new - self.base

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval of the change; infinite with a single anchor."""
        if self.spread is None:
            return math.inf
        low, high = self.spread.interval(self.change)
        return (high - low) / 2

    @property
    def drifted(self) -> bool:
        """Whether the change is one to warn of, and more than the anchors vary by."""
        large = abs(self.change) >= DRIFT or math.isclose(abs(self.change), DRIFT)
        return large and (abs(self.change) > self.half_width or self.half_width <= DRIFT)


@dataclass(frozen=True)
class Drift:
    """What is known of a change of the grader between two sides."""

    graded: tuple[int, int]
    """Anchors that were graded on each side."""
    failed: tuple[int, int]
    """Gradings of anchors that failed."""
    shifts: Sequence[Shift]
    """Knowledge first; empty if the sides share no anchor."""
    graders: tuple[Sequence[str], Sequence[str]]
    """Who graded the answers of each side."""

    @property
    def too_few(self) -> bool:
        """Whether a drift that counts could not be seen: the interval is too wide for it."""
        return bool(self.shifts) and self.shifts[0].half_width > DRIFT

    @property
    def warning(self) -> str:
        """What is to be said in front of everything else; empty if there is nothing."""
        shift = self.shifts[0] if self.shifts else None
        drifted = shift is not None and shift.drifted
        if not drifted and self.graders[0] == self.graders[1]:
            return ""
        found = "how far they are apart was not measured"
        if shift is not None:
            change = wording.change(shift.change, shift.measure)
            found = (
                f"on the same {shift.anchors} answers of known worth that of new gives {change} "
                f"{shift.measure}"
            )
        what = "the grader changed" if drifted else "the graders of base and new differ"
        return f"WARNING {what}: {found}; --regrade MODEL grades both sides alike"


def drift(base: "Side", new: "Side") -> Drift:
    """Return how far the graders of two sides are apart."""
    sides = [_anchors(side) for side in (base, new)]
    found = (_shift(key, *(off_by(each, key) for each in sides)) for key in KEYS)
    done = [len({each.digest for each in side if not each.failure}) for side in sides]
    failed = [sum(bool(each.failure) for each in side) for side in sides]
    return Drift(
        graded=(done[0], done[1]),
        failed=(failed[0], failed[1]),
        shifts=[shift for shift in found if shift is not None],
        graders=(base.graders, new.graders),
    )


def _anchors(side: "Side") -> list[AnchorGrading]:
    cells = side.samples[ANCHOR].dropna()
    return [AnchorGrading.model_validate_json(str(cell)) for cell in cells]


def _shift(key: str, base: Mapping[str, float], new: Mapping[str, float]) -> Shift | None:
    shared = sorted(base.keys() & new.keys())
    if not shared:
        return None
    changes = [new[name] - base[name] for name in shared]
    spread = None
    if len(changes) > 1:
        spread = Spread(stdev(changes) / len(changes) ** 0.5, len(changes) - 1)
    return Shift(
        measure=key,
        anchors=len(shared),
        base=fmean(base[name] for name in shared),
        new=fmean(new[name] for name in shared),
        spread=spread,
    )


def drift_section(found: Drift) -> Section:
    """Return how far the graders are off known marks, and apart, as a part of the page."""
    without = [
        label for label, graded in zip(("base", "new"), found.graded, strict=True) if not graded
    ]
    lines = [*_failures(found)]
    if found.too_few:
        lines.append(f"too few anchors to see a drift of {DRIFT:g} of knowledge")
    if not found.shifts:
        why = f"no anchors in {' and '.join(without)}" if without else "no anchor is in both"
        lines.append(f"not measured: {why}; run both with -T anchors=12")
        return Section(_TITLE, [Lines(lines)])
    rows = [
        [
            wording.measure_name(each.measure),
            str(each.anchors),
            wording.change(each.base, each.measure),
            wording.change(each.new, each.measure),
            wording.change(each.change, each.measure),
            wording.interval(each.spread, each.change, each.measure),
        ]
        for each in found.shifts
    ]
    heads = ("", "anchors", "base off by", "new off by", "drift", "95 %")
    return Section(
        _TITLE, [Table(heads, rows, (1, len(heads))), *([Lines(lines)] if lines else [])]
    )


_TITLE = "Did the grader change? Answers of known worth that both sides had graded"


def _failures(found: Drift) -> Iterator[str]:
    for label, failed in zip(("base", "new"), found.failed, strict=True):
        if failed:
            yield f"{label}: {failed} gradings of anchors failed"
