"""What is measured, its mean, what failed next to it, and how numbers are shown.

Tables of `compare`, `report` and `sweep` take their means from `values`: a sample that failed has
no score, answers are averaged within a state, states within a probe, probes within a conversation,
and every conversation counts the same. How many samples failed is counted by `failures`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.analysis.statistics.intervals import ArmValues, Observation, Spread
from compression_eval.analysis.statistics.significance import (
    DEFAULT_THRESHOLD,
    RECALL_OF_A_POINT,
)
from compression_eval.compressors.names import CALLS_MODEL, SUFFIX
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, OVERALL, structure

if TYPE_CHECKING:
    from pandas import DataFrame, Series

RECALL, SURVIVAL = "fact_recall", "fact_survival"
SURVIVAL_BY = "survival_by"
"""Column that says whose word `SURVIVAL` is: a ``reader``'s or the ``look-up``'s."""

SHARES = frozenset({RECALL, SURVIVAL})
"""Measures from 0 to 1."""

HEADLINE: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions, RECALL, SURVIVAL)
"""The measures: first the one that decides comparisons. Those that are no shares go from 0 to 5."""

CLOSEST = 0.5
"""Floor and ceiling nearer than this (0 to 5; shares the same part of their range) are close."""

GRADER_FAILED = ("grader_failed", "not scored", "no score")
"""Prefixes of reasons that are not the arm's: its answer exists, but has no grade."""

MAX_REASON = 80
MAX_UNGRADED, MAX_UNGRADED_APART = 0.05, 0.03
"""Share of a side's samples that may be without a grade, and how far those of two may differ."""


def threshold_of(measure: str, threshold: float = DEFAULT_THRESHOLD) -> float:
    """Return the smallest difference that counts, in the unit of a measure of `HEADLINE`.

    The threshold is given for scores from 0 to 5; that of a share is the same part of its range.
    """
    return threshold / MAX_SCORE if measure in SHARES else threshold


# ----- means


def values(samples: "DataFrame", measure: str, *, failed_as_zero: bool = False) -> ArmValues:
    """Return a side's values of a measure.

    Args:
        samples: Rows of a side's samples, with a column ``state``.
        measure: The name of its column.
        failed_as_zero: Count samples without a value because the arm failed as 0. Samples that were
            not graded, or not on the measure, never have a value.
    """
    scores = samples[measure].astype(float)
    if failed_as_zero:
        scores = scores.where(~(failed_by_arm(samples) & scores.isna()), 0.0)
    names = ("fixture", "unit", "probe_id", "log_path", "state")
    cells = (samples[name].tolist() for name in names)  # by far faster than rows
    return ArmValues.of(
        Observation(str(fixture), str(unit), str(probe), f"{log} {state}", value)
        for fixture, unit, probe, log, state, value in zip(*cells, scores.tolist(), strict=True)
        if not math.isnan(value)
    )


def mean_score(samples: "DataFrame", measure: str = KNOWLEDGE) -> float:
    """Return the point estimate that comparisons and reports give, for the rows of one arm.

    Args:
        samples: Rows of `samples_frame`.
        measure: One of its scores (0 to 5), ``fact_recall`` or ``fact_survival`` (0 to 1).

    Returns:
        The mean in the unit of the measure; NaN if no sample has a value.
    """
    return values(with_states(samples), measure).mean()


def with_states(samples: "DataFrame") -> "DataFrame":
    """Return samples with a column ``state``: which compression of its run each is about.

    A sample that ended in an error may have no record that says so; the others of its epoch do.
    They are numbered by replicate, of which a log that was retried away from its first attempt's
    folder may contain two states: a second one is ``0.1``.
    """
    from pandas import Series

    keys = ["log_path", "epoch"]
    known = samples[[*keys, "replicate"]].dropna(subset=["replicate"]).drop_duplicates(keys)
    cells = known.itertuples(index=False, name=None)
    by_epoch = {(log, epoch): str(int(replicate)) for log, epoch, replicate in cells}
    numbers: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    states = []
    rows = samples[[*keys, "unit", "state_id"]].itertuples(index=False, name=None)
    for log, epoch, unit, state_id in rows:
        state = by_epoch.get((log, epoch), f"epoch {epoch}")
        if isinstance(state_id, str):
            seen = numbers[log, unit, state]
            if number := seen.setdefault(state_id, len(seen)):
                state = f"{state}.{number}"
        states.append(state)
    return samples.assign(state=Series(states, index=samples.index, dtype=object))


def states_read(samples: "DataFrame") -> bool:
    """Return whether a language model read which facts the states of an arm hold."""
    return bool((samples[SURVIVAL_BY] == "reader").any())


def states_in(samples: "DataFrame") -> "DataFrame":
    """Return one row per compression of a side."""
    known = samples[samples["state_id"].notna()]
    return known.drop_duplicates(["log_path", "unit", "state_id"])


# ----- failures: never a score, always besides the scores


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
    states = states_in(samples)
    reasons, ungraded_reasons = (
        dict(Counter(str(why)[:MAX_REASON] for why in rows["failure"]).most_common())
        for rows in (failed, without)
    )
    return Failures(
        samples=len(samples),
        failed=len(failed),
        states=len(states),
        failed_states=int((states["state_status"] != "ok").sum()),
        reasons=reasons,
        ungraded=len(without),
        ungraded_reasons=ungraded_reasons,
    )


def ungraded(samples: "DataFrame") -> "Series[bool]":
    """Return which samples have no score only because a grader failed."""
    return samples["failure"].astype(str).str.startswith(GRADER_FAILED)


def failed_by_arm(samples: "DataFrame") -> "Series[bool]":
    """Return which samples have no score because the arm failed."""
    return samples["failure"].astype(bool) & ~ungraded(samples)


def too_few_grades(base: Failures, new: Failures) -> bool:
    """Return whether too many grades are missing for the rest to represent the sides."""
    rates = (base.ungraded_rate, new.ungraded_rate)
    return max(rates) > MAX_UNGRADED or abs(rates[0] - rates[1]) > MAX_UNGRADED_APART


def chance_of_rise(base: "DataFrame", new: "DataFrame") -> float:
    """Return the one-sided probability that so many more samples fail in the new arm by chance.

    An exact permutation test: were the arms alike, any of the compressions of a conversation could
    have been those of the new arm. The unit is the compression, because all probes of one that
    failed fail together; with a single probe it is the exact test of Cochran, Mantel and Haenszel.

    Args:
        base: Samples of a side, with a column ``state``, on the probes that both were asked. Those
            that only the grader failed on did not fail.
        new: The same.
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


# ----- arms whose results cannot vary


def exact_of(
    compressor: str, compressor_model: str, model: str, graders: Sequence[str], *, read: bool
) -> frozenset[str]:
    """Return the measures on which an arm of known strategy cannot vary.

    A language model may grade the same answer otherwise, or read (`read`) the same state otherwise.
    """
    if not same_every_time(compressor, compressor_model):
        return frozenset()
    varying = {SURVIVAL} if read else set()
    if all(map(embedded, (model, *graders))):
        return frozenset(HEADLINE) - varying
    return frozenset({SURVIVAL}) - varying


def same_every_time(compressor: str, compressor_model: str) -> bool:
    """Return whether an arm's compressions of one history are all the same."""
    name = compressor.removesuffix(SUFFIX)
    # A user's own strategy or program may vary, whatever its model.
    if name not in CALLS_MODEL or name == "command":
        return False
    return not CALLS_MODEL[name] or embedded(compressor_model)


def embedded(models: str) -> bool:
    """Return whether models, with commas between them, are the embedded one."""
    return all(name.startswith("embedded/") for name in models.split(", "))


# ----- numbers in every form of output

_SHORT = {
    "context_awareness": "context",
    "artifact_trail": "artifact",
    "instruction_following": "instruction",
}


def measure_name(name: str) -> str:
    """Return a measure's display name, short enough for a terminal's table."""
    return _SHORT.get(name, name.replace("_", " "))


def shown_value(number: float | None, measure: str) -> str:
    """Return a mean: a score with two digits, a share as a percentage, a large amount without."""
    if number is None:
        return "-"
    if measure in SHARES:
        return f"{number:.1%}"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.2f}"


def shown_change(number: float, measure: str, threshold: float = math.inf) -> str:
    """Return a difference with its sign.

    Args:
        number: The difference.
        measure: What of.
        threshold: The smallest difference that counts, in the unit of the measure. A smaller one
            is given with as many digits as it takes to be seen to be smaller.
    """
    scale, digits, unit = (100, 1, " pp") if measure in SHARES else (1, 2, "")
    if abs(number) * scale >= 100 and not unit:
        return f"{number:+,.0f}"
    smaller = abs(number) < threshold and not math.isclose(abs(number), threshold)
    while smaller and digits < 6 and round(abs(number) * scale, digits) >= threshold * scale:
        digits += 1
    # Without adding 0 a rounded -0.00 would read as a loss.
    return f"{round(number * scale, digits) + 0.0:+.{digits}f}{unit}"


def margin_in_facts(margin: float) -> str:
    """Return what a margin of knowledge (0 to 5) comes to in fact recall, in words."""
    return f"about {margin * RECALL_OF_A_POINT * 100:.1f} points of fact recall"


def shown_interval(spread: Spread | None, estimate: float, measure: str) -> str:
    """Return an interval at 95 %, ``exact`` or ``no spread``; a dash where there is none."""
    if spread is None:
        return "-"
    limits = spread.interval(estimate)
    if measure not in HEADLINE:  # an amount, which has no scale
        return " to ".join(shown_change(limit, measure) for limit in limits)
    if spread.error == 0:
        return "exact" if spread.exact else "no spread"
    most, scale, digits = (1.0, 100, 1) if measure in SHARES else (MAX_SCORE, 1, 2)
    # No difference can be larger than the scale is long.
    low, high = (min(max(limit, -most), most) * scale for limit in limits)
    return f"{low + 0.0:+.{digits}f} to {high + 0.0:+.{digits}f}"


def shown_p(number: float | None) -> str:
    """Return a p-value; a dash where there is none."""
    if number is None:
        return "-"
    return "<.001" if number < 0.001 else f"{number:.3f}".removeprefix("0")
