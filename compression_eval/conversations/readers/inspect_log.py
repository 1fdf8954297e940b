"""Logs of Inspect, `.eval` and `.json`: one conversation for each sample and epoch.

Inspect's own readers do the reading. A sample's messages are its last state. Where a compaction
replaced earlier ones they are taken from what the model was given before: the model calls of an
agent are a thread, whose inputs and answers together are the whole history. Sub-agents are
conversations of their own.
"""

import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from compression_eval.conversations.drafts import (
    Compaction,
    CompactionKind,
    Conversation,
    Draft,
    Image,
    Line,
    image_at,
)
from compression_eval.conversations.fields import Json, as_text, label, origin
from compression_eval.conversations.readers.base import Format, marks_of, with_asides
from compression_eval.conversations.sources import SourceFile, Value, check_archive
from compression_eval.errors import DataError

if TYPE_CHECKING:
    from inspect_ai.event import CompactionEvent, Event, ModelEvent, ToolEvent
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatMessage, ChatMessageAssistant, Content

_OUTSIDE = {
    "model": "a model call outside the conversation, as of a scorer or of what summarises",
    "tool": "a tool call outside the conversation",
    "compaction": "a compaction outside the conversation",
}
_PLACEHOLDERS = {"audio": "[sound]", "video": "[video]", "document": "[an attached document]"}


_Break = tuple[int, str | None]
"""Place of a compaction among the events, and its span."""


@dataclass(eq=False)
class _Call:
    """A model call that was answered, and where it is among the events."""

    index: int
    event: "ModelEvent"
    agent: str | None
    """The innermost span of an agent that it was made in."""

    @property
    def answer(self) -> "ChatMessage":
        """The message that came of it."""
        return self.event.output.message

    @property
    def ending(self) -> list["ChatMessage"]:
        """What the conversation was once it was answered."""
        return [*self.event.input, self.answer]


@dataclass(eq=False)
class _Thread:
    """The model calls of one conversation, and how it ended."""

    calls: list[_Call] = field(default_factory=list)
    messages: list["ChatMessage"] = field(default_factory=list)
    """Its last state, as logged; empty if the log has none."""
    compactions: list[tuple[int, "CompactionEvent", _Call | None]] = field(default_factory=list)
    """Their places among the events, and the first call after each."""
    summarised: dict[_Call, list["ChatMessage"]] = field(default_factory=dict)
    """What was to be summarised before a call, but for the prompt that asked for it."""


def key_of(message: "ChatMessage") -> str:
    """Return what tells a message from the others."""
    if message.id:
        return message.id
    calls = [call.id for call in getattr(message, "tool_calls", None) or []]
    answered = getattr(message, "tool_call_id", None)
    return json.dumps([message.role, message.text, calls, as_text(answered)])


def _give_ids(messages: Iterable["ChatMessage"]) -> None:
    """Give ids to the messages of a list that have none, as in old logs.

    The id is what a message says and how often it was said before in the list, since users and
    agents repeat themselves. In another list that begins alike a message gets the same id.
    """
    seen: Counter[str] = Counter()
    for message in messages:
        if message.id is None:
            said = key_of(message)
            seen[said] += 1
            message.id = f"{said} {seen[said]}"


def _threads_of(sample: "EvalSample") -> list[_Thread]:
    """Return the conversations of a sample, the main one first; messages without an id get one.

    Its events contain the calls of the agent, of sub-agents, of scorers and of what summarises. A
    call belongs to a conversation if its answer is a message of it, or was part of what a later
    call of it was given.
    """
    _give_ids(sample.messages)
    calls = _calls(sample.events)
    compactions = [
        (i, event) for i, event in enumerate(sample.events) if event.event == "compaction"
    ]
    breaks: list[_Break] = [(index, event.span_id) for index, event in compactions]
    main = _Thread(messages=list(sample.messages))
    if main.messages or calls:
        main.calls = _chain(calls, main.messages or calls[-1].ending, breaks)
    threads, taken = [main], set(main.calls)
    own = {call.agent for call in taken}
    by_agent: dict[str, list[_Call]] = {}
    for call in calls:
        if call not in taken and call.agent is not None and call.agent not in own:
            by_agent.setdefault(call.agent, []).append(call)
    for group in by_agent.values():
        threads.append(_Thread(_chain(group, group[-1].ending, breaks)))
    for index, event in compactions:
        thread, following = _owner(index, event, threads)
        thread.compactions.append((index, event, following))
        if following is not None:
            thread.summarised[following] = _summarised(thread, index, calls)
    return threads


def _calls(events: Sequence["Event"]) -> list[_Call]:
    agents: dict[str, str | None] = {}
    calls: list[_Call] = []
    for index, event in enumerate(events):
        if event.event == "span_begin":
            outer = agents.get(event.parent_id or "")
            agents[event.id] = event.id if event.type == "agent" else outer
        elif event.event == "model" and event.output.choices:
            _give_ids([*event.input, event.output.message])
            calls.append(_Call(index, event, agents.get(event.span_id or "")))
    return calls


def _chain(
    calls: Sequence[_Call], messages: Iterable["ChatMessage"], breaks: Sequence[_Break]
) -> list[_Call]:
    """Return the calls that led to some messages, in order.

    A compaction breaks the chain: what was said before it may be in nothing that comes after.
    There the last call before it goes on that was made at the same place with the same tools;
    that is not the call which summarised.
    """
    known = {key_of(message) for message in messages}
    chain: list[_Call] = []
    for call in reversed(calls):
        goes_on = bool(chain) and _goes_on(call, chain[-1], breaks)
        if goes_on or key_of(call.answer) in known:
            known.update(map(key_of, call.ending))
            chain.append(call)
    return chain[::-1]


def _goes_on(call: _Call, later: _Call, breaks: Sequence[_Break]) -> bool:
    """Whether only a compaction lies between a call and a later one."""
    place = later.event.span_id
    tools, others = ({info.name for info in each.event.tools} for each in (call, later))
    if call.event.span_id != place or tools != others:
        return False
    return any(call.index < index < later.index and span == place for index, span in breaks)


def _owner(
    index: int, event: "CompactionEvent", threads: Sequence[_Thread]
) -> tuple[_Thread, _Call | None]:
    """Return the conversation whose call comes next where a compaction happened, and the call."""
    pairs = [(thread, call) for thread in threads for call in thread.calls]
    pairs.sort(key=lambda pair: pair[1].index)
    near = [pair for pair in pairs if pair[1].event.span_id == event.span_id] or pairs
    later = (pair for pair in near if pair[1].index > index)
    return next(later, (near[-1][0] if near else threads[0], None))


def _summarised(thread: _Thread, index: int, calls: Sequence[_Call]) -> list["ChatMessage"]:
    """Return what a model summarised for a compaction; empty if none did.

    What came between the last answer and the compaction may be nowhere else. Results are, in the
    events of their tools; here they may have been shortened.
    """
    before = [call for call in thread.calls if call.index < index]
    for call in reversed(calls):
        if before and before[-1].index < call.index < index and not call.event.tools:
            given = call.event.input[:-1]  # without the prompt that asks for the summary
            if key_of(before[-1].answer) in map(key_of, given):
                return [message for message in given if message.role != "tool"]
    return []


class _History:
    """Fills a conversation from one thread of a sample."""

    def __init__(self, conversation: Conversation, thread: _Thread, lines: Sequence[Line]) -> None:
        self._conversation = conversation
        self._thread = thread
        self._lines = lines
        """The line of every event of the sample; only those of the thread are settled."""
        self._order: list[str] = []
        self._drafts: dict[str, list[Draft]] = {}
        """What the messages of the history became, by their keys."""
        self._made: set[str] = set()
        """Keys of messages that a compaction wrote, or that join others."""
        self._last = {key_of(message) for message in thread.messages}
        self._answers = {key_of(call.answer) for call in thread.calls}
        self._answered: set[str | None] = set()
        """Calls whose result is in the history."""

    def fill(self) -> None:
        """Take all messages, then the compactions."""
        after_compaction = {call for _, _, call in self._thread.compactions}
        for call in self._thread.calls:
            self._take_call(call, compacted=call in after_compaction)
        self._take_last()
        self._conversation.drafts.extend(
            draft for key in self._order for draft in self._drafts[key]
        )
        # Of several before one call only the last left what the call was given.
        pending: dict[_Call | None, CompactionEvent] = {}
        for _, event, following in self._thread.compactions:
            pending[following] = event
        for following, event in pending.items():
            self._conversation.compactions.append(self._compaction(event, following))
        tools = {info.name: info for call in self._thread.calls for info in call.event.tools}
        self._conversation.take_tools(
            info.model_dump(mode="json", exclude_none=True) for info in tools.values()
        )

    def add_results(self, events: Sequence[tuple[int, "ToolEvent"]]) -> None:
        """Settle the thread's tool calls, given with their places.

        A result that no message contains is taken from its event.
        """
        drafts = self._conversation.drafts
        results = {draft.call_id: draft for draft in drafts if draft.call_id}
        calls = {call.id for draft in drafts for call in draft.calls}
        for index, event in events:
            line = self._lines[index]
            if event.id in results:
                continue
            if event.id not in calls:
                line.skip("a call of a message that a compaction wrote")
                continue
            text = event.error.message if event.error is not None else as_text(event.result)
            draft = line.became(Draft("tool", [text], call_id=event.id))
            draft.failed = event.error is not None
            place = self._behind(event.id)
            for compaction in self._conversation.compactions:
                if compaction.after is drafts[place - 1]:
                    compaction.after = draft
            drafts.insert(place, draft)
            results[event.id] = draft

    def _behind(self, identifier: str) -> int:
        """Return the place behind a call and the results that it has."""
        drafts = self._conversation.drafts
        ids = [[call.id for call in draft.calls] for draft in drafts]
        place = 1 + next(index for index, calls in enumerate(ids) if identifier in calls)
        while place < len(drafts) and drafts[place].role == "tool":
            place += 1
        return place

    def _take_call(self, call: _Call, *, compacted: bool) -> None:
        """Take what a call was given for the first time, and its answer: they are the newest."""
        line = self._lines[call.index]
        for message in [*self._thread.summarised.get(call, ()), *call.event.input]:
            key = key_of(message)
            if key in self._made or key in self._drafts:
                continue
            if self._is_made(message, compacted=compacted):
                self._made.add(key)
            else:
                self._insert(message, len(self._order), line)
        key = key_of(call.answer)
        if key not in self._drafts:
            self._insert(call.answer, len(self._order), line)

    def _take_last(self) -> None:
        """Take from the last state what no call was given."""
        position = -1
        for number, message in enumerate(self._thread.messages):
            line = self._conversation.enter(f"message {number}", f"message:{label(message.role)}")
            key = key_of(message)
            if self._is_summary(message) or key in self._made:
                self._made.add(key)
                line.skip("written by a compaction")
                continue
            if key not in self._drafts:
                self._insert(message, position + 1, line)
            position = self._order.index(key)

    def _insert(self, message: "ChatMessage", position: int, line: Line) -> None:
        key = key_of(message)
        self._drafts[key] = [line.became(draft) for draft in drafts_of(message, line)]
        self._order.insert(position, key)
        if message.role == "tool":
            self._answered.add(message.tool_call_id)

    def _is_made(self, message: "ChatMessage", *, compacted: bool) -> bool:
        """Whether nobody said a new message: a compaction wrote it, or joined others in it."""
        if self._is_summary(message):
            return True
        joined = (message.metadata or {}).get("combined_from")
        if isinstance(joined, list) and key_of(message) not in self._last:
            seen = self._last | self._made | self._drafts.keys()
            return any(part in seen for part in joined)
        return compacted and key_of(message) not in self._answers and self._is_changed(message)

    def _is_changed(self, message: "ChatMessage") -> bool:
        """Whether a message that came with a compaction is an earlier one, changed by it."""
        if message.role == "tool":
            return (
                message.tool_call_id in self._answered
                or message.text == marks_of("inspect")["removed"]
            )
        if message.role == "system":
            return any(self._drafts[key][0].role == "system" for key in self._order)
        if message.role == "assistant":
            return key_of(message) not in self._last or self._says_again(message)
        return False

    def _says_again(self, message: "ChatMessageAssistant") -> bool:
        """Whether an answer is one of the history, but for its thinking."""
        calls = {call.id for call in message.tool_calls or []}
        return any(
            draft.role == "assistant"
            and {call.id for call in draft.calls} == calls
            and (bool(calls) or draft.text == message.text)
            for key in self._order
            for draft in self._drafts[key]
        )

    def _compaction(self, event: "CompactionEvent", call: _Call | None) -> Compaction:
        given = [] if call is None else [m for m in call.event.input if m.role != "system"]
        summaries = [_summary(message.text) for message in given if self._is_summary(message)]
        kind: CompactionKind = "clear"
        if event.type == "summary":
            kind = "summary" if summaries else "opaque"
        trigger = (event.metadata or {}).get("trigger")
        return Compaction(
            after=self._before(call),
            kind=kind,
            trigger=label(trigger) if trigger else "",
            summary=summaries[-1] if summaries and kind == "summary" else None,
            tokens_before=event.tokens_before,
            tokens_after=event.tokens_after,
            state=None if call is None else [d for m in given for d in self._state_of(m)],
        )

    def _state_of(self, message: "ChatMessage") -> list[Draft]:
        known = self._drafts.get(key_of(message))
        if known is not None:
            return known
        made = drafts_of(message, Line())
        return [draft for draft in made if draft.content or draft.calls or draft.role == "tool"]

    def _before(self, call: _Call | None) -> Draft | None:
        end = len(self._order) if call is None else self._order.index(key_of(call.answer))
        return self._drafts[self._order[end - 1]][-1] if end else None

    def _is_summary(self, message: "ChatMessage") -> bool:
        if message.role != "user" or not self._thread.compactions:
            return False
        if (message.metadata or {}).get("summary"):
            return True
        return message.text.lstrip().startswith(marks_of("inspect")["summary_starts"])


def _summary(text: str) -> str:
    """Return a summary without the message that it was joined to, as some providers demand."""
    starts = marks_of("inspect")["summary_starts"]
    places = [place for start in starts if (place := text.find(start)) >= 0]
    return text[min(places, default=0) :]


def drafts_of(message: "ChatMessage", line: Line) -> list[Draft]:
    """Return what a message becomes.

    As a rule it is one. Tools that the provider runs stand with their results inside the answer; a
    fixture contains each result behind its call, so that what follows is a message of its own.
    """
    drafts = [Draft(message.role)]
    if message.role == "tool":
        drafts[0].call_id = message.tool_call_id or ""
        if message.error is not None:
            # What the model was shown: providers send it in place of the content.
            drafts[0].content.append(message.error.message)
            drafts[0].failed = True
            return drafts
    for part in [message.content] if isinstance(message.content, str) else message.content:
        if not isinstance(part, str) and part.type == "tool_use":
            drafts[-1].call(part.id, part.name, part.arguments)
            drafts.append(Draft("tool", [part.error or part.result], call_id=part.id))
            drafts.append(Draft(message.role))
        elif (piece := _piece(part, line)) is not None:
            drafts[-1].content.append(piece)
    if message.role == "assistant":
        for call in message.tool_calls or []:
            drafts[-1].call(call.id, call.function, call.arguments)
    if len(drafts) > 1 and not drafts[-1].content and not drafts[-1].calls:
        drafts.pop()
    return drafts


def _piece(part: "str | Content", line: Line) -> str | Image | None:
    if isinstance(part, str):
        return part
    if part.type == "text":
        return part.text
    if part.type == "image":
        return image_at(part.image)
    if part.type == "reasoning":
        line.leave_out_thinking()
        return None
    line.leave_out(label(part.type), "it is not carried over")
    return _PLACEHOLDERS.get(part.type)


def _recognise(source: SourceFile) -> str | None:
    if source.magic.startswith(b"PK"):
        try:
            with zipfile.ZipFile(source.path) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError):
            return None
        own = "header.json" in names or any(name.startswith("_journal/") for name in names)
        return "a zip archive with the header of an Inspect log" if own else None
    head = Json.of((source.head or [source.document])[0])
    if head.text("status") and head.text("eval", "task"):
        return "a JSON object with status and eval.task"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a log; samples that cannot be read are named in the last one."""
    nothing = f"{source.path}: there is no sample that can be read"
    return with_asides(_items(source), "sample", nothing)


def _items(source: SourceFile) -> Iterator[Conversation | Value]:
    for number, (header, sample) in enumerate(_samples(source)):
        if isinstance(sample, str):
            yield Value(f"sample {number}", problem=sample)
        else:
            about = header.eval
            version = str(about.packages.get("inspect_ai", ""))
            yield from conversations_of(sample, about.model, about.eval_id, version)


def _samples(source: SourceFile) -> Iterator[tuple["EvalLog", "EvalSample | str"]]:
    """Yield the samples of a log one by one, or why one cannot be read; only one is held."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

    path = str(source.path.resolve())
    archive = source.magic.startswith(b"PK")
    form: Literal["eval", "json"] = "eval" if archive else "json"
    try:
        if archive:
            check_archive(source.path)
        header = read_eval_log(path, header_only=archive, format=form, resolve_attachments="core")
        summaries = read_eval_log_sample_summaries(path, format=form) if archive else []
    except DataError:
        raise
    except Exception as error:
        # What Inspect raises here is of many kinds, and may repeat content.
        kind = type(error).__name__
        raise DataError(f"{source.path}: cannot be read as a log of Inspect ({kind})") from error
    whole = header.samples or []
    header.samples = None
    while whole:
        yield header, whole.pop(0)
    for summary in summaries:
        try:
            sample = read_eval_log_sample(
                path,
                summary.id,
                summary.epoch,
                resolve_attachments="core",
                format=form,
                exclude_fields={"store", "metadata", "scores", "timelines"},
            )
        except Exception as error:
            yield header, f"Inspect cannot read the sample ({type(error).__name__})"
        else:
            yield header, sample


def conversations_of(
    sample: "EvalSample", model: str, run: str, version: str = ""
) -> Iterator[Conversation]:
    """Yield the conversation of a sample, and those of its sub-agents.

    Args:
        sample: With its events.
        model: The model, where no call names it.
        run: Identifies the run, where the sample has no identifier of its own.
        version: Of Inspect.
    """
    threads = _threads_of(sample)
    owners = {call.index: number for number, one in enumerate(threads) for call in one.calls}
    by_call: dict[str, int] = {}
    for number, one in enumerate(threads):
        owners.update((index, number) for index, _, _ in one.compactions)
        for message in [*one.messages, *(call.answer for call in one.calls)]:
            for made in (message.tool_calls or []) if message.role == "assistant" else []:
                by_call.setdefault(made.id, number)
    tools = [(index, event) for index, event in enumerate(sample.events) if event.event == "tool"]
    owners.update((index, by_call[event.id]) for index, event in tools if event.id in by_call)
    for number, one in enumerate(threads):
        conversation = Conversation(
            FORMAT.name,
            origin("Inspect", version, "log"),
            sample.uuid or f"{run}/{sample.id}",
            part=f"epoch-{sample.epoch}" + (f"-agent-{number}" if number else ""),
            model=one.calls[-1].event.model if one.calls else model,
        )
        if number:
            conversation.caveat("a sub-agent of the sample's agent")
        lines: list[Line] = []
        """One for each event; those of other conversations are in no account of this one."""
        for index, event in enumerate(sample.events):
            line = Line(f"event {index}", f"event:{label(event.event)}")
            if owners.get(index, 0) == number:
                conversation.lines.append(line)
            if index not in owners:
                line.skip(_OUTSIDE.get(event.event, "no message of the conversation"))
            lines.append(line)
        history = _History(conversation, one, lines)
        history.fill()
        history.add_results([item for item in tools if owners.get(item[0]) == number])
        conversation.name_missing()
        if sample.error is not None:
            conversation.caveat("the sample ended with an error")
        if sample.limit is not None:
            conversation.caveat(f"the sample was ended by a limit ({label(sample.limit.type)})")
        yield conversation


FORMAT = Format("inspect", _recognise, _read)
