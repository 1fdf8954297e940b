"""What an arm costs, and what failed in it."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.measures import values
from compression_eval.grading.rubric import KNOWLEDGE

if TYPE_CHECKING:
    from pandas import DataFrame

_LONGEST = 120


@dataclass(frozen=True)
class Costs:
    """Means per compression and per answer; NaN where nothing is known."""

    compressions: int
    """Compressions that gave a state."""
    tokens_before: float
    """Mean over conversations of the mean over compressions, as are the next two."""
    tokens_after: float
    removed: float
    """Share of the history's tokens."""
    calls: float
    """Model calls per compression, as are the next three."""
    input_tokens: float
    output_tokens: float
    seconds: float
    answer_input_tokens: float
    """Per answer, as is everything that follows up to the sample's time."""
    answer_output_tokens: float
    answer_cached_tokens: float
    grader_input_tokens: float
    grader_output_tokens: float
    grader_cached_tokens: float
    sample_seconds: float
    total_tokens: float
    """Of all roles over all samples, in and out."""
    dollars: float
    """Of the whole arm; NaN unless the runs knew every price."""


@dataclass(frozen=True)
class Failures:
    """What has no score in an arm, and what the mean would be if that were 0."""

    samples: int
    scored: int
    states: int
    failed_states: dict[str, int]
    """Compressions that failed, by how they ended."""
    suspect: int
    """Compressions whose state stands, but reads like a refusal or is nearly empty."""
    reasons: dict[str, int]
    """Samples without a score, by reason."""
    abstained: int
    """Scored answers that say that they do not know, or nothing."""
    lower_bound: float
    """Knowledge on its own probes with all failed samples as 0, whatever made them fail."""


def costs(samples: "DataFrame", states: "DataFrame") -> Costs:
    """Return what one arm costs.

    Args:
        samples: Rows of the arm.
        states: Rows of the arm.
    """
    fine = states[states["state_status"] == "ok"]
    roles = [
        f"{role}_{kind}_tokens" for role in ("answer", "grader") for kind in ("input", "output")
    ]
    # Each compression stands on one sample, so that these can be added up.
    own = ["compress_input_tokens", "compress_output_tokens"]
    return Costs(
        compressions=len(fine),
        tokens_before=_by_conversation(fine, "tokens_original"),
        tokens_after=_by_conversation(fine, "tokens_state"),
        removed=_by_conversation(fine, "tokens_removed"),
        calls=_mean(fine, "compress_calls"),
        input_tokens=_mean(fine, "compress_input_tokens"),
        output_tokens=_mean(fine, "compress_output_tokens"),
        seconds=_mean(fine, "compress_seconds"),
        answer_input_tokens=_mean(samples, "answer_input_tokens"),
        answer_output_tokens=_mean(samples, "answer_output_tokens"),
        answer_cached_tokens=_mean(samples, "answer_cache_read_tokens"),
        grader_input_tokens=_mean(samples, "grader_input_tokens"),
        grader_output_tokens=_mean(samples, "grader_output_tokens"),
        grader_cached_tokens=_mean(samples, "grader_cache_read_tokens"),
        sample_seconds=_mean(samples, "total_seconds"),
        total_tokens=float(samples[[*roles, *own]].sum().sum()),
        dollars=float(samples["dollars"].sum(min_count=len(samples))),
    )


def failures(samples: "DataFrame", states: "DataFrame") -> Failures:
    """Count what failed in one arm.

    Args:
        samples: Rows of the arm.
        states: Rows of the arm.
    """
    failed = samples[~samples["scored"]]
    ended = Counter(str(status) for status in states["state_status"] if status != "ok")
    reasons = Counter(" ".join(str(reason).split())[:_LONGEST] for reason in failed["failure"])
    return Failures(
        samples=len(samples),
        scored=int(samples["scored"].sum()),
        states=len(states),
        failed_states=dict(ended.most_common()),
        suspect=int(states["suspect"].fillna("").ne("").sum()),
        reasons=dict(reasons.most_common()),
        abstained=int((samples["scored"] & (samples["abstained"] == True)).sum()),  # noqa: E712
        lower_bound=values(samples, KNOWLEDGE, failed_as_zero=True).mean(),
    )


def _by_conversation(states: "DataFrame", column: str) -> float:
    return float(states.groupby("fixture")[column].mean().mean())


def _mean(frame: "DataFrame", column: str) -> float:
    return float(frame[column].mean())
