"""The rubric: 14 criteria in six dimensions, in the languages of the conversations.

A score is computed in two steps, and only here. A dimension is the weighted mean of those of its
criteria that were graded. Knowledge is the unweighted mean of the dimensions that have a value,
without instruction following, which says nothing about what is still known; the overall score is
the same with it. What was not graded is NaN and moves nothing.
"""

import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from compression_eval.facts.markers import ValueMarkers
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.errors import DataError, describe_validation_error
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric_models import (
    CriterionText,
    Dimension,
    RubricText,
    Structure,
)

CriteriaMode = Literal["by_type", "all"]

MAX_SCORE = 5.0

FORMULA = (
    "dimension = weighted mean of its graded criteria; knowledge = unweighted mean of the "
    "dimensions but instruction following, overall = of all six, per sample; then answers are "
    "averaged within a state, states within a probe, probes within a conversation, and every "
    "conversation counts the same"
)
"""How a table's numbers came about; printed with every table."""

KNOWLEDGE = "knowledge"
"""Key of the measure that leads: what is still known, without the form of the answer."""

FORM_DIMENSION: Dimension = "instruction_following"
"""The dimension that an answer without any knowledge can do well on."""

_STRUCTURE = "structure.yaml"

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class Criterion:
    """One criterion of the rubric in one language."""

    id: str
    dimension: Dimension
    weight: float
    """Share of its dimension, 0 to 1."""
    text: CriterionText


@dataclass(frozen=True)
class Rubric:
    """The whole rubric in one language."""

    language: Language
    criteria: tuple[Criterion, ...]
    text: RubricText

    def criteria_for(self, probe: Probe, mode: CriteriaMode = "by_type") -> list[Criterion]:
        """Return the criteria that an answer to ``probe`` is graded on, in the rubric's order.

        Args:
            probe: The question.
            mode: ``by_type`` for those that fit the probe's type and of which its answer key has
                something; ``all`` for every criterion.
        """
        if mode == "all":
            return list(self.criteria)
        fitting = {criterion.id for criterion in structure().criteria if criterion.fits(probe)}
        return [criterion for criterion in self.criteria if criterion.id in fitting]

    def as_text(self) -> str:
        """Return all criteria as the grader reads them, whatever it is asked to grade."""
        lines = [self.text.grader.rubric_heading]
        for criterion in self.criteria:
            dimension = self.text.dimensions[criterion.dimension]
            lines.append(f"- {criterion.id} [{dimension}] {criterion.text.question}")
            lines.append(f"  0: {criterion.text.score_0}")
            lines.append(f"  3: {criterion.text.score_3}")
            lines.append(f"  5: {criterion.text.score_5}")
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
        DataError: There is no rubric in that language, or its files do not fit together.
    """
    name = _language_file(language)
    text = _read(name, RubricText)
    expected = {criterion.id for criterion in structure().criteria}
    if set(text.criteria) != expected:
        raise DataError(f"{name}: criteria: must be exactly those of {_STRUCTURE}")
    if set(text.dimensions) != set(structure().dimensions):
        raise DataError(f"{name}: dimensions: must be exactly those of {_STRUCTURE}")
    if text.language != language:
        raise DataError(f"{name}: language: must be {language}, as the file's name says")
    criteria = tuple(
        Criterion(item.id, item.dimension, item.weight, text.criteria[item.id])
        for item in structure().criteria
    )
    return Rubric(language=language, criteria=criteria, text=text)


def value_markers(language: Language) -> ValueMarkers:
    """Return the words by which texts in a language say that a value does not hold."""
    return load_rubric(language).text.values


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
    return {
        dimension: totals[dimension] / weights[dimension] if weights[dimension] else math.nan
        for dimension in structure().dimensions
    }


def overall(dimensions: Mapping[Dimension, float]) -> float:
    """Return the unweighted mean of the dimensions that have a value; NaN if none has."""
    values = [value for value in dimensions.values() if not math.isnan(value)]
    return sum(values) / len(values) if values else math.nan


def knowledge(dimensions: Mapping[Dimension, float]) -> float:
    """Return the mean of the dimensions that tell what is still known; NaN if none has a value.

    Instruction following is left out: an answer from an empty context can have the right form.
    """
    return overall({name: value for name, value in dimensions.items() if name != FORM_DIMENSION})


def rubric_digest(language: Language = "en") -> str:
    """Return a SHA-256, in hex, of all that decides how answers in one language are graded."""
    digest = hashlib.sha256()
    for name in (_STRUCTURE, _language_file(language)):
        digest.update(name.encode() + b"\0" + _source(name).encode() + b"\0")
    return digest.hexdigest()


def _language_file(language: Language) -> str:
    if language not in get_args(Language):
        raise DataError(
            f"language: there is no rubric in {language!r}; expected one of "
            f"{', '.join(get_args(Language))}"
        )
    return f"{language}.yaml"


def _source(name: str) -> str:
    return (files(__package__) / "rubric" / name).read_text(encoding="utf-8")


def _read(name: str, model: type[ModelT]) -> ModelT:
    content: Any = yaml.safe_load(_source(name))
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise DataError(describe_validation_error(f"rubric/{name}", error)) from error
