"""What a scorer reads from a sample, and why a sample may have no score."""

from dataclasses import dataclass

from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage
from inspect_ai.scorer import Score
from inspect_ai.solver import TaskState

from compression_eval.fixtures.banks import Probe
from compression_eval.record import AnswerRecord, SampleRecord, StateRecord, read_record, recovered


@dataclass(frozen=True)
class ScoredSample:
    """A sample's record, read once, with the state that the answering model was shown."""

    record: SampleRecord
    context: list[ChatMessage]
    """The messages of the state."""

    @property
    def probe(self) -> Probe:
        """The question with its ground truth."""
        return self.record.probe

    @property
    def state(self) -> StateRecord:
        """The record of the state."""
        return self.record.state

    @property
    def compression_failure(self) -> str | None:
        """Why the compression failed; None if it did not."""
        return None if self.state.status == "ok" else f"compression_failed: {self.state.status}"

    @property
    def answer(self) -> AnswerRecord:
        """The model's answer; if none is recorded, a failure that says so."""
        return self.record.answer or AnswerRecord(failure="no answer was recorded")

    @property
    def answer_failure(self) -> str | None:
        """Why there is no answer to grade; None if there is one."""
        return self.answer.problem or None

    @property
    def answer_text(self) -> str | None:
        """The answer; None if there is none to grade."""
        return None if self.answer_failure else self.answer.text


def read_sample(state: TaskState) -> ScoredSample | None:
    """Return what the sample's store holds; None if its solver never came to a state.

    Raises:
        DataError: The record was written by an incompatible version.
    """
    if (record := read_record(state.store)) is not None:
        return ScoredSample(record, state.messages[: record.state.message_count])
    sample = recovered(transcript().events)
    return ScoredSample(sample.record, sample.context) if sample else None


def nothing_recorded() -> Score:
    """Return the score of a sample that has no record."""
    return Score.unscored(
        reason="scoring_failed: no record",
        explanation="The sample's store holds no state: its solver did not get that far.",
    )
