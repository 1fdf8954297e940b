"""What a resumed sample leaves in its store: how the agent ended, and what the checks found."""

from typing import Literal

from inspect_ai.util import StoreModel
from pydantic import BaseModel, Field


class CheckResult(BaseModel):
    """One check after the agent has ended."""

    what: str
    kind: Literal["check", "rule", "value", "decision"]
    failure: str = ""
    """Why it did not pass; empty if it did."""
    in_state: bool | None = None
    """Of a constraint: whether the state held it, as far as looking its words up tells."""


class History(BaseModel):
    """What the conversation before the cut had done already."""

    files: list[str] = Field(default_factory=list)
    """Files that it read or wrote."""
    commands: list[str] = Field(default_factory=list)
    """Digests of the commands that it ran; see `again.commands_in`."""


class ResumptionRecord(StoreModel):
    """The place of the record in a sample's store."""

    folder: str = ""
    """The project folder in the sandbox."""
    history: History = Field(default_factory=History)
    first: int = 0
    """Number of messages before the agent's first: the state and the user's message."""
    stopped: str = ""
    """Why the work has no score, in countable words."""
    checked: list[CheckResult] = Field(default_factory=list)
    """Empty if the agent did not end by itself."""
    tokens: int = 0
    """All tokens of the calls from the state on, as the providers report them."""
