"""The measures, failures, measures on which arms cannot vary, and the verdict on each measure."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inspect_ai.log import read_eval_log_sample

from compression_eval.analysis.arms import ARGUMENT
from compression_eval.analysis.columns import Seen
from compression_eval.analysis.comparison.sides import Side, differences, states_in
from compression_eval.analysis.logs import reading
from compression_eval.analysis.statistics.intervals import (
    ArmValues,
    Difference,
    Observation,
    Retention,
    Spread,
    paired_difference,
    retention,
)
from compression_eval.analysis.statistics.significance import (
    DEFAULT_THRESHOLD,
    Judged,
    judge,
    known_exactly,
)
from compression_eval.compressors.artifacts import SUFFIX
from compression_eval.compressors.registry import COMPRESSORS
from compression_eval.fixtures.digests import digest
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, OVERALL, structure
from compression_eval.record import render_messages
from compression_eval.versioning import TEXTS

if TYPE_CHECKING:
    from pandas import DataFrame, Series

RECALL, SURVIVAL = "fact_recall", "fact_survival"
SURVIVAL_BY = "survival_by"
"""Column that says whose word `SURVIVAL` is: a ``reader``'s or the ``look-up``'s."""

SHARES = frozenset({RECALL, SURVIVAL})
"""Measures from 0 to 1; the others go from 0 to 5."""

HEADLINE: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions, RECALL, SURVIVAL)
"""The measures: first the one that decides comparisons, then the others."""

IN_GROUPS: tuple[str, ...] = (KNOWLEDGE, RECALL, SURVIVAL)
"""Measures in each group of a breakdown."""

BREAKDOWNS: Mapping[str, str] = {
    "probe_type": "probe type",
    "task_type": "task type",
    "length": "length of the conversation",
    "qualified": "verdict on the probe",
}
"""Columns of breakdowns, with their titles."""

CLOSEST = 0.5
"""Floor and ceiling nearer than this (0 to 5; shares the same part of their range) are close."""

GRADER_FAILED = ("grader_failed", "not scored", "no score")
"""Prefixes of reasons that are not the arm's: its answer exists, but has no grade."""

MIN_CONTROLLED = 2 / 3
"""Share of a side's graded probes that both controls must have a grade on."""

MAX_REASON = 80
MAX_UNGRADED, MAX_UNGRADED_APART = 0.05, 0.03
"""Share of a side's samples that may be without a grade, and how far those of two may differ."""


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

    Answers are averaged within a state, states within a probe, probes within a conversation, and
    every conversation counts the same. Failed samples have no value and are left out.

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
    folder may hold two states: a second one is ``0.1``.
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


# ----- failures: never a score, always beside the scores


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


# ----- arms whose results cannot vary


def exact_measures(side: Side) -> frozenset[str]:
    """Return the measures on which a side cannot vary."""
    compressor, compressed_by = side.settings["compressor"], side.settings["compressor model"]
    embedded = all(map(_embedded, (compressed_by, side.model, *side.graders)))
    # Only the compressor can vary then; a user's own is judged by its results: every conversation
    # was compressed several times, always to the same scores, and without a model call. What the
    # embedded model makes of another prompt is no finding.
    samples = side.samples
    if embedded and not samples["failure"].astype(bool).any() and not called_a_model(side):
        runs = samples["log_path"].astype(str) + " " + samples["state"].astype(str)
        by_probe = samples.groupby(["unit", "probe_id"])[list(HEADLINE)]
        apart = (by_probe.max() - by_probe.min()).to_numpy(na_value=0.0)
        if runs.groupby(samples["unit"]).nunique().min() > 1 and not apart.any():
            return frozenset(HEADLINE)
    return exact_of(compressor, compressed_by, side.model, side.graders)


def exact_of(
    compressor: str, compressor_model: str, model: str, graders: Sequence[str]
) -> frozenset[str]:
    """Return the measures on which an arm of known strategy cannot vary."""
    if not same_every_time(compressor, compressor_model):
        return frozenset()
    if not _embedded(model):
        return frozenset({SURVIVAL})
    return frozenset(HEADLINE) if all(map(_embedded, graders)) else SHARES


def stands_in(side: Side) -> bool:
    """Return whether the embedded model compressed instead of a language model."""
    return called_a_model(side) and _embedded(side.settings["compressor model"])


def called_a_model(side: Side) -> bool:
    """Return whether any compression called a model."""
    return bool(side.samples["compress_calls"].sum() > 0)


def _known_mechanical(side: Side) -> bool:
    """Return whether no model, of a vendor either, wrote a side's states, as far as is known."""
    compressor = side.settings["compressor"]
    return (
        same_every_time(compressor, side.settings["compressor model"])
        and not called_a_model(side)
        and compressor.removesuffix(SUFFIX) != "recorded"
    )


def no_language_model(side: Side) -> bool:
    """Return whether an arm is known to have been run without any language model."""
    return len(exact_measures(side)) == len(HEADLINE)


def same_every_time(compressor: str, compressor_model: str) -> bool:
    """Return whether an arm's compressions of one history are all the same."""
    name = compressor.removesuffix(SUFFIX)
    known = COMPRESSORS.get(name)
    # A user's own strategy may vary, whatever its model.
    if known is None or name == "command":
        return False
    return not known.calls_model or _embedded(compressor_model)


def _embedded(models: str) -> bool:
    return all(name.startswith("embedded/") for name in models.split(", "))


def same_answers(base: Side, new: Side) -> int:
    """Return how many answers both sides gave, if they are the same ones, byte for byte; else 0.

    Counted are the probes that both were asked. Each answer must come as often on both sides, by
    its share where one has more epochs. Where anything failed they are not the same.
    """
    first, second = (side.samples for side in (base, new))
    if not (first["scored"].all() and second["scored"].all()):
        return 0
    answers = [
        {
            key: rows["answer"].astype(str).value_counts(normalize=True).to_dict()
            for key, rows in frame.groupby(["unit", "probe_id"])[["answer"]]
        }
        for frame in (first, second)
    ]
    shared = answers[0].keys() & answers[1].keys()
    if any(answers[0][key] != answers[1][key] for key in shared):
        return 0
    return sum(key in shared for key in zip(first["unit"], first["probe_id"], strict=True))


def same_states(base: Side, new: Side) -> bool:
    """Return whether both sides answered from the same states, each as often, byte for byte."""
    first, second = (_states_by_unit(side) for side in (base, new))
    shared = first.keys() & second.keys()
    return all(first[unit] == second[unit] for unit in shared)


def _states_by_unit(side: Side) -> dict[str, dict[str, float]]:
    """Return the share of each state, by its digest, among the states of each unit."""
    rows = states_in(side.samples)[["unit", "log_path", "sample", "epoch"]]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for unit, path, sample, epoch in rows.itertuples(index=False, name=None):
        with reading(path):
            read = read_eval_log_sample(
                path, sample, epoch, resolve_attachments=True, exclude_fields={"events"}
            )
        recorded = Seen(read, path).recorded
        found[unit][digest(render_messages(recorded.context)) if recorded else ""] += 1
    return {
        unit: {name: count / states.total() for name, count in states.items()}
        for unit, states in found.items()
    }


def unread_changes(base: Side, new: Side) -> tuple[list[str], bool]:
    """Return what differs between two arms that the embedded compressor never read.

    It works on the messages and the budget alone. Of a focus topic it takes note where a strategy
    hands it over as data, which `anchored` and `regenerative` do.

    Returns:
        The names, such as ``prompt``, and whether nothing else differs.
    """
    settings = (base.settings, new.settings)
    names = {each["compressor"] for each in settings}
    known = COMPRESSORS.get(next(iter(names)).removesuffix(SUFFIX))
    if len(names) > 1 or known is None or not known.calls_model:
        return [], False
    if not all(_embedded(each["compressor model"]) for each in settings):
        return [], False
    unread = {"prompt", "instructions", TEXTS}
    if "summary_tokens" not in known.arguments.model_fields:
        unread.add("focus_topic")
    changed = [name.removeprefix(ARGUMENT) for name, _, _ in differences(base, new)]
    unread_settings = [name for name in changed if name in unread]
    return unread_settings, len(unread_settings) == len(changed)


# ----- verdicts


@dataclass(frozen=True)
class Line:
    """One measure, on all probes or on those of one group."""

    measure: str
    judged: Judged
    group: str = ""

    @property
    def difference(self) -> Difference:
        """The difference with its intervals."""
        return self.judged.difference


@dataclass(frozen=True)
class Rules:
    """The rules for verdicts."""

    threshold: float
    """For scores from 0 to 5: the margin of the decision, and what counts on the others."""
    exact: frozenset[str]
    """Measures on which both arms come out the same every time."""
    failures_rise: bool
    untold: bool = False
    """Whether nothing is told, since the arms differ only in what nobody read."""


Samples = tuple["DataFrame", "DataFrame"]
"""Those of base and new, with states."""


@dataclass(frozen=True)
class FactsKept:
    """How many facts the states of both sides hold."""

    difference: Difference
    """Of the share of the facts in a state."""
    read: bool
    """Whether by a reader's word; else by look-up."""


def facts_kept(base: Side, new: Side, rules: "Rules") -> FactsKept | None:
    """Return how many facts the states hold, by the word of a reader.

    Looked up they are only where both arms are known to run without any model: a model may say a
    fact in other words.

    Returns:
        None where it is not known.
    """
    samples = (base.samples, new.samples)
    if all((frame[SURVIVAL_BY] == "reader").any() for frame in samples):
        difference = _difference(samples, SURVIVAL)
        return FactsKept(difference, read=True) if difference else None
    if not all(map(_known_mechanical, (base, new))):
        return None
    difference = _difference(samples, SURVIVAL)
    if difference is None:
        return None
    known = known_exactly({SURVIVAL: difference}, rules.exact)[SURVIVAL]
    return FactsKept(known, read=False)


def primary(samples: Samples, rules: Rules, *, failed_as_zero: bool = False) -> Difference | None:
    """Return the difference in knowledge, which decides; None if no probe has it on both sides."""
    difference = _difference(samples, KNOWLEDGE, failed_as_zero=failed_as_zero)
    return known_exactly({KNOWLEDGE: difference}, rules.exact)[KNOWLEDGE] if difference else None


def others(samples: Samples, rules: Rules, *, failed_as_zero: bool = False) -> list[Line]:
    """Return a line for each measure beside it that both sides have; one family of tests."""
    by_measure = {
        ("", name): _difference(samples, name, failed_as_zero=failed_as_zero)
        for name in HEADLINE
        if name != KNOWLEDGE
    }
    return _judged(by_measure, rules)


def breakdown(samples: Samples, column: str, rules: Rules) -> list[Line]:
    """Return the lines of each group of a column; one family of tests.

    Nothing is returned where there is only one group: the headline says the same.
    """
    groups = sorted({str(value) for frame in samples for value in frame[column].dropna()})
    if len(groups) < 2:
        return []
    base, new = samples
    by_group = {
        (group, name): _difference((base[base[column] == group], new[new[column] == group]), name)
        for group in groups
        for name in IN_GROUPS
    }
    return _judged(by_group, rules)


def without_spread(difference: Difference) -> Difference:
    """Return a difference of which only the two means are told."""
    return replace(difference, here=None, elsewhere=None)


def _difference(
    samples: Samples, measure: str, *, failed_as_zero: bool = False
) -> Difference | None:
    base, new = (values(frame, measure, failed_as_zero=failed_as_zero) for frame in samples)
    return paired_difference(base, new)


def _judged(by_key: Mapping[tuple[str, str], Difference | None], rules: Rules) -> list[Line]:
    known = {key: each for key, each in by_key.items() if each is not None}
    known = known_exactly(known, {key for key in known if key[1] in rules.exact})
    thresholds = {key: threshold_of(key[1], rules.threshold) for key in known}
    limits = {
        key: shown_change(each, key[1]).lstrip("+")
        for key, each in thresholds.items()
        if key[1] in SHARES
    }
    judged = judge(known, thresholds, failures_rise=rules.failures_rise, limits=limits)
    if rules.untold:
        why = "cannot tell: the embedded compressor does not read what the arms differ in"
        judged = {
            key: Judged(without_spread(each), None, "cannot tell", "open", why)
            for key, each in known.items()
        }
    return [Line(measure, each, group) for (group, measure), each in judged.items()]


def retentions(base: Side, new: Side) -> tuple[Retention, Retention] | None:
    """Return where both sides stand in knowledge between the arms none and full.

    Returns:
        None without those arms by the same readers, or where they lack too many grades.
    """
    kept = []
    for side in (base, new):
        if side.controls is None:
            return None
        read = (with_states(each.samples) for each in (side.controls.floor, side.controls.ceiling))
        floor, ceiling = (values(samples, KNOWLEDGE) for samples in read)
        own = values(side.samples, KNOWLEDGE)
        found = retention(own, floor, ceiling, closest=CLOSEST)
        if found is None or found.probes < MIN_CONTROLLED * len(own.by_item):
            return None
        kept.append(found)
    return kept[0], kept[1]


# ----- numbers in every form of output

_SHORT = {
    "context_awareness": "context",
    "artifact_trail": "artifact",
    "instruction_following": "instruction",
}


def measure_name(name: str) -> str:
    """Return a measure's display name, short enough for a terminal's table."""
    return _SHORT.get(name, name.replace("_", " "))


def shown_value(number: float, measure: str) -> str:
    """Return a mean: a score with two digits, a share as a percentage."""
    return f"{number:.1%}" if measure in SHARES else f"{number:.2f}"


def shown_change(number: float, measure: str, threshold: float = math.inf) -> str:
    """Return a difference with its sign.

    Args:
        number: The difference.
        measure: What of.
        threshold: The smallest difference that counts, in the unit of the measure. A smaller one
            is given with as many digits as it takes to be seen to be smaller.
    """
    scale, digits, unit = (100, 1, " pp") if measure in SHARES else (1, 2, "")
    smaller = abs(number) < threshold and not math.isclose(abs(number), threshold)
    while smaller and digits < 6 and round(abs(number) * scale, digits) >= threshold * scale:
        digits += 1
    # Without adding 0 a rounded -0.00 would read as a loss.
    return f"{round(number * scale, digits) + 0.0:+.{digits}f}{unit}"


def shown_interval(spread: Spread | None, estimate: float, measure: str) -> str:
    """Return an interval at 95 %, ``exact`` or ``no spread``; a dash where there is none."""
    if spread is None:
        return "-"
    if spread.error == 0:
        return "exact" if math.isinf(spread.freedom) else "no spread"
    most, scale, digits = (1.0, 100, 1) if measure in SHARES else (MAX_SCORE, 1, 2)
    # No difference can be larger than the scale is long.
    low, high = (min(max(limit, -most), most) * scale for limit in spread.interval(estimate))
    return f"{low + 0.0:+.{digits}f} to {high + 0.0:+.{digits}f}"


def shown_p(number: float | None) -> str:
    """Return a p-value; a dash where there is none."""
    if number is None:
        return "-"
    return "<.001" if number < 0.001 else f"{number:.3f}".removeprefix("0")
