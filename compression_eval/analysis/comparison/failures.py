"""What failed on each side: never a score, always beside the scores."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

_LONGEST = 80


@dataclass(frozen=True)
class Failures:
    """The failures of one side."""

    samples: int
    failed: int
    """Samples without a score, whatever the reason."""
    states: int
    failed_states: int
    """Compressions that gave no state to answer from."""
    reasons: Mapping[str, int]
    """Failed samples by reason, the most frequent first."""

    @property
    def rate(self) -> float:
        """Share of the samples that have no score."""
        return self.failed / self.samples if self.samples else 0.0


def failures(samples: "DataFrame") -> Failures:
    """Count what failed among the samples of a side."""
    failed = samples[~samples["scored"]]
    states = samples[samples["state_id"].notna()].drop_duplicates(["log_path", "unit", "replicate"])
    reasons = Counter(str(reason)[:_LONGEST] for reason in failed["failure"])
    return Failures(
        samples=len(samples),
        failed=len(failed),
        states=len(states),
        failed_states=int((states["state_status"] != "ok").sum()),
        reasons=dict(reasons.most_common()),
    )


def rise(base: Failures, new: Failures) -> bool:
    """Return whether the new side fails more often."""
    return new.rate > base.rate
