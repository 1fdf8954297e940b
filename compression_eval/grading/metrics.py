"""The mean over conversations, which is the one point estimate of this eval, with its error."""

import math
import statistics
from collections import defaultdict

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from compression_eval.grading.sample import CLUSTER

MEAN = "compression_eval/over_conversations_mean"
"""Key of the mean in a log's results."""

STDERR = "compression_eval/over_conversations_stderr"
"""Key of its standard error."""


@metric
def over_conversations() -> Metric:
    """Return the mean and its standard error, each conversation counting the same.

    Inspect's own mean counts each sample the same, so that a conversation with more questions
    weighs more. Comparisons and reports weigh conversations equally, and so must a log.
    """

    def compute(scores: list[SampleScore]) -> Value:
        by_cluster: dict[str, list[float]] = defaultdict(list)
        for item in scores:
            cluster = (item.sample_metadata or {}).get(CLUSTER, item.sample_id)
            by_cluster[str(cluster)].append(item.score.as_float())
        means = [statistics.fmean(own) for own in by_cluster.values()]
        several = len(means) > 1
        return {
            "mean": statistics.fmean(means) if means else math.nan,
            "stderr": statistics.stdev(means) / math.sqrt(len(means)) if several else math.nan,
        }

    return compute
