"""The scorer that has a grader judge each answer on six dimensions, 0 to 5."""

import math
from collections.abc import Sequence
from typing import get_args

import anyio
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState

from compression_eval.calibration.anchors import (
    ANCHOR,
    anchor_difference,
    chosen_anchors,
    grade_anchor,
)
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.models import Language
from compression_eval.grading.grader import Grader
from compression_eval.grading.judgement import Judgement, judge
from compression_eval.grading.metrics import over_conversations
from compression_eval.grading.panel import (
    FailedGraderNotice,
    SelfGradingNotice,
    grade_with_panel,
    graders_for,
)
from compression_eval.grading.panel_agreement import panel_agreement
from compression_eval.grading.request import GraderContext, grading_request
from compression_eval.grading.rubric import (
    KNOWLEDGE,
    CriteriaMode,
    load_rubric,
    rubric_digest,
    structure,
)
from compression_eval.grading.sample import Sample, nothing_recorded, read_sample
from compression_eval.grading.six_dimensions_report import explanation, metadata
from compression_eval.grading.verdicts import by_verdict

OVERALL = "overall"
NO_KNOWLEDGE = "grader_failed: no criterion of knowledge has a value"
"""Why an answer has no score of which the graders judged nothing but the form."""
_DIGITS = 3
"""Digits that a score is kept to; the criteria it is made of are kept in full."""

KEYS: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions)
"""Keys of the score, on every sample that has one."""


@metric
def ungraded_criteria() -> Metric:
    """Count the criteria that were asked for and got no score, over the first epoch of each probe.

    A grader that leaves out much is one to look at. Nothing is shown if there are none.
    """

    def count(scores: list[SampleScore]) -> Value:
        found = sum(len((item.score.metadata or {}).get("ungraded") or []) for item in scores)
        return {"count": found} if found else {}

    return count


def six_dimensions_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key.

    They are the mean over conversations with its error, means by verdict, and of a panel its
    alpha; under the first key also how many criteria have no score, and how far the graders are
    off the anchors.
    """
    metrics: dict[str, list[Metric]] = {
        key: [over_conversations(), by_verdict(), panel_agreement(key)] for key in KEYS
    }
    metrics[KEYS[0]] += [ungraded_criteria(), anchor_difference()]
    return metrics


@scorer(metrics=six_dimensions_metrics())
def six_dimensions(
    criteria: CriteriaMode = "by_type",
    grader_context: GraderContext = "state",
    language: Language | None = None,
    anchors: int = 0,
) -> Scorer:
    """Grade the answer with the models of the role ``grader``.

    A failed compression, a failed answer and a failed grader leave the sample without a score,
    with a reason; none of them is ever a low score. Values that were not graded are NaN.

    Args:
        criteria: ``by_type`` grades the criteria that fit the probe, ``all`` all 14.
        grader_context: ``state`` shows the grader the compressed context, ``none`` does not.
        language: Language of the rubric; by default that of the fixture.
        anchors: How many answers of known worth the run has graded too, one beside each of the
            first samples of its first epoch. What came of them is in the scores' metadata.

    Raises:
        DataError: An argument is not one of these.
    """
    _check("criteria", criteria, get_args(CriteriaMode))
    _check("grader_context", grader_context, get_args(GraderContext))
    if language is not None:
        _check("language", language, get_args(Language))
    notice = SelfGradingNotice()
    failed_graders = FailedGraderNotice()

    waiting = iter(chosen_anchors(anchors))

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        # Metrics see the metadata of first epochs only. Taken before the first call is waited for.
        anchor = next(waiting, None) if state.epoch == 1 else None
        sample = read_sample(state)
        if sample is None:
            result = nothing_recorded()
        else:
            graders = graders_for(sample.answer.model)
            notice.check(graders)
            result = await grade_answer(
                sample,
                graders,
                criteria=criteria,
                grader_context=grader_context,
                language=language,
                failed_graders=failed_graders,
            )
        if anchor is not None:
            graded = await grade_anchor(anchor, grader_context, language)
            result.metadata = {**(result.metadata or {}), ANCHOR: graded.model_dump()}
        return result

    return score


async def grade_answer(
    sample: Sample,
    graders: Sequence[Grader],
    *,
    criteria: CriteriaMode = "by_type",
    grader_context: GraderContext = "state",
    language: Language | None = None,
    failed_graders: FailedGraderNotice | None = None,
) -> Score:
    """Have some graders judge an answer.

    Args:
        sample: The answer with its state and probe, as a log holds it.
        graders: Who grades; at least one.
        criteria: As of `six_dimensions`; likewise the following two.
        grader_context: What of the state graders are shown.
        language: Of the rubric.
        failed_graders: Warns of members of the panel that fail.

    Returns:
        The score; without a value, and with a reason, where something failed.
    """
    failure = sample.compression_failure or sample.answer_failure
    if failure:
        detail = sample.state.failure if sample.compression_failure else sample.answer.failure
        return Score.unscored(reason=failure, explanation=detail or failure)
    rubric = load_rubric(language or sample.record.language)
    request = grading_request(
        rubric=rubric,
        criteria=rubric.criteria_for(sample.probe, criteria),
        probe=sample.probe,
        answer=sample.answer.text,
        state=sample.state,
        context=sample.context,
        grader_context=grader_context,
        mode=criteria,
    )
    panel = await grade_with_panel(request, graders)
    if failed_graders is not None:
        failed_graders.check(panel)
    judgement = await anyio.to_thread.run_sync(judge, request, sample, panel)
    settings = {
        "criteria": criteria,
        "grader_context": grader_context,
        "language": rubric.language,
        "rubric_digest": rubric_digest(rubric.language),
    }
    return _score(sample, judgement, settings)


def _score(sample: Sample, judgement: Judgement, settings: dict[str, str]) -> Score:
    if judgement.panel.failure:
        details = [f"{item.grader}: {item.detail}" for item in judgement.panel.gradings]
        return Score.unscored(
            reason=f"grader_failed: {judgement.panel.failure}",
            answer=sample.answer.text,
            explanation="\n".join(details),
            metadata=metadata(judgement, settings),
        )
    if math.isnan(judgement.knowledge):
        return Score.unscored(
            reason=NO_KNOWLEDGE,
            answer=sample.answer.text,
            explanation=explanation(judgement),
            metadata=metadata(judgement, settings),
        )
    return Score(
        value={
            KNOWLEDGE: round(judgement.knowledge, _DIGITS),
            OVERALL: round(judgement.overall, _DIGITS),
            **{name: round(value, _DIGITS) for name, value in judgement.dimensions.items()},
        },
        answer=sample.answer.text,
        explanation=explanation(judgement),
        metadata=metadata(judgement, settings),
    )


def _check(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DataError(f"{name}: {value!r} is not one of {', '.join(allowed)}")
