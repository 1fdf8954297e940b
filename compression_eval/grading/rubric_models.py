"""The shape of the rubric's data files."""

from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from compression_eval.facts.markers import ValueMarkers
from compression_eval.fixtures.banks import Probe, ProbeType
from compression_eval.fixtures.models import Language

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

Text = Annotated[str, Field(min_length=1)]
Phrases = Annotated[list[Text], Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CriterionStructure(_Strict):
    """What a criterion is in every language."""

    id: Text
    dimension: Dimension
    weight: float = Field(gt=0, le=1)
    """Share of the dimension, if all of the dimension's criteria are graded."""
    graded_on: Annotated[list[ProbeType], Field(min_length=1)]
    needs: list[Need] = Field(default_factory=list)
    """The probe must carry one of these for this criterion to be graded on it."""

    def fits(self, probe: Probe) -> bool:
        """Say whether an answer to a probe can be graded on this criterion."""
        if probe.type not in self.graded_on:
            return False
        carried = {**dict(probe.answer_key), "constraint": probe.constraint}
        return not self.needs or any(carried[name] for name in self.needs)


class Structure(_Strict):
    """The criteria and dimensions, in the order in which tables show them."""

    dimensions: list[Dimension]
    criteria: list[CriterionStructure]

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


class CriterionText(_Strict):
    """A criterion in words."""

    question: Text
    score_0: Text
    score_3: Text
    score_5: Text


class GraderText(_Strict):
    """What the grader is told."""

    instructions: Text
    rubric_heading: Text


class Corrections(_Strict):
    """What a grader is told about an unusable reply.

    ``{detail}`` stands for what was wrong, ``{ids}`` for the requested criteria and ``{facts}`` for
    the ids of the expected facts.
    """

    empty: Text
    truncated: Text
    not_json: Text
    wrong_shape: Text
    missing: Text
    unknown: Text
    duplicate: Text
    out_of_range: Text
    facts: Text
    again: Text


class StateReaderText(_Strict):
    """What a model is told that says which facts a state holds."""

    instructions: Text
    unusable: Text
    """Said of a reply that cannot be read."""
    doubtful: Text
    """Said of entries that are missing, or whose quotes do not stand in the state; the quotes, by
    fact id, follow as JSON."""
    again: Text
    """``{ids}`` stands for the facts that are asked for once more."""


class Abstention(_Strict):
    """How an answer says that it does not know."""

    phrases: Phrases
    """Phrases that say so wherever they stand."""
    whole: Phrases
    """Words that say so when they are the whole answer."""


class RubricText(_Strict):
    """One language's texts."""

    language: Language
    dimensions: dict[Dimension, Text]
    criteria: dict[str, CriterionText]
    grader: GraderText
    corrections: Corrections
    state_reader: StateReaderText
    abstention: Abstention
    values: ValueMarkers
