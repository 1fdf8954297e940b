"""What every sample's log holds, so that scorers need nothing else.

The log is the record: a scorer that is run again on an old log, with another grader or another
rubric, reads only this. A change of its fields raises `RECORD_VERSION`.
"""

from inspect_ai.model import ChatMessage
from inspect_ai.util import StoreModel
from pydantic import BaseModel, Field

from compression_eval.compressors.state import CycleRecord, FactRecord, Region, StateStatus
from compression_eval.fixtures.models import Language, Probe

RECORD_VERSION = 1


class StateRecord(BaseModel):
    """A state as one sample's log holds it: with the facts of that sample's probe only."""

    state_id: str
    computed_here: bool = False
    """Whether this sample carried out the compression, so that its transcript shows it."""
    status: StateStatus
    failure: str = ""
    messages: list[ChatMessage] = Field(default_factory=list)
    regions: list[Region] = Field(default_factory=list)
    readable: bool = True
    cycles: list[CycleRecord] = Field(default_factory=list)
    facts: list[FactRecord] = Field(default_factory=list)
    token_counter: str = ""
    original_tokens: int = 0
    state_tokens: int = 0


class AnswerRecord(BaseModel):
    """What the model under test said."""

    text: str = ""
    model: str = ""
    stop_reason: str = ""
    tool_calls: list[str] = Field(default_factory=list)
    """Names of tools it tried to call, which it cannot: a wish to fetch again."""
    failure: str = ""
    """Why there is no answer to grade (context overflow and the like); empty if there is one."""


class ProbeRecord(StoreModel):
    """Everything a scorer may read about one sample."""

    record_version: int = RECORD_VERSION
    fixture: str = ""
    cut: int = 0
    replicate: int = 0
    language: Language = "en"
    probe: Probe | None = None
    """The probe with its answer key, as asked."""
    state: StateRecord | None = None
    answer: AnswerRecord | None = None
    digests: dict[str, str] = Field(default_factory=dict)
    """Digest of the fixture, bank, rubric and prompts that made this sample."""
