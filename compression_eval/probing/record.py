"""What every sample's log holds, so that scorers need nothing else.

The log is the record: a scorer that is run again on an old log, with another grader or another
rubric, reads only this and the sample's messages. A change of its fields raises `RECORD_VERSION`.

The messages of the state are the sample's own first messages, as the model was given them. They
are not copied into the store: with the control ``full`` that would put the whole history into
every sample once more.
"""

from inspect_ai.util import Store, StoreModel
from pydantic import BaseModel, Field

from compression_eval.compressors.state import CycleRecord, FactRecord, Region, StateStatus
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.models import Language

RECORD_VERSION = 1
_MAX_REASON_LENGTH = 100


class StateRecord(BaseModel):
    """A state as one sample's log holds it: with the facts of that sample's probe only."""

    state_id: str
    computed_here: bool = False
    """Whether this sample carried out the compression, so that its transcript shows it."""
    computed_by: str = ""
    """The sample that carried it out, with its epoch."""
    status: StateStatus
    failure: str = ""
    message_count: int = 0
    """How many of the sample's messages, from the first on, are the state."""
    regions: list[Region] = Field(default_factory=list)
    """Region of each of them."""
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
    """What the provider or the model itself said that went wrong; empty if it said nothing."""

    @property
    def problem(self) -> str:
        """Why there is nothing to grade, in words that can be counted; empty if there is.

        A reply without a word has not said that it knows nothing: it was cut off, wanted to call
        tools, or failed.
        """
        if self.failure:
            (line, *_) = self.failure.strip().splitlines() or ["unknown"]
            return f"answer_failed: {line[:_MAX_REASON_LENGTH]}"
        if any(letter.isprintable() and not letter.isspace() for letter in self.text):
            return ""
        if self.tool_calls:
            names = ", ".join(dict.fromkeys(self.tool_calls))
            return f"asked_to_fetch: {names[:_MAX_REASON_LENGTH]}"
        if self.stop_reason == "max_tokens":
            return "answer_failed: cut off before its first word (max_tokens)"
        return "answer_failed: the answer is empty"

    @property
    def cut_off(self) -> bool:
        """Whether it ended in the middle, for want of tokens."""
        return self.stop_reason == "max_tokens"


class SampleRecord(BaseModel):
    """Everything a scorer may read about one sample, beside its messages."""

    fixture: str
    cut: int
    replicate: int
    language: Language
    probe: Probe
    """The probe with its answer key, as asked."""
    state: StateRecord
    answer: AnswerRecord | None = None
    digests: dict[str, str] = Field(default_factory=dict)
    """Digest of the fixture, bank, rubric and prompts that made this sample."""
    files: dict[str, str] = Field(default_factory=dict)
    """For artifact probes: every file that the history before the cut names, with what became of
    it (a status of `fixtures.artifacts.inventory`, or ``mentioned``). Older logs have none."""


class ProbeRecord(StoreModel):
    """The place of a sample's record in its store: ``sample.store_as(ProbeRecord).sample``."""

    record_version: int = RECORD_VERSION
    sample: SampleRecord | None = None


# A StoreModel builds a validator for each field whenever one is made, which would take more time
# than all else that is done for a sample. So runs write and read its two keys directly.
_VERSION_KEY = f"{ProbeRecord.__name__}:record_version"
_SAMPLE_KEY = f"{ProbeRecord.__name__}:sample"


def write_record(store: Store, record: SampleRecord) -> None:
    """Put a sample's record into its store."""
    store.set(_VERSION_KEY, RECORD_VERSION)
    store.set(_SAMPLE_KEY, record.model_dump(mode="json", exclude_defaults=True))


def read_record(store: Store) -> SampleRecord | None:
    """Return the record that a sample's store holds, or None if it holds none.

    Raises:
        DataError: The record was written by an incompatible version.
    """
    version = store.get(_VERSION_KEY, RECORD_VERSION)
    if version != RECORD_VERSION:
        raise DataError(
            f"record_version: is {version}, this version of compression_eval reads {RECORD_VERSION}"
        )
    found = store.get(_SAMPLE_KEY)
    return None if found is None else SampleRecord.model_validate(found)
