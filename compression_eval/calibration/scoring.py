"""The scorer that puts a graded answer to the grader and compares."""

import math
from typing import Any, get_args

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from compression_eval.calibration.cases import Case, GraderScores, Reference, by_key, compared
from compression_eval.calibration.metrics import TRAP, calibration_metrics
from compression_eval.calibration.traps import sprung
from compression_eval.calibration.variants import varied_rubric
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.models import Language
from compression_eval.grading.grader import Grading
from compression_eval.grading.judgement import judge
from compression_eval.grading.markdown import number, table
from compression_eval.grading.panel import (
    FailedGraderNotice,
    PanelGrading,
    grade_with_panel,
    graders_for,
)
from compression_eval.grading.request import GraderContext, GradingRequest, grading_request
from compression_eval.grading.rubric import rubric_digest
from compression_eval.grading.sample import Sample, nothing_recorded, read_sample

_DIGITS = 3


@scorer(metrics=calibration_metrics())
def grader_calibration(
    grader_context: GraderContext = "state", language: Language | None = None
) -> Scorer:
    """Have the models of the role ``grader`` judge the answer, and compare with the reference.

    What is compared is the graders' own median. The mechanical rules that a real run applies
    afterwards would hide from whoever chooses a grader what it falls for; the scores after them
    are kept beside it.

    Args:
        grader_context: ``state`` shows the grader the summary of the set, ``none`` does not.
        language: Language of the rubric; by default that of the fixture.

    Raises:
        DataError: An argument is not one of these.
    """
    if grader_context not in get_args(GraderContext):
        raise DataError(f"grader_context: {grader_context!r} is not one of state, none")
    if language is not None and language not in get_args(Language):
        raise DataError(f"language: {language!r} is not one of {', '.join(get_args(Language))}")

    failed_graders = FailedGraderNotice()

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
        reference = Reference.model_validate(state.metadata)
        rubric, criteria = varied_rubric(
            sample.probe, reference.variant, language or reference.language
        )
        request = grading_request(
            rubric=rubric,
            criteria=list(criteria),
            probe=sample.probe,
            answer=sample.answer.text,
            state=sample.state,
            context=sample.context,
            grader_context=grader_context,
        )
        panel = await grade_with_panel(request, graders_for(sample.answer.model))
        failed_graders.check(panel)
        settings: dict[str, Any] = {
            "grader_context": grader_context,
            "language": rubric.language,
            "rubric_digest": rubric_digest(rubric.language),
        }
        return _score(sample, reference, request, panel, settings)

    return score


def _score(
    sample: Sample,
    reference: Reference,
    request: GradingRequest,
    panel: PanelGrading,
    settings: dict[str, Any],
) -> Score:
    scores = {name: value for name in request.ids if not math.isnan(value := _median(panel, name))}
    after = {
        item.criterion.id: item.score
        for item in judge(request, sample, panel).scores
        if not math.isnan(item.score)
    }
    metadata = {
        **settings,
        "scores": scores,
        "after_rules": after,
        "reference": reference.scores,
        "graders": [_grader(grading).model_dump() for grading in panel.gradings],
    }
    if not scores:
        details = "\n".join(f"{item.grader}: {item.detail}" for item in panel.gradings)
        return Score.unscored(
            reason=f"grader_failed: {panel.failure or 'no criterion has a value'}",
            answer=sample.answer.text,
            explanation=details,
            metadata=metadata,
        )
    case = Case(reference, scores)
    fell = sprung(reference.kind, scores, reference.scores) if case.original else None
    given, _ = compared(case)
    return Score(
        value={
            **{key: round(value, _DIGITS) for key, value in given.items()},
            TRAP: math.nan if fell is None else int(fell),
        },
        answer=sample.answer.text,
        explanation=_explanation(case, panel, fell),
        metadata=metadata,
    )


def _median(panel: PanelGrading, criterion: str) -> float:
    return panel.score(criterion) if panel.succeeded else math.nan


def _grader(grading: Grading) -> GraderScores:
    return GraderScores(
        model=grading.grader,
        parameters=grading.parameters,
        attempts=grading.attempts,
        failure=grading.failure,
        scores={
            name: result.score
            for name, result in grading.results.items()
            if result.score is not None
        },
    )


def _explanation(case: Case, panel: PanelGrading, fell: bool | None) -> str:
    reference = case.reference
    rows = [
        [
            name,
            number(right),
            number(case.scores.get(name, math.nan)),
            panel.reasoning(name) if name in case.scores else "",
        ]
        for name, right in reference.scores.items()
    ]
    notes = [
        f"Kind of answer: {reference.kind}. Reference overall: "
        f"{number(by_key(reference.scores)['overall'])}. {reference.why}"
    ]
    if fell is not None:
        notes.append("The grader fell for it." if fell else "The grader did not fall for it.")
    return "\n\n".join([table(["Criterion", "Reference", "Grader", "Reason"], rows), *notes])
