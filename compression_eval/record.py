"""What every sample's log holds, so that scorers need nothing else, and how a state is shown.

The log is the record: a scorer that is run again on an old log, with another grader or another
rubric, reads only this and the sample's messages. A change of its fields raises `RECORD_VERSION`.

The messages of the state are the sample's own first messages, as the model was given them. They
are not copied into the store: with the control ``full`` that would put the whole history into
every sample once more.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.event import Event, ModelEvent
from inspect_ai.log import EvalSample, resolve_sample_attachments
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    Content,
    ContentData,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    ModelOutput,
)
from inspect_ai.util import Store, StoreModel, store_from_events
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.compressors.state import StateOutcome, StateStatus
from compression_eval.errors import DataError
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.message_text import vendor_summary
from compression_eval.fixtures.models import Language

RECORD_VERSION = 1
_MAX_REASON_LENGTH = 100
_QUESTION_PARTS = 2
"""Parts of the message that puts a question: what comes before each one, and the question."""


class AskedProbe(BaseModel):
    """A question that is put to a state, with the facts that a right answer holds."""

    model_config = ConfigDict(frozen=True)

    probe_id: str
    question: str
    facts: list[list[str]]
    """The forms of each expected fact, the one shown to people first."""

    @classmethod
    def of(cls, probe: Probe) -> "AskedProbe":
        """Return what is kept of a probe."""
        facts = [fact.forms for fact in probe.expected_facts]
        return cls(probe_id=probe.id, question=probe.question, facts=facts)


class StateRecord(StateOutcome):
    """A state as one sample's log holds it: with the facts of that sample's probe only."""

    status: StateStatus
    computed_here: bool = False
    """Whether this sample carried out the compression, so that its transcript shows it."""
    message_count: int = 0
    """How many of the sample's messages, from the first on, are the state."""
    asked: list[AskedProbe] = Field(default_factory=list)
    """Every probe that is put to the state, so that it can be read once for all of them, also when
    the log is scored again. Older logs have none."""


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
    it (a status of `file_ops.ledger`, or ``mentioned``). Older logs have none."""


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
    stored = store.get(_SAMPLE_KEY)
    return None if stored is None else SampleRecord.model_validate(stored)


@dataclass(frozen=True)
class Recorded:
    """A record with what a sample's log holds beside it."""

    record: SampleRecord
    context: list[ChatMessage]
    """The messages of the state, as the answering model was shown them."""
    output: ModelOutput
    """The answering model's reply; empty if it was not asked."""


def recorded_in(sample: EvalSample) -> Recorded | None:
    """Return what a sample of a log holds; None if its solver never came to a state.

    Raises:
        DataError: The record was written by an incompatible version.
    """
    record = read_record(Store(sample.store))
    if record is None:
        return recovered(resolve_sample_attachments(sample).events)
    return Recorded(record, sample.messages[: record.state.message_count], sample.output)


def recovered(events: Sequence[Event]) -> Recorded | None:
    """Return what a sample's events tell of it; None if they tell of no state.

    When a run was killed, Inspect recovers the samples that were done from its buffer of events.
    They come without a store, and the first model that was called, perhaps the compressor, counts
    as the one whose messages and output they are.

    Args:
        events: The events, attachments resolved.
    """
    record = read_record(store_from_events(list(events)))
    if record is None:
        return None
    asked = [
        event
        for event in events
        if isinstance(event, ModelEvent)
        and event.input
        and record.probe.question in event.input[-1].text
        and record.answer is not None
        and event.output.completion == record.answer.text
    ]
    if not asked:
        return Recorded(record, [], ModelOutput())
    *context, last = asked[-1].input
    if len(context) < record.state.message_count and isinstance(last.content, list):
        # Inspect made one message of the state's last and the question, whose parts are two.
        context.append(last.model_copy(update={"content": last.content[:-_QUESTION_PARTS]}))
    return Recorded(record, context[: record.state.message_count], asked[-1].output)


def render_messages(messages: Sequence[ChatMessage]) -> str:
    """Return messages as plain text for a grader or a person, one block each.

    A block begins with the role in brackets; a tool call stands on a line of its own with its
    name and its arguments as JSON. Parts that cannot be read are named, not shown. Ids, metadata,
    sources and model names are left out: they would tell a grader how the messages came about.
    """
    return "\n\n".join(_block(message) for message in messages)


def _block(message: ChatMessage) -> str:
    head = f"[{message.role}]"
    if isinstance(message, ChatMessageTool) and message.function:
        head = f"[tool: {message.function}]"
    lines = [head]
    if isinstance(message.content, str):
        lines.append(message.content)
    else:
        lines.extend(_part(part) for part in message.content)
    if isinstance(message, ChatMessageTool) and message.error is not None:
        lines.append(f"(error) {message.error.message}")
    if isinstance(message, ChatMessageAssistant):
        for call in message.tool_calls or []:
            arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
            lines.append(f"(calls) {call.function} {arguments}")
    return "\n".join(line for line in lines if line)


def _part(part: Content) -> str:
    if isinstance(part, ContentText):
        return part.text
    if isinstance(part, ContentReasoning):
        text = part.summary if part.redacted else part.reasoning
        return f"(reasoning) {text}" if text else "(reasoning that cannot be read)"
    if isinstance(part, ContentToolUse):
        return f"(calls) {part.name} {part.arguments}\n(result) {part.error or part.result}"
    if isinstance(part, ContentData):
        return vendor_summary(part) or "(data that cannot be read)"
    return f"({part.type})"
