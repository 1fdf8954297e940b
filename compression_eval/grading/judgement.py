"""From what the graders said to the scores that count.

The graders' scores are not the last word on what can be decided without them: an answer that says
nothing gets nothing but what its form is worth, and one that gives a value as current which is not
so gets no more than `CAP` for accuracy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from compression_eval.facts.life import AnswerWord
from compression_eval.facts.stale import violations
from compression_eval.grading.abstention import abstained
from compression_eval.grading.form import constraint_score, format_score
from compression_eval.grading.panel import PanelGrading
from compression_eval.grading.request import GradingRequest
from compression_eval.grading.rubric import (
    FORM_DIMENSION,
    Criterion,
    dimension_scores,
    knowledge,
    overall,
)
from compression_eval.grading.rubric_models import Dimension
from compression_eval.grading.sample import Sample

CAP = 3.0
"""Most that the accuracy criteria give an answer with a wrong value among right ones."""

_CAPPED: Dimension = "accuracy"


@dataclass(frozen=True)
class CriterionScore:
    """One criterion's score and how it came about."""

    criterion: Criterion
    score: float
    """The score that counts, 0 to 5; NaN if there is none."""
    graded: float
    """The median of the graders, before the mechanical rules; NaN if there is none."""
    spread: float
    """Highest minus lowest grader; NaN if there is none."""
    reasoning: str


@dataclass(frozen=True)
class Judgement:
    """Everything that was found out about one answer."""

    scores: tuple[CriterionScore, ...]
    panel: PanelGrading
    abstained: bool
    wanted_tools: bool
    """Whether the model tried to call tools, that is, to fetch something again."""
    cut_off: bool
    """Whether the answer ended in the middle, for want of tokens."""
    violations: tuple[str, ...]
    """Superseded or forbidden values that the answer gives as current."""
    facts: tuple[tuple[str, AnswerWord | None], ...]
    """Each expected fact, and how the graders read the answer on it; None if they do not say."""

    @property
    def ungraded(self) -> list[str]:
        """Ids of the criteria that were asked for and have no score."""
        return [item.criterion.id for item in self.scores if math.isnan(item.score)]

    @property
    def dimensions(self) -> dict[Dimension, float]:
        """Each dimension's score, 0 to 5; NaN if it has none."""
        return dimension_scores({item.criterion.id: item.score for item in self.scores})

    @property
    def knowledge(self) -> float:
        """The mean of the dimensions without instruction following, 0 to 5; NaN if none has one."""
        return knowledge(self.dimensions)

    @property
    def overall(self) -> float:
        """The overall score, 0 to 5; NaN if there is none."""
        return overall(self.dimensions)


def judge(request: GradingRequest, sample: Sample, panel: PanelGrading) -> Judgement:
    """Combine the graders' scores with what can be decided mechanically.

    Args:
        request: What the graders were asked.
        sample: The probe and the answer.
        panel: What the graders said.
    """
    texts = request.rubric.text
    answer = sample.answer.text
    silent = abstained(answer, sample.probe, texts.abstention)
    wrong = violations(sample.probe, answer, texts.values)
    graded = request.criteria if panel.succeeded else ()
    form = _form(sample) if silent else None
    return Judgement(
        scores=tuple(
            CriterionScore(
                criterion=criterion,
                score=_final(criterion, panel.score(criterion.id), form, bool(wrong)),
                graded=panel.score(criterion.id),
                spread=panel.spread(criterion.id),
                reasoning=panel.reasoning(criterion.id),
            )
            for criterion in graded
        ),
        panel=panel,
        abstained=silent,
        wanted_tools=bool(sample.answer.tool_calls),
        cut_off=sample.answer.cut_off,
        violations=tuple(wrong),
        facts=tuple(
            (fact.fact, panel.word(id_))
            for id_, fact in zip(request.facts, sample.probe.expected_facts, strict=True)
        ),
    )


def _form(sample: Sample) -> dict[str, float]:
    """Return what the form of an abstention is worth, by the criteria of instruction following."""
    answer, probe = sample.answer.text, sample.probe
    kept, _ = constraint_score(answer, probe.constraint)
    return {
        "instruction_format": format_score(answer, probe.format)[0],
        "instruction_constraints": math.nan if kept is None else kept,
    }


def _final(
    criterion: Criterion, score: float, form: Mapping[str, float] | None, wrong: bool
) -> float:
    """Return the score that counts; ``form`` is that of an abstention, None of other answers."""
    if form is not None:
        return form[criterion.id] if criterion.dimension == FORM_DIMENSION else 0.0
    if wrong and criterion.dimension == _CAPPED and not math.isnan(score):
        return min(score, CAP)
    return score
