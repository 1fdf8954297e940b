"""What is not known before a run: how long replies are, and how far runs differ."""

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.analysis.statistics.power import Variances


class SpreadOf(BaseModel):
    """Variances of a measure, as in `power.Variances`."""

    model_config = ConfigDict(extra="forbid")

    state: float = Field(ge=0)
    probe: float = Field(ge=0)
    answer: float = Field(ge=0)
    grading: float = Field(ge=0)
    fixture: float = Field(ge=0)

    def variances(self) -> Variances:
        """Return them as a design needs them."""
        return Variances(self.state, self.probe, self.answer, self.grading, self.fixture)


class Assumptions(BaseModel):
    """The shipped assumptions, or what logs gave in their place."""

    model_config = ConfigDict(extra="forbid")

    source: str
    """Where the variances come from, for people."""
    variances: SpreadOf
    answer_tokens: float = Field(gt=0)
    grader_tokens_per_criterion: float = Field(gt=0)
    reader_tokens_per_fact: float = Field(gt=0)
    cached_prefix_tokens: int = Field(ge=0)
    summary_tokens: int = Field(gt=0)
    state_tokens: int = Field(gt=0)


@cache
def shipped() -> Assumptions:
    """Return the assumptions that come with this project."""
    text = (files(__package__) / "assumptions.yaml").read_text(encoding="utf-8")
    return Assumptions.model_validate(yaml.safe_load(text))
