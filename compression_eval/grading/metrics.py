"""The scorers' metrics; the mean over conversations is the only point estimate.

Samples are averaged within their conversation first, so each counts the same; standard errors and
the interval are over conversations. Other metrics split by the probe's verdict, count what failed,
and measure how well a panel agrees.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import cast, get_args

from inspect_ai.scorer import (
    Metric,
    MetricProtocol,
    SampleScore,
    Score,
    Value,
    ci,
    krippendorff_alpha,
    metric,
)

from compression_eval.fixtures.banks import Verdict
from compression_eval.grading.rubric import FORM_DIMENSION, KNOWLEDGE, structure

MEAN = "compression_eval/over_conversations_mean"
"""Key of the mean in a log's results."""

STDERR = "compression_eval/over_conversations_stderr"
"""Key of its standard error."""

CLUSTER = "cluster"
"""Key of the sample's metadata by which standard errors are clustered: the fixture, or in a run
over a single fixture the probe: an error over one cluster would be 0 and read as certainty."""

VERDICT = "qualified"
"""Key of the sample's metadata that contains the verdict on its probe."""

REGION = "region"
"""Key that contains whether the kept tail alone answers it."""

NO_VERDICT: Verdict = "unknown"


@metric
def over_conversations() -> Metric:
    """Return the mean and its standard error, each conversation counting the same.

    Inspect's own mean counts each sample the same, so that a conversation with more questions
    weighs more. Comparisons and reports weigh conversations equally, and so must a log.
    """

    def compute(scores: list[SampleScore]) -> Value:
        means = _cluster_means(scores)
        several = len(means) > 1
        return {
            "mean": statistics.fmean(means) if means else math.nan,
            "stderr": statistics.stdev(means) / math.sqrt(len(means)) if several else math.nan,
        }

    return compute


@metric
def interval() -> Metric:
    """Return the limits of the 95 % interval of that mean, for more conversations like these.

    It is Inspect's `ci` (Student's t) of the means of the conversations. With `ci(cluster=…)` it
    would be an interval around another mean, in which each sample counts the same. With a single
    cluster there is nothing.
    """
    limits = cast(MetricProtocol, ci())

    def compute(scores: list[SampleScore]) -> Value:
        means = _cluster_means(scores)
        return limits([SampleScore(score=Score(value=m)) for m in means]) if len(means) > 1 else {}

    return compute


def _cluster_means(scores: list[SampleScore]) -> list[float]:
    """Return the mean over the samples of each cluster."""
    by_cluster: dict[str, list[float]] = defaultdict(list)
    for item in scores:
        cluster = (item.sample_metadata or {}).get(CLUSTER, item.sample_id)
        by_cluster[str(cluster)].append(item.score.as_float())
    return [statistics.fmean(own) for own in by_cluster.values()]


@metric
def by_verdict() -> Metric:
    """Return the means over the qualified probes, the others, and those without a verdict.

    A probe that fails with the full history, or passes with nothing, says nothing about
    compression. Its scores stay in the headline, so that a verdict moves no figure. A group without
    a probe is left out, and without a single verdict there is nothing.
    """
    compute = cast(MetricProtocol, over_conversations())

    def apart(scores: list[SampleScore]) -> Value:
        groups: dict[str, list[SampleScore]] = {name: [] for name in get_args(Verdict)}
        for item in scores:
            verdict = (item.sample_metadata or {}).get(VERDICT, NO_VERDICT)
            groups.setdefault(str(verdict), []).append(item)
        present = {name: items for name, items in groups.items() if items}
        if set(present) <= {NO_VERDICT}:
            return {}
        means = {name: cast(Mapping[str, float], compute(own)) for name, own in present.items()}
        return {name: verdict["mean"] for name, verdict in means.items()}

    return apart


@metric(scores="unreduced")
def failed_states() -> Metric:
    """Count the compressions that failed.

    Many samples share a state, so states are counted, not samples; and every epoch is a
    compression of its own, so epochs are not reduced first.
    """

    def count(scores: list[SampleScore]) -> float:
        failed = {
            tuple((item.score.metadata or {}).get(part) for part in ("fixture", "cut", "state_id"))
            for item in scores
            if isinstance(item.score.value, int | float) and item.score.value == 1
        }
        return float(len(failed))

    return count


@metric
def ungraded_criteria() -> Metric:
    """Count the criteria that were asked for and got no score, over the first epoch of each probe.

    A grader that leaves out much is one to look at. Nothing is shown if there are none.
    """

    def count(scores: list[SampleScore]) -> Value:
        ungraded = sum(len((item.score.metadata or {}).get("ungraded") or []) for item in scores)
        return {"count": ungraded} if ungraded else {}

    return count


@metric
def panel_agreement(key: str) -> Metric:
    """Return Krippendorff's alpha (interval scale) of the graders of a panel.

    A unit is one criterion of one answer, a rating what one grader gave it. 1 is perfect
    agreement, 0 what chance gives. With several epochs it is over the first of each probe. With
    a single grader there is nothing.

    Args:
        key: A dimension, for its criteria only; ``knowledge``, for those of all dimensions that it
            is made of; else all criteria count.
    """
    compute = cast(MetricProtocol, krippendorff_alpha(level="interval"))
    if key in structure().dimensions:
        counted = {key}
    else:
        counted = set(structure().dimensions) - ({FORM_DIMENSION} if key == KNOWLEDGE else set())
    wanted = {c.id for c in structure().criteria if c.dimension in counted}

    def alpha(scores: list[SampleScore]) -> Value:
        units = [
            SampleScore(score=Score(value=cast(list[str | int | float | bool], ratings)))
            for item in scores
            for ratings in _ratings(item.score, wanted)
        ]
        return {"krippendorff_alpha": cast(float, compute(units))} if units else {}

    return alpha


def _ratings(score: Score, wanted: set[str]) -> Iterator[list[float]]:
    """Yield the ratings of each wanted criterion that two graders or more gave a value."""
    by_criterion: dict[str, list[float]] = defaultdict(list)
    for grader in (score.metadata or {}).get("graders") or []:
        for result in grader.get("criterionResults") or []:
            if result["criterionId"] in wanted and result["score"] is not None:
                by_criterion[result["criterionId"]].append(float(result["score"]))
    return (ratings for ratings in by_criterion.values() if len(ratings) > 1)
