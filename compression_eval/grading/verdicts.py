"""Results of qualified probes and of the others, apart.

A probe that fails with the full history, or passes with nothing, says nothing about compression.
Its scores stay in the headline, so that a verdict moves no figure; the metric stands beside it.
It reads the sample's metadata, and is silent where no probe has a verdict.
"""

from collections.abc import Mapping
from typing import cast, get_args

from inspect_ai.scorer import (
    Metric,
    MetricProtocol,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    mean,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState

from compression_eval.fixtures.banks import Verdict
from compression_eval.grading.metrics import over_conversations

VERDICT = "qualified"
"""Key of the sample's metadata that holds the verdict on its probe."""

REGION = "region"
"""Key that holds whether the kept tail alone answers it."""

_UNKNOWN: Verdict = "unknown"


@metric
def by_verdict() -> Metric:
    """Return the means over the qualified probes, the others, and those without a verdict.

    A group without a probe is left out, and without a single verdict there is nothing.
    """
    compute = cast(MetricProtocol, over_conversations())

    def apart(scores: list[SampleScore]) -> Value:
        groups: dict[str, list[SampleScore]] = {name: [] for name in get_args(Verdict)}
        for item in scores:
            found = (item.sample_metadata or {}).get(VERDICT, _UNKNOWN)
            groups.setdefault(str(found), []).append(item)
        if all(name == _UNKNOWN or not items for name, items in groups.items()):
            return {}
        means = {name: cast(Mapping[str, float], compute(items)) for name, items in groups.items()}
        return {name: found["mean"] for name, found in means.items() if groups[name]}

    return apart


@scorer(metrics=[mean()])
def qualification() -> Scorer:
    """Say for each sample whether its probe is qualified: 1 or 0, unscored without a verdict.

    Calls no model. Its mean is the share of the probes with a verdict that are qualified.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        found = state.metadata.get(VERDICT, _UNKNOWN)
        if found == _UNKNOWN:
            return Score.unscored(reason="no_verdict", explanation="The probe has no verdict.")
        region = state.metadata.get(REGION)
        return Score(
            value=1 if found == "qualified" else 0,
            explanation=f"The probe is {found}"
            + ("; the kept tail alone answers it." if region == "tail" else "."),
        )

    return score
