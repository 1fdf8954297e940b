"""Published reference figures, to stand beside a table; never a claim of ours."""

from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict


class Method(BaseModel):
    """One method's published figures; scores 0 to 5, `tokens_removed` a share of 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: str
    overall: float
    accuracy: float
    context_awareness: float
    artifact_trail: float
    completeness: float
    continuity: float
    instruction_following: float
    tokens_removed: float

    @property
    def scores(self) -> dict[str, float]:
        """The dimensions by name, without the overall score."""
        return {
            name: value
            for name, value in self.model_dump(exclude={"method", "tokens_removed"}).items()
            if name != "overall"
        }

    @property
    def mean(self) -> float:
        """Mean of the published dimensions, which is how we compute an overall score."""
        return sum(self.scores.values()) / len(self.scores)


class Published(BaseModel):
    """All published figures, with where they come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    conditions: str
    methods: list[Method]


@cache
def published() -> Published:
    """Return the published figures."""
    text = (files(__package__) / "published.yaml").read_text(encoding="utf-8")
    return Published.model_validate(yaml.safe_load(text))
