"""The scorer that has a grader judge each answer on six dimensions, 0 to 5."""

import math
from typing import get_args

import anyio
from inspect_ai.scorer import Metric, Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.models import Language
from compression_eval.grading.judgement import Judgement, judge
from compression_eval.grading.panel import (
    FailedGraderNotice,
    SelfGradingNotice,
    grade_with_panel,
    graders_for,
)
from compression_eval.grading.panel_agreement import panel_agreement
from compression_eval.grading.request import GraderContext, grading_request
from compression_eval.grading.rubric import CriteriaMode, load_rubric, rubric_digest, structure
from compression_eval.grading.sample import CLUSTER, Sample, nothing_recorded, read_sample
from compression_eval.grading.six_dimensions_report import explanation, metadata
from compression_eval.grading.verdicts import by_verdict

OVERALL = "overall"
_DIGITS = 3
"""Digits that a score is kept to; the criteria it is made of are kept in full."""

KEYS: tuple[str, ...] = (OVERALL, *structure().dimensions)
"""Keys of the score, on every sample that has one."""


def six_dimensions_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key.

    They are the mean, its error by fixture, means by verdict, and of a panel its alpha.
    """
    return {
        key: [mean(), stderr(cluster=CLUSTER), by_verdict(), panel_agreement(key)] for key in KEYS
    }


@scorer(metrics=six_dimensions_metrics())
def six_dimensions(
    criteria: CriteriaMode = "by_type",
    grader_context: GraderContext = "state",
    language: Language | None = None,
) -> Scorer:
    """Grade the answer with the models of the role ``grader``.

    A failed compression, a failed answer and a failed grader leave the sample without a score,
    with a reason; none of them is ever a low score. Values that were not graded are NaN.

    Args:
        criteria: ``by_type`` grades the criteria that fit the probe, ``all`` all 14.
        grader_context: ``state`` shows the grader the compressed context, ``none`` does not.
        language: Language of the rubric; by default that of the fixture.

    Raises:
        DataError: An argument is not one of these.
    """
    _check("criteria", criteria, get_args(CriteriaMode))
    _check("grader_context", grader_context, get_args(GraderContext))
    if language is not None:
        _check("language", language, get_args(Language))
    notice = SelfGradingNotice()
    failed_graders = FailedGraderNotice()

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
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
        )
        graders = graders_for(sample.answer.model)
        notice.check(graders)
        panel = await grade_with_panel(request, graders)
        failed_graders.check(panel)
        judgement = await anyio.to_thread.run_sync(judge, request, sample, panel)
        settings = {
            "criteria": criteria,
            "grader_context": grader_context,
            "language": rubric.language,
            "rubric_digest": rubric_digest(rubric.language),
        }
        return _score(sample, judgement, settings)

    return score


def _score(sample: Sample, judgement: Judgement, settings: dict[str, str]) -> Score:
    if judgement.panel.failure:
        details = [f"{item.grader}: {item.detail}" for item in judgement.panel.gradings]
        return Score.unscored(
            reason=f"grader_failed: {judgement.panel.failure}",
            answer=sample.answer.text,
            explanation="\n".join(details),
            metadata=metadata(judgement, settings),
        )
    if math.isnan(judgement.overall):
        return Score.unscored(
            reason="grader_failed: no criterion has a value",
            answer=sample.answer.text,
            explanation=explanation(judgement),
            metadata=metadata(judgement, settings),
        )
    return Score(
        value={
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
