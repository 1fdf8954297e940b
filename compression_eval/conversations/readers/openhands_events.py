"""OpenHands conversations of the software agent SDK (version 1): events, told apart by kind.

They come as a line per event, as one list, or as a folder with a file per event.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from compression_eval.conversations.drafts import Content, Conversation, Draft, Line
from compression_eval.conversations.fields import Json, as_text, entries, label, origin
from compression_eval.conversations.readers.base import (
    Format,
    Reader,
    Table,
    marked,
    without_thinking,
)
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.sources import SourceFile, Value, source_file
from compression_eval.errors import DataError

_REASONING = (
    *("reasoning_content", "thinking_blocks"),
    *("responses_reasoning_item", "reasoning_details"),
)
"""Fields of a message with the model's thinking."""

_EVENT_FILE = re.compile(r"event-(\d+)-[\w-]+\.json", re.ASCII)


class _Seen(NamedTuple):
    event: str
    draft: Draft | None
    summary: bool = False


class _Events(Reader):
    """Events of an agent, which keeps of them what its condensations left.

    Parallel calls are events of their own; those of one model reply make one turn.
    """

    format = "openhands-events"
    key = "kind"
    lacks = ()

    def __init__(self) -> None:
        super().__init__("OpenHands SDK conversation (V1)")
        self._view: list[_Seen] = []
        """The events that the agent still sees, in order; all of them count in offsets."""
        self._trigger = ""
        """Why the next condensation was asked for, in the agent's own word."""
        self._turns: dict[str, Draft] = {}
        """The turn of each model reply."""

    def _add(self, event: Json, line: Line, draft: Draft) -> None:
        self.say(line, draft)
        self._view.append(_Seen(event.name("id"), draft))

    def condensation(self, _: Line, event: Json) -> None:
        """Record a condensation: events are forgotten, and a summary may stand for them.

        Without an offset no summary is shown to the model.
        """
        forgotten = {str(name) for name in event.listed("forgotten_event_ids")}
        summary, offset = event.text("summary"), event.count("summary_offset")
        before = [item.draft for item in self._view if item.draft and not item.summary]
        # A summary replaces that of an earlier condensation.
        self._view = [
            item
            for item in self._view
            if item.event not in forgotten and not (item.summary and summary)
        ]
        if summary and offset is not None:
            self._view.insert(offset, _Seen("", Draft("user", [summary]), summary=True))
        shown = dict.fromkeys(item.draft for item in self._view if item.draft)
        self.compact(
            summary,
            [draft for draft in shown if draft.role != "system"],
            "summary" if summary else "clear",
            after=before[-1] if before else None,
            trigger=self._trigger,
        )
        self._trigger = ""

    def finish(self) -> Conversation:
        self.name_missing()
        return self

    def take(self, line: Line, entry: Json) -> None:
        kind, value = self.kind_of(entry), entry.entry("value")
        self.recognised = self.recognised or kind in self.kinds
        if kind == "ConversationStateUpdateEvent":
            model = value.text("agent", "llm", "model")
            model = model or value.text("usage_to_metrics", "default", "model_name")
            self.model = self.model or origin(model)
            self.session = self.session or value.name("id")
        super().take(line, entry)

    def system_prompt(self, line: Line, event: Json) -> None:
        texts = [event.text(key, "text") for key in ("system_prompt", "dynamic_context")]
        draft = Draft("system", [text for text in texts if text])
        first = self.system
        if not draft.content:
            line.is_unknown("expected a text in the field system_prompt")
        elif first is None:
            self._add(event, line, draft)
            self.take_tools(event.listed("tools"))
        elif first.content != draft.content:
            line.skip("another system prompt: the first one stands")
            self.caveat("the system prompt changed; the first one stands")

    def message(self, line: Line, event: Json) -> None:
        said = event.entry("llm_message")
        role = said.text("role")
        if role not in ("user", "assistant"):
            line.is_unknown("expected an llm_message of role user or assistant")
            return
        extended = event.listed("extended_content")
        draft = Draft("user", content_of(said.at("content"), line) + content_of(extended, line))
        if role == "assistant":
            draft.role, draft.content = "assistant", without_thinking(draft.content, line)
            _leave_out_reasoning(said, line)
        self._add(event, line, draft)

    def action(self, line: Line, event: Json) -> None:
        call, reply = event.entry("tool_call"), event.name("llm_response_id")
        call_id = call.name("id") or event.name("tool_call_id")
        name = call.text("name") or event.text("tool_name")
        if not call_id or not name:
            line.is_unknown("expected a tool call with an id and a name")
            return
        arguments = call.at("arguments")
        if arguments is None:
            arguments = _without_kind(event.entry("action"))
        _leave_out_reasoning(event, line)
        content = without_thinking(content_of(event.at("thought"), line), line)
        if reply in self._turns:
            turn = self._turns[reply]
            turn.content.extend(content)
            self._view.append(_Seen(event.name("id"), turn))
        else:
            turn = Draft("assistant", content)
            self._add(event, line, turn)
        if reply:
            self._turns[reply] = turn
        turn.call(call_id, name, arguments)

    def result(self, line: Line, event: Json) -> None:
        match self.kind_of(event):
            case "UserRejectObservation":
                content: Content = [marked("rejected", text=event.text("rejection_reason"))]
            case "AgentErrorEvent":
                content = [event.text("error")]
            case _:
                seen = event.entry("observation")
                content = content_of(seen.get("content", seen.get("output")), line)
                if not content and not {"content", "output"} & seen.keys():
                    content = [as_text(_without_kind(seen))]
                content += content_of(event.listed("extended_content"), line)
        self._add(event, line, Draft("tool", content, call_id=event.name("tool_call_id")))

    def request(self, _: Line, event: Json) -> None:
        """Remember why the next condensation comes."""
        reason = label(event.text("reason"))
        self._trigger = "requested" if reason in ("unnamed", "other") else reason

    kinds: ClassVar[Table] = {
        "SystemPromptEvent": system_prompt,
        "MessageEvent": message,
        "ActionEvent": action,
        "ObservationEvent": result,
        "UserRejectObservation": result,
        "AgentErrorEvent": result,
        "Condensation": condensation,
        "CondensationRequest": request,
        **dict.fromkeys(
            (
                *("ConversationStateUpdateEvent", "ConversationErrorEvent", "PauseEvent"),
                *("HookExecutionEvent", "InterruptEvent", "LLMCompletionLogEvent"),
            ),
            "of the program, not of the conversation",
        ),
        **dict.fromkeys(
            ("CondensationSummaryEvent", "StreamingDeltaEvent", "TokenEvent"),
            "repeats what another event holds",
        ),
    }


def _without_kind(fields: Json) -> Json:
    return Json({key: item for key, item in fields.items() if key != "kind"})


def _leave_out_reasoning(holder: Json, line: Line) -> None:
    if any(holder.get(key) for key in _REASONING):
        line.leave_out_thinking()


def _values(source: SourceFile) -> Iterator[Value]:
    """Yield the events of a file, or, given the first file of a folder, of all its files."""
    if isinstance(source.document, list):
        for number, event in enumerate(source.document, 1):
            yield Value(f"event {number}", event)
    elif not isinstance(source.document, dict):
        yield from source.values()
    else:
        numbered = _event_files(source) or [(1, source.path)]
        if numbered[0][1].name != source.path.name:
            raise DataError(
                f"{source.path}: one event of a conversation; expected the first file of its "
                "folder, which stands for all of them"
            )
        for number, path in numbered:
            yield _event_of(path, f"event {number}")


def _event_of(path: Path, place: str) -> Value:
    try:
        file = source_file(path)
    except DataError:
        return Value(place, problem="the file is empty or cannot be read")
    if file.document is None:
        return Value(place, problem="not one JSON document")
    return Value(place, file.document, replaced=file.document_replaced)


def _event_files(source: SourceFile) -> list[tuple[int, Path]]:
    """Return the numbered files of a folder of events, in order; none for any other file."""
    if _EVENT_FILE.fullmatch(source.path.name) is None:
        return []
    matches = ((_EVENT_FILE.fullmatch(path.name), path) for path in source.path.parent.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match and path.is_file())


def _recognise(source: SourceFile) -> str | None:
    numbered = _event_files(source)
    if numbered and numbered[0][1].name != source.path.name:
        return None  # read with the first file of its folder
    document = source.document
    values = document[:60] if isinstance(document, list) else source.head or [document]
    for event in entries(values):
        own = event.text("kind") in _Events.kinds
        if own and {"id", "source", "timestamp"} <= event.keys():
            return "events with id, source, timestamp and a kind of the OpenHands SDK"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    events = _Events()
    for value in _values(source):
        events.feed(value)
    if events.recognised:
        yield events.finish()


FORMAT = Format(
    "openhands-events",
    _recognise,
    _read,
    "events of the OpenHands SDK, each with a kind such as MessageEvent or ActionEvent",
)
