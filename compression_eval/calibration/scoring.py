"""How far graders are off on answers with known scores: a scorer and its metric.

A sample is one answer with a careful reader's scores (`Reference`), as it stands or in a variant
that must not move a score. `grader_calibration` has the graders judge it; `calibration` sums up
their agreement with the reader, the traps in the answers that they fell for, and how far variants
moved their scores. ``compression-eval grader`` makes its tables from the same `Case` objects.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Value,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState
from pydantic import BaseModel, Field

from compression_eval.calibration.answers import (
    ORIGINAL,
    Kind,
    ScoreValue,
    Variant,
    by_key,
    sprung,
    varied_rubric,
)
from compression_eval.fixtures.models import Language
from compression_eval.grading.judgement import judge
from compression_eval.grading.panel import (
    PanelGrading,
    grade_with_panel,
    warn_of,
)
from compression_eval.grading.request import (
    GraderContext,
    GradingRequest,
    GradingSettings,
    grading_request,
)
from compression_eval.grading.rubric import (
    OVERALL,
    rubric_digest,
    structure,
)
from compression_eval.record import Recorded, scoring
from compression_eval.text.markdown import number, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.intp]

KEYS: tuple[str, ...] = (OVERALL, *structure().dimensions)
"""Scores that are compared with the reference: overall and each dimension."""


class Reference(BaseModel):
    """The answer's reference in a sample's metadata."""

    item: str
    """Id of the answer with its fixture; the same for all variants."""
    fixture: str
    kind: Kind
    variant: Variant
    language: Language
    scores: dict[str, float]
    """The careful reader's, by criterion id."""
    second_scores: dict[str, float] | None = None
    """A second reader's; none in older logs and in sets without."""
    why: str


class GraderScores(BaseModel):
    """One grader's scores, as a score's metadata contains them."""

    model: str
    parameters: dict[str, object] = Field(default_factory=dict)
    attempts: int = 0
    failure: str = ""
    scores: dict[str, ScoreValue] = Field(default_factory=dict)
    """By criterion id; criteria without a value are left out."""


class LoggedScores(BaseModel):
    """The part of a score's metadata that results are made of."""

    scores: dict[str, ScoreValue] = Field(default_factory=dict)
    """The graders' medians, by criterion id; empty if all failed."""
    after_rules: dict[str, ScoreValue] = Field(default_factory=dict)
    """What a real run would count."""
    graders: list[GraderScores] = Field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """One answer with its reference scores and a grader's scores."""

    reference: Reference
    scores: Mapping[str, float]
    """The grader's, by criterion id; empty if it failed."""

    @property
    def original(self) -> bool:
        """Whether the answer is unchanged from the set."""
        return self.reference.variant == ORIGINAL

    @property
    def fell(self) -> bool | None:
        """Whether the grader fell for the trap in the answer; see `sprung`."""
        return sprung(self.reference.kind, self.scores, self.reference.scores)

    def compared(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the grader's and reference's scores by key, over the criteria that both have.

        Otherwise a grader that omits criteria would be compared with means over other criteria.
        """
        return _over_both(self.scores, self.reference.scores)

    def second_reader(self) -> "Case":
        """Return the case of a second reader's scores in place of the grader's."""
        return Case(self.reference, self.reference.second_scores or {})


def _over_both(
    one: Mapping[str, float], other: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    both = [name for name in other if name in one]
    return by_key({name: one[name] for name in both}), by_key({name: other[name] for name in both})


def moved(cases: Sequence[Case]) -> dict[Variant, dict[str, list[float]]]:
    """Return how far each variant's score is from the original's, by variant and key.

    Returns:
        For each variant and key, one difference per answer with a value in both forms: variant
        minus original, in points, as an absolute value.
    """
    originals = {case.reference.item: case for case in cases if case.original and case.scores}
    result: dict[Variant, dict[str, list[float]]] = {}
    for case in cases:
        base = originals.get(case.reference.item)
        if case.original or base is None or not case.scores:
            continue
        shifts = result.setdefault(case.reference.variant, {key: [] for key in KEYS})
        before, after = _over_both(base.scores, case.scores)
        for key in KEYS:
            if not math.isnan(shift := abs(after[key] - before[key])):
                shifts[key].append(shift)
    return result


RESAMPLES = 2000
LEVEL = 0.95
_SEED = 20_260_307
_MIN_ANSWERS = 3
"""Minimum answers (or groups) for anything but the error."""
_ALMOST_NONE = 1e-12
"""A squared difference of points that is nothing but rounding."""


@dataclass(frozen=True)
class Agreement:
    """One dimension, over the answers that both scored, 0 to 5."""

    answers: int
    error: float
    """Mean absolute error, in points; NaN without answers."""
    bias: float
    """Mean of grader minus reference, in points; above 0 the grader is lenient."""
    rank: float
    """Spearman's rank correlation; NaN if one side gives only one score."""
    kappa: float
    """Quadratic weighted kappa; NaN if both give only one and the same score."""
    low: float
    """Lower limit of its 95 % interval, by bootstrap over answers, or over their groups."""
    high: float


def agreement(cases: Sequence[Case], key: str) -> Agreement:
    """Compare a grader's scores of a dimension, or overall, with the references, where both are."""
    both = [case.compared() for case in cases]
    return compare([grades[key] for grades, _ in both], [right[key] for _, right in both])


def compare(
    grader: Sequence[float], reference: Sequence[float], groups: Sequence[str] | None = None
) -> Agreement:
    """Compare a grader with the reference, answer by answer.

    Args:
        grader: The grader's scores; NaN, for a missing score, is left out.
        reference: The careful reader's scores, of the same length; NaN is left out too.
        groups: What each answer is drawn with, such as its state; the interval resamples groups.
            By default each answer is a group.

    Raises:
        ValueError: The lengths differ.
    """
    import numpy as np

    # Sorted, so that the resampled interval does not depend on the order of a log's samples.
    rows = sorted(
        (group, x, y)
        for group, x, y in zip(groups or [""] * len(grader), grader, reference, strict=True)
        if not (math.isnan(x) or math.isnan(y))
    )
    if not rows:
        nan = math.nan
        return Agreement(0, nan, nan, nan, nan, nan, nan)
    names, *sides = zip(*rows, strict=True)
    grades, right = (np.asarray(side, dtype=np.float64) for side in sides)
    members = np.unique(names, return_inverse=True)[1] if groups else np.arange(len(rows))
    low, high = _interval(grades, right, members)
    return Agreement(
        answers=len(rows),
        error=float(np.abs(grades - right).mean()),
        bias=float((grades - right).mean()),
        rank=_rank_correlation(grades, right),
        kappa=float(_kappa(grades, right, np.ones((1, len(rows))))[0]),
        low=low,
        high=high,
    )


def _kappa(grades: "Floats", right: "Floats", weights: "Floats") -> "Floats":
    """Return the quadratic weighted kappa for each row of weights of the answers.

    1 - observed / expected squared difference, where expected pairs every score of one side with
    every one of the other. In terms of moments it needs no categories, so half points and means of
    criteria need no rounding.
    """
    import numpy as np

    def mean(values: "Floats") -> "Floats":
        moment: Floats = weights @ values / weights.sum(axis=1)
        return moment

    observed = mean((grades - right) ** 2)
    # Centred first: a variance from moments about 0 loses digits.
    one, other = grades - grades.mean(), right - right.mean()
    shift = grades.mean() - right.mean() + mean(one) - mean(other)
    expected = mean(one**2) - mean(one) ** 2 + mean(other**2) - mean(other) ** 2 + shift**2
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa: Floats = np.where(expected > _ALMOST_NONE, 1 - observed / expected, np.nan)
    return kappa


def _interval(grades: "Floats", right: "Floats", members: "Integers") -> tuple[float, float]:
    """Return the limits of kappa if the groups, by number in ``members``, are drawn again."""
    import numpy as np

    groups = int(members.max()) + 1
    if groups < _MIN_ANSWERS:
        return math.nan, math.nan
    # A fixed seed: the same log must print the same table.
    drawn = np.random.default_rng(_SEED).integers(0, groups, (RESAMPLES, groups))
    times = np.stack([np.bincount(row, minlength=groups) for row in drawn])
    kappas = _kappa(grades, right, times[:, members].astype(np.float64))
    kappas = kappas[~np.isnan(kappas)]
    if not len(kappas):
        return math.nan, math.nan
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(kappas, [tail, 1 - tail])
    return float(low), float(high)


def _rank_correlation(grades: "Floats", right: "Floats") -> float:
    import numpy as np

    if len(grades) < _MIN_ANSWERS or not grades.std() or not right.std():
        return math.nan
    return float(np.corrcoef(_ranks(grades), _ranks(right))[0, 1])


def _ranks(values: "Floats") -> "Floats":
    """Return ranks; equal values share the mean of theirs."""
    below, upto = values[:, None] > values, values[:, None] >= values
    ranks: Floats = (below.sum(axis=1) + upto.sum(axis=1) + 1) / 2
    return ranks


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
        cases = [
            Case(
                Reference.model_validate(item.sample_metadata),
                LoggedScores.model_validate(item.score.metadata).scores,
            )
            for item in scores
            if item.score.metadata and item.sample_metadata
        ]
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
    would hide a grader's weaknesses; the scores after them are kept next to it.

    Args:
        grader_context: ``state`` shows the grader the summary of the set, ``none`` does not.
        language: Language of the rubric; by default that of the fixture.

    Raises:
        DataError: An argument is not one of these.
    """
    GradingSettings(grader_context=grader_context, language=language)  # refuses unknown ones
    warned: set[str] = set()

    async def score(sample: Recorded, state: TaskState) -> Score:
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
        panel = await grade_with_panel(request, sample.answer.model)
        warn_of(panel, warned)
        settings: dict[str, Any] = {
            "grader_context": grader_context,
            "language": rubric.language,
            "rubric_digest": rubric_digest(rubric.language),
        }
        return _score(sample, reference, request, panel, settings)

    return scoring(score)


def _score(
    sample: Recorded,
    reference: Reference,
    request: GradingRequest,
    panel: PanelGrading,
    settings: dict[str, Any],
) -> Score:
    medians = {name: panel.score(name) for name in request.ids} if panel.succeeded else {}
    counted = judge(request, sample, panel).scores
    logged = LoggedScores(
        scores={name: value for name, value in medians.items() if not math.isnan(value)},
        after_rules={name: value for name, value in counted.items() if not math.isnan(value)},
        graders=[
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
        ],
    )
    plain = logged.model_dump()
    metadata = {
        **settings,
        "scores": plain["scores"],
        "after_rules": plain["after_rules"],
        "reference": reference.scores,
        "graders": plain["graders"],
    }
    if not logged.scores:
        return Score.unscored(
            reason=f"grader_failed: {panel.failure or 'no criterion has a value'}",
            answer=sample.answer.text,
            explanation="\n".join(f"{item.grader}: {item.detail}" for item in panel.gradings),
            metadata=metadata,
        )
    case = Case(reference, logged.scores)
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
