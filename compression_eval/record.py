"""The record in every sample's log, which is all that scorers need, and how a state is shown.

A scorer that is run again on an old log, with another grader or rubric, reads only this and the
sample's messages. A change of its fields raises `RECORD_VERSION`.

The messages of the state are the sample's own first messages. They are not copied into the store:
with the control ``full`` that would store the whole history twice in every sample.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from inspect_ai.event import Event, ModelEvent
from inspect_ai.log import EvalSample, resolve_sample_attachments, transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    Content,
    ContentData,
    ContentReasoning,
    ContentText,
    ContentToolUse,
    Model,
    ModelOutput,
)
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import TaskState
from inspect_ai.util import Store, StoreModel, store_from_events
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_serializer,
    field_validator,
)

from compression_eval.compressors.state import StateOutcome, StateStatus
from compression_eval.errors import DataError
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.conversation import vendor_summary
from compression_eval.fixtures.models import Language
from compression_eval.inspect_models import NO_CHOICES, refused, said
from compression_eval.text.printable import blank
from compression_eval.text.thinking import split_thinking

RECORD_VERSION = 3
_READABLE = {1, 2, RECORD_VERSION}
_SAID_SINCE = 3
"""From this version on, answers are without the thinking that no server has split off."""
_MAX_REASON_LENGTH = 100
_QUESTION_PARTS = 2
"""Parts of a probe's message: the introduction and the question."""


class AskedProbe(BaseModel):
    """A question about a state, with the facts of a correct answer."""

    model_config = ConfigDict(frozen=True)

    probe_id: str
    question: str
    facts: list[list[str]]
    """The forms of each expected fact, the one shown to people first."""

    @classmethod
    def of(cls, probe: Probe) -> "AskedProbe":
        """Return the recorded part of a probe."""
        facts = [fact.forms for fact in probe.expected_facts]
        return cls(probe_id=probe.id, question=probe.question, facts=facts)


class StateRecord(StateOutcome):
    """A state in one sample's log, with the facts of that sample's probe only."""

    status: StateStatus
    computed_here: bool = False
    """Whether this sample ran the compression, so that its transcript shows it."""
    message_count: int = 0
    """Number of the sample's first messages that are the state."""
    asked: list[AskedProbe] = Field(default_factory=list)
    """Every probe about the state, so that one reading serves all of them, also when the log is
    scored again. Older logs have none, or a list (record version 1); now it is one JSON text, which
    Inspect stores once for a sample, not in each event that shows the store."""

    @field_serializer("asked")
    def _as_text(self, asked: list[AskedProbe]) -> str:
        return json.dumps([probe.model_dump() for probe in asked], ensure_ascii=False)

    @field_validator("asked", mode="before")
    @classmethod
    def _from_text(cls, asked: object) -> object:
        return json.loads(asked) if isinstance(asked, str) else asked


class AnswerRecord(BaseModel):
    """The answer of the model under test."""

    text: str = ""
    """What it said, without its thinking."""
    model: str = ""
    stop_reason: str = ""
    tool_calls: list[str] = Field(default_factory=list)
    """Names of tools it tried to call in vain: a wish to fetch again."""
    failure: str = ""
    """The failure reported by the provider or the model; empty if there was none."""

    @classmethod
    def of(cls, output: ModelOutput, model: Model) -> "AnswerRecord":
        """Return what a model replied."""
        failure = ""
        if output.empty:
            return cls(model=str(model), failure=output.error or NO_CHOICES)
        if output.stop_reason == "model_length":
            failure = "the state and question do not fit the model's context window"
        elif refused(output):
            failure = "the model refused to answer"
        elif output.error:
            failure = output.error
        return cls(
            text=said(output),
            model=str(model),
            stop_reason=output.stop_reason,
            tool_calls=[call.function for call in (output.message.tool_calls or [])],
            failure=failure,
        )

    @property
    def problem(self) -> str:
        """Why there is nothing to grade, in countable words; empty if there is an answer.

        A reply that is blank, or all thinking, is no abstention: it was cut off, wanted to call
        tools, or failed.
        """
        if self.failure:
            (line, *_) = self.failure.strip().splitlines() or ["unknown"]
            return f"answer_failed: {line[:_MAX_REASON_LENGTH]}"
        if not blank(self.text):
            return ""
        if self.tool_calls:
            names = ", ".join(dict.fromkeys(self.tool_calls))
            return f"asked_to_fetch: {names[:_MAX_REASON_LENGTH]}"
        if self.stop_reason == "max_tokens":
            return "answer_failed: cut off before its first word (max_tokens)"
        return "answer_failed: the answer is empty"

    @property
    def cut_off(self) -> bool:
        """Whether the token limit cut it off."""
        return self.stop_reason == "max_tokens"


class FetchedRecord(BaseModel):
    """A message or a file that the model was given by a tool, wholly or in part."""

    message: int | None = None
    """Number of the message; None for a file."""
    path: str = ""
    known: bool
    """Whether the history had read it already: any message, and a file that a call touched."""
    in_state: bool = False
    """Whether the state contains the message as it was, so that fetching it was in vain."""


class RefetchRecord(BaseModel):
    """The second answer, for which the model could fetch from the history and its code base."""

    answer: AnswerRecord
    requests: int = 0
    """Requests to the model that were answered."""
    calls: dict[str, int] = Field(default_factory=dict)
    """Tool calls by tool; ``other`` are those that no tool took."""
    failed_calls: int = 0
    limit_reached: str = ""
    """``calls`` or ``tokens`` if a call was refused for it."""
    input_tokens: int | None = None
    """Of all requests, as the provider tells, cached ones too; None if it does not tell."""
    output_tokens: int | None = None
    fetched_tokens: int = 0
    """Of what the tools returned, by the counter that states are counted with."""
    fetched: list[FetchedRecord] = Field(default_factory=list)


class SampleRecord(BaseModel):
    """Everything a scorer may read about one sample, next to its messages."""

    fixture: str
    cut: int
    replicate: int
    language: Language
    probe: Probe
    """The probe with its answer key, as asked."""
    state: StateRecord
    answer: AnswerRecord | None = None
    refetch: RefetchRecord | None = None
    """None where the model could not fetch again."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Digest of the fixture, bank, rubric and prompts that made this sample."""
    files: dict[str, str] = Field(default_factory=dict)
    """For artifact probes: every file that the history before the cut names, with what became of
    it (a status of `file_ops.ledger`, or ``mentioned``). Older logs have none."""


class ProbeRecord(StoreModel):
    """The place of a sample's record in its store: ``sample.store_as(ProbeRecord).sample``."""

    record_version: int = RECORD_VERSION
    sample: SampleRecord | None = None


# Each new StoreModel builds a validator per field, which would take more time than everything else
# done for a sample. So runs write and read its two keys directly.
_VERSION_KEY = f"{ProbeRecord.__name__}:record_version"
_SAMPLE_KEY = f"{ProbeRecord.__name__}:sample"


def write_record(store: Store, record: SampleRecord) -> None:
    """Put a sample's record into its store."""
    store.set(_VERSION_KEY, RECORD_VERSION)
    store.set(_SAMPLE_KEY, record.model_dump(mode="json", exclude_defaults=True))


def read_record(store: Store | Mapping[str, Any]) -> SampleRecord | None:
    """Return the record that a sample's store contains, or None if it contains none.

    Raises:
        DataError: The record was written by an incompatible version.
    """
    version = store.get(_VERSION_KEY, RECORD_VERSION)
    if version not in _READABLE:
        raise DataError(
            f"record_version: is {version}, this version of compression_eval reads "
            f"{', '.join(map(str, sorted(_READABLE)))}"
        )
    stored = store.get(_SAMPLE_KEY)
    if stored is None:
        return None
    record = SampleRecord.model_validate(stored)
    if version < _SAID_SINCE:
        for holder in (record, record.refetch):
            if holder and holder.answer:
                holder.answer.text = split_thinking(holder.answer.text).said
    return record


@dataclass(frozen=True)
class Recorded:
    """A sample's record with what its log contains next to it: all that a scorer reads."""

    record: SampleRecord
    context: list[ChatMessage] = dataclass_field(default_factory=list)
    """The messages of the state, as the answering model was shown them."""
    output: ModelOutput = dataclass_field(default_factory=ModelOutput)
    """The answering model's reply; empty if it was not asked."""

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


_read_last: ContextVar[tuple[Any, Recorded] | None] = ContextVar("read_last", default=None)


def _read_sample(state: TaskState) -> Recorded | None:
    stored, last = state.store.get(_SAMPLE_KEY), _read_last.get()
    if last and last[0] is stored:
        return last[1]
    record = read_record(state.store)
    if record is None:
        return recovered(transcript().events)
    sample = Recorded(record, state.messages[: record.state.message_count], state.output)
    _read_last.set((stored, sample))
    return sample


def scoring(score: Callable[[Recorded, TaskState], Awaitable[Score]]) -> Scorer:
    """Return a scorer of recorded samples; the scorers of a sample read its record once.

    A sample whose solver never came to a state is unscored. A record that was written by an
    incompatible version is a `DataError`.

    Args:
        score: Returns the score of what the log contains; it is given the sample's state, too.
    """

    async def scored(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = _read_sample(state)
        if sample is not None:
            return await score(sample, state)
        return Score.unscored(
            reason="scoring_failed: no record",
            explanation="The sample's store contains no state: its solver did not get that far.",
        )

    return scored


def recorded_in(sample: EvalSample) -> Recorded | None:
    """Return the record of a log's sample; None if its solver reached no state.

    Raises:
        DataError: The record was written by an incompatible version.
    """
    record = read_record(sample.store)  # a `Store` would be a deep copy
    if record is None:
        return recovered(resolve_sample_attachments(sample).events)
    return Recorded(record, sample.messages[: record.state.message_count], sample.output)


def recovered(events: Sequence[Event]) -> Recorded | None:
    """Rebuild a sample's record from its events; None if they show no state.

    After a kill, Inspect recovers finished samples from its buffer of events. They have no store,
    and their messages and output are those of the first model called, perhaps the compressor.

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
        and said(event.output) == record.answer.text
    ]
    if not asked:
        return Recorded(record)
    *context, last = asked[-1].input
    if len(context) < record.state.message_count and isinstance(last.content, list):
        # Inspect merged the state's last message with the question, which has two parts.
        context.append(last.model_copy(update={"content": last.content[:-_QUESTION_PARTS]}))
    return Recorded(record, context[: record.state.message_count], asked[-1].output)


def render_messages(messages: Sequence[ChatMessage]) -> str:
    """Return messages as plain text for a grader or a person, one block each.

    A block begins with the role in brackets; a tool call has a line of its own with its name and
    JSON arguments. Unreadable parts are named, not shown. Ids, metadata, sources and model names
    are left out: they would tell a grader how the messages were made.
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
