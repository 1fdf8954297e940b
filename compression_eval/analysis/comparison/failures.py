"""What failed on each side: never a score, always beside the scores."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame, Series

GRADER_FAILED = ("grader_failed", "not scored", "no score")
"""Reasons that say nothing of an arm begin so: its answer is there, but has no grade."""

_LONGEST = 80

_MOST_UNGRADED = 0.05
"""Share of the samples of a side that may be without a grade."""

_APART = 0.03
"""How far these shares of two sides may lie apart."""


@dataclass(frozen=True)
class Failures:
    """The failures of one side."""

    samples: int
    failed: int
    """Samples whose compression or answer failed, or that ended in an error."""
    states: int
    failed_states: int
    """Compressions that gave no state to answer from."""
    reasons: Mapping[str, int]
    """Failed samples by reason, the most frequent first."""
    ungraded: int
    """Samples that only the grader failed on."""
    ungraded_reasons: Mapping[str, int]
    """The same by reason."""

    @property
    def rate(self) -> float:
        """Share of the samples that failed."""
        return self.failed / self.samples if self.samples else 0.0

    @property
    def ungraded_rate(self) -> float:
        """Share of the samples that only the grader failed on."""
        return self.ungraded / self.samples if self.samples else 0.0


def failures(samples: "DataFrame") -> Failures:
    """Count what failed among the samples of a side."""
    failed, without = samples[failed_by_arm(samples)], samples[ungraded(samples)]
    states = samples[samples["state_id"].notna()].drop_duplicates(["log_path", "unit", "replicate"])
    return Failures(
        samples=len(samples),
        failed=len(failed),
        states=len(states),
        failed_states=int((states["state_status"] != "ok").sum()),
        reasons=_reasons(failed),
        ungraded=len(without),
        ungraded_reasons=_reasons(without),
    )


def _reasons(samples: "DataFrame") -> dict[str, int]:
    reasons = Counter(str(reason)[:_LONGEST] for reason in samples["failure"])
    return dict(reasons.most_common())


def ungraded(samples: "DataFrame") -> "Series[bool]":
    """Return which samples have no score only because a grader failed."""
    return samples["failure"].astype(str).str.startswith(GRADER_FAILED)


def failed_by_arm(samples: "DataFrame") -> "Series[bool]":
    """Return which samples have no score because something of the arm failed."""
    return samples["failure"].astype(bool) & ~ungraded(samples)


def too_few_grades(base: Failures, new: Failures) -> bool:
    """Return whether so many grades are missing that what is left may not stand for the sides."""
    rates = (base.ungraded_rate, new.ungraded_rate)
    return max(rates) > _MOST_UNGRADED or abs(rates[0] - rates[1]) > _APART


def chance_of_rise(base: "DataFrame", new: "DataFrame") -> float:
    """Return the one-sided probability that so many more samples fail in the new arm by chance.

    An exact permutation test: were the arms alike, any of the compressions of a conversation could
    have been those of the new arm. The unit is the compression, because all probes of one that
    failed fail together; with a single probe it is the exact test of Cochran, Mantel and Haenszel.

    Args:
        base: Samples of a side, with a column ``state``, on the probes that both were asked. Those
            that only the grader failed on did not fail.
        new: Likewise.
    """
    import numpy

    counted = [
        failed_by_arm(frame).groupby([frame["unit"], frame["log_path"], frame["state"]]).sum()
        for frame in (base, new)
    ]
    chance = numpy.ones(1)
    observed = 0
    for unit in sorted(set(counted[0].index.unique(0)) & set(counted[1].index.unique(0))):
        before, after = (each.loc[unit].astype(int).tolist() for each in counted)
        observed += sum(after)
        # By the number of compressions chosen and of failures in them: how many choices there are.
        ways = numpy.zeros((len(after) + 1, sum(before) + sum(after) + 1))
        ways[0, 0] = 1
        for failed in [*before, *after]:
            ways[1:, failed:] += ways[:-1, : ways.shape[1] - failed].copy()
        chance = numpy.convolve(chance, ways[-1] / ways[-1].sum())
    return min(1.0, float(chance[observed:].sum()))


def rise(base: Failures, new: Failures) -> bool:
    """Return whether the new side fails more often."""
    return new.rate > base.rate
