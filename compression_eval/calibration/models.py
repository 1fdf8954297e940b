"""Answers with the scores that a careful reader gives them, as they stand in a file."""

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from compression_eval.fixtures.models import NonEmpty, Strict

Kind = Literal[
    "perfect",
    "worked_example",
    "partial",
    "wrong_value",
    "lucky_guess",
    "stale_value",
    "made_up_file",
    "hedged",
    "abstention",
    "refetch",
    "padding",
    "injection",
    "wrong_format",
    "constraint_broken",
]

ScoreValue = Annotated[float, Field(ge=0, le=5)]


class GradedAnswer(Strict):
    """One answer to a probe and what it is worth."""

    id: NonEmpty
    probe: NonEmpty
    """Id of the probe in the fixture's bank."""
    kind: Kind
    """What is special about it; most kinds are a trap for graders."""
    answer: NonEmpty
    scores: dict[str, ScoreValue] = Field(min_length=1)
    """By criterion id, 0 to 5: exactly the criteria that fit the probe."""
    why: NonEmpty
    """The scores in one line, in the language of the fixture."""


class AnswerSet(Strict):
    """The graded answers about one fixture."""

    fixture: NonEmpty
    """Name of a shipped fixture."""
    context: NonEmpty
    """The lossy summary that the grader is shown as what the assistant had."""
    answers: list[GradedAnswer] = Field(min_length=1)


class Trap(Strict):
    """Where a kind of answer leads a grader astray."""

    direction: Literal["up", "down"]
    """``up`` is too lenient, ``down`` too harsh."""
    criteria: list[NonEmpty] = Field(min_length=1)
    """Criteria that it aims at, where they are graded."""


class Traps(Strict):
    """The trap in each kind of answer."""

    off_by: float = Field(gt=0)
    """How far off the reference, in points of the rubric, a grader has fallen for it."""
    traps: dict[Kind, Trap | None]

    @model_validator(mode="after")
    def _every_kind(self) -> Self:
        missing = sorted(set(get_args(Kind)) - set(self.traps))
        if missing:
            raise ValueError(f"traps: missing: {', '.join(missing)}")
        return self
