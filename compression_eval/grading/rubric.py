"""The rubric: criteria in six dimensions, in the languages of the conversations.

Its words and weights are data next to this module. A score is computed in two steps, and only here.
A dimension is the weighted mean of those of its criteria that were graded. Knowledge is the
unweighted mean of the dimensions that have a value, without instruction following, which says
nothing about what is still known; the overall score is the same with it. What was not graded is
NaN and moves nothing.
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Literal, Self, TypeVar

import yaml
from inspect_ai.scorer import Score
from pydantic import BaseModel, Field, ValidationError, model_validator

from compression_eval.errors import DataError, describe_validation_error
from compression_eval.fixtures.banks import Probe, ProbeType
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Language, Strict

CriteriaMode = Literal["by_type", "all"]

Dimension = Literal[
    "accuracy",
    "context_awareness",
    "artifact_trail",
    "completeness",
    "continuity",
    "instruction_following",
]

Need = Literal[
    "files_created", "files_modified", "files_read", "open_tasks", "reasons", "constraint"
]
"""What a criterion may ask about: a field of a probe's answer key, or its standing constraint."""

MAX_SCORE = 5.0

FORMULA = (
    "dimension = weighted mean of its graded criteria; knowledge = unweighted mean of the "
    "dimensions but instruction following, overall = of all six, per sample; then answers are "
    "averaged within a state, states within a probe, probes within a conversation, and every "
    "conversation counts the same"
)
"""How a table's numbers were computed; printed with every table."""

KNOWLEDGE = "knowledge"
"""Key of the headline measure: what is still known, without the form of the answer."""

OVERALL = "overall"
"""Key of the mean over all six dimensions."""

FORM_DIMENSION: Dimension = "instruction_following"
"""The dimension on which an answer without any knowledge can score well."""

_SIX_DIMENSIONS = re.compile(r"six_dimensions-?(\d*)")
"""Names of the rubric's scorer in a log; one with a number was appended later."""

_STRUCTURE = "structure.yaml"

Phrase = Annotated[str, Field(min_length=1)]
Phrases = Annotated[tuple[Phrase, ...], Field(min_length=1)]

ModelT = TypeVar("ModelT", bound=BaseModel)


class Criterion(Strict):
    """A criterion, but for its words."""

    id: Phrase
    dimension: Dimension
    weight: float = Field(gt=0, le=1)
    """Share of the dimension, if all of the dimension's criteria are graded."""
    graded_on: Annotated[list[ProbeType], Field(min_length=1)]
    needs: list[Need] = Field(default_factory=list)
    """The probe must carry one of these for this criterion to be graded on it."""

    def fits(self, probe: Probe) -> bool:
        """Return whether an answer to a probe can be graded on this criterion."""
        if probe.type not in self.graded_on:
            return False
        carried = {**dict(probe.answer_key), "constraint": probe.constraint}
        return not self.needs or any(carried[name] for name in self.needs)


class Structure(Strict):
    """The criteria and dimensions, in the order in which tables show them."""

    dimensions: list[Dimension]
    criteria: list[Criterion]

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        repeated = [id_ for id_, n in Counter(c.id for c in self.criteria).items() if n > 1]
        if repeated:
            raise ValueError(f"criteria given more than once: {', '.join(repeated)}")
        for dimension in self.dimensions:
            total = sum(c.weight for c in self.criteria if c.dimension == dimension)
            if abs(total - 1) > 1e-9:
                raise ValueError(f"weights of {dimension} add up to {total:g}, not 1")
        return self


class CriterionText(Strict):
    """A criterion in words."""

    question: Phrase
    score_0: Phrase
    score_3: Phrase
    score_5: Phrase


class GraderText(Strict):
    """Instructions to the grader."""

    instructions: Phrase
    rubric_heading: Phrase
    unanswerable: Phrase
    """About a question whose answer the conversation does not hold."""
    free_text: Phrase
    """About a question with a rubric of its own, or without expected facts."""


class Corrections(Strict):
    """Messages to a grader about an unusable reply.

    ``{detail}`` stands for what was wrong, ``{ids}`` for the requested criteria and ``{facts}`` for
    the ids of the expected facts.
    """

    empty: Phrase
    truncated: Phrase
    not_json: Phrase
    wrong_shape: Phrase
    missing: Phrase
    unknown: Phrase
    duplicate: Phrase
    out_of_range: Phrase
    facts: Phrase
    again: Phrase


class StateReaderText(Strict):
    """Instructions to the model that reads a state."""

    instructions: Phrase
    unusable: Phrase
    """About a reply that cannot be parsed."""
    doubtful: Phrase
    """About entries that are missing, or whose quotes are not in the state; the quotes, by fact id,
    follow as JSON."""
    again: Phrase
    """``{ids}`` stands for the facts that are asked for once more."""


class Abstention(Strict):
    """Phrases by which an answer says that it does not know."""

    phrases: Phrases
    """Phrases that say so anywhere in an answer."""
    whole: Phrases
    """Words that say so when they are the whole answer."""


class Rubric(Strict):
    """The rubric in the words of one language."""

    language: Language
    dimensions: dict[Dimension, Phrase]
    criteria: dict[str, CriterionText]
    grader: GraderText
    corrections: Corrections
    state_reader: StateReaderText
    abstention: Abstention

    def criteria_for(self, probe: Probe, mode: CriteriaMode = "by_type") -> list[Criterion]:
        """Return the criteria that an answer to ``probe`` is graded on, in the rubric's order.

        Args:
            probe: The question.
            mode: ``by_type`` for those that fit the probe's type and of which its answer key has
                something; ``all`` for every criterion.
        """
        return [each for each in structure().criteria if mode == "all" or each.fits(probe)]

    def as_text(self) -> str:
        """Return all criteria as the grader reads them, whatever it is asked to grade."""
        lines = [self.grader.rubric_heading]
        for criterion in structure().criteria:
            text = self.criteria[criterion.id]
            lines += [
                f"- {criterion.id} [{self.dimensions[criterion.dimension]}] {text.question}",
                f"  0: {text.score_0}",
                f"  3: {text.score_3}",
                f"  5: {text.score_5}",
            ]
        return "\n".join(lines)


@functools.cache
def structure() -> Structure:
    """Return the rubric's skeleton, which is the same in every language."""
    return _read(_STRUCTURE, Structure)


@functools.cache
def load_rubric(language: Language = "en") -> Rubric:
    """Return the rubric in one language.

    Args:
        language: ``en``, ``zh`` or ``ja``.

    Raises:
        DataError: Its file is not what it must be.
    """
    rubric = _read(f"{language}.yaml", Rubric)
    if set(rubric.criteria) != {criterion.id for criterion in structure().criteria}:
        raise DataError(f"{language}.yaml: criteria: must be exactly those of {_STRUCTURE}")
    if set(rubric.dimensions) != set(structure().dimensions):
        raise DataError(f"{language}.yaml: dimensions: must be exactly those of {_STRUCTURE}")
    return rubric


def rubric_digest(language: Language = "en") -> str:
    """Return a SHA-256, in hex, of the criteria, their weights and what graders are shown."""
    shown = load_rubric(language).model_dump_json(exclude={"abstention"})
    return digest(f"{structure().model_dump_json()}\0{shown}")


def _read(name: str, model: type[ModelT]) -> ModelT:
    source = (files(__package__) / "rubric" / name).read_text(encoding="utf-8")
    try:
        return model.model_validate(yaml.safe_load(source))
    except ValidationError as error:
        raise DataError(describe_validation_error(f"rubric/{name}", error)) from error


def dimension_scores(criterion_scores: Mapping[str, float]) -> dict[Dimension, float]:
    """Return each dimension's weighted mean over its graded criteria.

    Args:
        criterion_scores: Score by criterion id, 0 to 5; a criterion that is left out or NaN was
            not graded.

    Returns:
        Every dimension, 0 to 5; NaN where none of its criteria was graded.

    Raises:
        KeyError: An id is not of this rubric.
    """
    by_id = {criterion.id: criterion for criterion in structure().criteria}
    totals = dict.fromkeys(structure().dimensions, 0.0)
    weights = dict.fromkeys(structure().dimensions, 0.0)
    for id_, score in criterion_scores.items():
        criterion = by_id[id_]
        if not math.isnan(score):
            totals[criterion.dimension] += criterion.weight * score
            weights[criterion.dimension] += criterion.weight
    return {name: totals[name] / weight if weight else math.nan for name, weight in weights.items()}


def overall(dimensions: Mapping[Dimension, float]) -> float:
    """Return the unweighted mean of the dimensions that have a value; NaN if none has."""
    values = [value for value in dimensions.values() if not math.isnan(value)]
    return sum(values) / len(values) if values else math.nan


def knowledge(dimensions: Mapping[Dimension, float]) -> float:
    """Return the mean of the dimensions that tell what is still known; NaN if none has a value.

    Instruction following is left out: an answer from an empty context can have the right form.
    """
    return overall({name: value for name, value in dimensions.items() if name != FORM_DIMENSION})


def gradings(scores: Mapping[str, Score] | None) -> list[Score]:
    """Return a sample's scores of `six_dimensions`: the first, and those appended later."""
    by_number = {
        int(match[1] or 0): score
        for name, score in (scores or {}).items()
        if (match := _SIX_DIMENSIONS.fullmatch(name))
    }
    return [by_number[number] for number in sorted(by_number)]
