"""One graded answer: its trap for graders, its variants, and its scores."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import yaml
from inspect_ai.scorer import SampleScore
from pydantic import BaseModel, Field

from compression_eval.calibration.answers import Kind, ScoreValue, by_key
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language, NonEmpty, Strict
from compression_eval.grading.rubric import (
    OVERALL,
    Criterion,
    Rubric,
    load_rubric,
    structure,
)

KEYS: tuple[str, ...] = (OVERALL, *structure().dimensions)
"""Scores that are compared with the reference: overall and each dimension."""

Variant = Literal["original", "criteria_reversed", "padded", "method_named", "language_swapped"]
"""Changes to a grading request that must not move a score."""

ORIGINAL: Variant = "original"

_OTHER_LANGUAGE: dict[Language, Language] = {"en": "zh", "zh": "ja", "ja": "en"}
_ROUNDING = 1e-9


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
    """One grader's scores, as a score's metadata holds them."""

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


def case_of(item: SampleScore) -> Case | None:
    """Return the case of a sample's score; None if it has none."""
    scores = (item.score.metadata or {}).get("scores")
    if not isinstance(scores, dict) or not item.sample_metadata:
        return None
    return Case(
        Reference.model_validate(item.sample_metadata),
        {str(name): float(value) for name, value in scores.items()},
    )


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


class Trap(Strict):
    """The direction and criteria in which a kind of answer misleads graders."""

    direction: Literal["up", "down"]
    """``up`` is too lenient, ``down`` too harsh."""
    criteria: list[NonEmpty] = Field(min_length=1)
    """Criteria that it affects, if they are graded."""


class Traps(Strict):
    """The trap in each kind of answer."""

    off_by: float = Field(gt=0)
    """Minimum error, in points of the rubric, that counts as falling for it."""
    traps: dict[Kind, Trap | None]


@functools.cache
def traps() -> Traps:
    """Return the trap in each kind of answer."""
    return Traps.model_validate(_data("traps.yaml"))


def sprung(kind: Kind, scores: Mapping[str, float], reference: Mapping[str, float]) -> bool | None:
    """Return whether a grader fell for the trap in an answer.

    Args:
        kind: What is special about the answer.
        scores: The grader's, 0 to 5, by criterion id; those without a value left out.
        reference: The careful reader's.

    Returns:
        None if the answer is no trap, or the grader gave no value for the affected criteria.
    """
    trap = traps().traps[kind]
    if trap is None:
        return None
    sign = 1 if trap.direction == "up" else -1
    aimed = [name for name in trap.criteria if name in scores and name in reference]
    if not aimed:
        return None
    return any(
        sign * (scores[name] - reference[name]) >= traps().off_by - _ROUNDING for name in aimed
    )


def variants_of(probe: Probe, kind: Kind) -> list[Variant]:
    """Return the changes that leave an answer's worth unchanged.

    Padding breaks a requested format, and turns an abstention into an answer.

    Args:
        probe: What was asked.
        kind: What is special about the answer.
    """
    variants: list[Variant] = ["criteria_reversed", "language_swapped"]
    if probe.format is None and kind not in ("abstention", "refetch"):
        variants += ["padded", "method_named"]
    return variants


def varied_answer(answer: str, variant: Variant, language: Language) -> str:
    """Return the answer that the grader is shown.

    Args:
        answer: The answer in the set.
        variant: The change.
        language: The fixture's language.
    """
    if variant not in ("padded", "method_named"):
        return answer
    text: str = _data("variants.yaml")[language][variant]
    return text.replace("{answer}", answer)


def varied_rubric(
    probe: Probe, variant: Variant, language: Language
) -> tuple[Rubric, Sequence[Criterion]]:
    """Return the rubric and the criteria, in the order of the request.

    Args:
        probe: What was asked.
        variant: The change.
        language: The language to grade in, if it is not swapped.
    """
    rubric = load_rubric(_OTHER_LANGUAGE[language] if variant == "language_swapped" else language)
    criteria = rubric.criteria_for(probe)
    return rubric, criteria[::-1] if variant == "criteria_reversed" else criteria


@functools.cache
def _data(name: str) -> Any:
    return yaml.safe_load((files(__package__) / name).read_text(encoding="utf-8"))
