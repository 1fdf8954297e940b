"""The state after a compression, and how the compression went."""

from typing import Literal

from inspect_ai.model import ChatMessage
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.facts.records import FactRecord, Region

StateStatus = Literal[
    "ok",
    "not_applied",
    "not_smaller",
    "fallback",
    "aborted",
    "empty",
    "invalid_structure",
    "unsupported",
    "error",
]
"""How a compression ended; everything but ``ok`` is a failure, never a low score."""


class CycleRecord(BaseModel):
    """One compression of a chain."""

    model_config = ConfigDict(frozen=True)

    cut: int
    """Number of messages of the original history before it."""
    applied: str
    """Class name of the strategy that produced the result."""
    fallback_reason: str | None = None
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    """Wall time of the compression."""


class StateOutcome(BaseModel):
    """How a compression went: what a state shares with its record in each sample's log."""

    state_id: str
    computed_by: str = ""
    """The sample whose transcript shows the compression, with its epoch, perhaps an earlier one."""
    status: StateStatus = "ok"
    failure: str = ""
    """Why the status is not ``ok``."""
    suspect: list[str] = Field(default_factory=list)
    """Signs that the summary is not a real one, from `validity.suspicions`; the state still
    counts."""
    regions: list[Region] = Field(default_factory=list)
    """Region of each message, in the same order."""
    readable: bool = True
    """Whether the text of the state can be read; false for an encrypted one."""
    cycles: list[CycleRecord] = Field(default_factory=list)
    facts: list[FactRecord] = Field(default_factory=list)
    """One entry per expected fact of every probe at this cut; in a sample, of its own probe."""
    token_counter: str = ""
    """How tokens were counted, for example ``o200k_base`` or a stated estimate."""
    original_tokens: int = 0
    """Tokens of the history before the cut, uncompressed."""
    state_tokens: int = 0

    @property
    def tokens_removed(self) -> float:
        """Share of the history's tokens that was removed, 0 to 1."""
        return 1 - self.state_tokens / self.original_tokens if self.original_tokens else 0.0


class State(StateOutcome):
    """The outcome of compressing one fixture at one cut, shared by its probes."""

    fixture: str
    cut: int
    replicate: int
    """Number of the fresh compression in the run, from 0."""
    messages: list[ChatMessage] = Field(default_factory=list)
