"""The scorer that has the grader grade an answer and compares the scores, and its metric."""

import math
import statistics
from typing import Any, get_args

from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from compression_eval.calibration.agreement import agreement
from compression_eval.calibration.answers import by_key
from compression_eval.calibration.cases import (
    KEYS,
    Case,
    GraderScores,
    Reference,
    case_of,
    moved,
    varied_rubric,
)
from compression_eval.errors import DataError
from compression_eval.fixtures.models import Language
from compression_eval.grading.judgement import judge
from compression_eval.grading.panel import (
    PanelGrading,
    PanelWarnings,
    grade_with_panel,
    graders_for,
)
from compression_eval.grading.request import GraderContext, GradingRequest, grading_request
from compression_eval.grading.rubric import OVERALL, rubric_digest
from compression_eval.record import Recorded, nothing_recorded, read_sample
from compression_eval.text.markdown import number, table

TRAP = "trap"
"""Key of the score: 1 if the grader fell for the answer's trap, 0 if not."""

_DIGITS = 3


@metric
def calibration() -> Metric:
    """Summarise the grader's agreement with the reference.

    Of the overall score: mean absolute error and bias (above 0: lenient) in points, Spearman's
    rank correlation, the quadratic weighted kappa with its 95 % interval, and how many answers
    these are over. Of each dimension error and bias; the share of traps that were sprung; and how
    far each variant moved the overall score. Everything by dimension and kind of answer is
    printed by ``compression-eval grader``.
    """

    def compute(scores: list[SampleScore]) -> Value:
        cases = [case for item in scores if (case := case_of(item)) is not None]
        originals = [case for case in cases if case.original]
        agreements = {key: agreement(originals, key) for key in KEYS}
        whole = agreements[OVERALL]
        values = {
            "error": whole.error,
            "bias": whole.bias,
            "spearman": whole.rank,
            "kappa": whole.kappa,
            "kappa_low": whole.low,
            "kappa_high": whole.high,
            "answers": whole.answers,
        }
        for key in KEYS[1:]:
            values |= {f"{key}_error": agreements[key].error, f"{key}_bias": agreements[key].bias}
        fell = [case.fell for case in originals if case.fell is not None]
        values["traps_sprung"] = statistics.fmean(fell) if fell else math.nan
        for variant, shifts in moved(cases).items():
            if shifts[OVERALL]:
                values[f"moved_by_{variant}"] = statistics.fmean(shifts[OVERALL])
        return values

    return compute


@scorer(metrics=[calibration()])
def grader_calibration(
    grader_context: GraderContext = "state", language: Language | None = None
) -> Scorer:
    """Have the models of the role ``grader`` judge the answer, and compare with the reference.

    The graders' own median is compared. The mechanical rules that a real run applies afterwards
    would hide a grader's weaknesses; the scores after them are kept beside it.

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

    warnings = PanelWarnings()

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
        warnings.check_panel(panel)
        settings: dict[str, Any] = {
            "grader_context": grader_context,
            "language": rubric.language,
            "rubric_digest": rubric_digest(rubric.language),
        }
        return _score(sample, reference, request, panel, settings)

    return score


def _score(
    sample: Recorded,
    reference: Reference,
    request: GradingRequest,
    panel: PanelGrading,
    settings: dict[str, Any],
) -> Score:
    medians = {name: panel.score(name) for name in request.ids} if panel.succeeded else {}
    scores = {name: value for name, value in medians.items() if not math.isnan(value)}
    after = {
        criterion.id: score
        for criterion, score in judge(request, sample, panel).scores.items()
        if not math.isnan(score)
    }
    graders = [
        GraderScores(
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
        for grading in panel.gradings
    ]
    metadata = {
        **settings,
        "scores": scores,
        "after_rules": after,
        "reference": reference.scores,
        "graders": [each.model_dump() for each in graders],
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
    fell = case.fell if case.original else None
    grades, _ = case.compared()
    return Score(
        value={
            **{key: round(value, _DIGITS) for key, value in grades.items()},
            TRAP: math.nan if fell is None else int(fell),
        },
        answer=sample.answer.text,
        explanation=_explanation(case, panel, fell),
        metadata=metadata,
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
