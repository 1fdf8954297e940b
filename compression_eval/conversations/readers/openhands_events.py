"""OpenHands conversations of the software agent SDK (version 1): events, told apart by kind.

They come as a line per event, as one list, or as a folder with a file per event.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    label,
    list_of,
    mapping_of,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.openhands_content import content_of
from compression_eval.conversations.readers.openhands_view import View
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    entered,
    identifier,
    leave_out_thinking,
    marked,
    origin,
    without_thinking,
)
from compression_eval.conversations.sources import SourceFile, Value, source_file
from compression_eval.fixtures.errors import DataError

_SKIPPED = {
    "ConversationStateUpdateEvent": "state of the program, not of the conversation",
    "CondensationSummaryEvent": "the summary that its condensation has already",
    "ConversationErrorEvent": "an error that the program showed to the user",
    "HookExecutionEvent": "a hook that ran beside the conversation",
    "InterruptEvent": "the user interrupted the agent",
    "LLMCompletionLogEvent": "a log of a model call",
    "PauseEvent": "the user paused the agent",
    "StreamingDeltaEvent": "a piece of a message that stands elsewhere as a whole",
    "TokenEvent": "tokens of a message that stands elsewhere as text",
}
_EVENT_FILE = re.compile(r"event-(\d+)-[\w-]+\.json", re.ASCII)
_EXPECTED = "events of the OpenHands SDK, each with a kind such as MessageEvent or ActionEvent"


@dataclass
class _Reading:
    """A conversation that is being read."""

    conversation: Conversation
    view: View = field(default_factory=View)
    turns: dict[str, Draft] = field(default_factory=dict)
    """The turn of each model reply: parallel calls are events of their own."""
    recognised: bool = False

    def feed(self, value: Value) -> None:
        """Enter an event and take what it holds."""
        event = value.value
        kind = text_of(event, "kind")
        line = entered(self.conversation.ledger, value, label(kind))
        if value.problem:
            return
        take = _TAKERS.get(kind)
        if take is not None or kind in _SKIPPED:
            self.recognised = True
        if kind == "ConversationStateUpdateEvent":
            self._state(event)
        if take is not None:
            take(self, event, line)
        elif kind in _SKIPPED:
            line.skip(_SKIPPED[kind])
        else:
            line.is_unknown("expected an object with a kind of event that is known")

    def _state(self, event: dict[str, Any]) -> None:
        """Take the model and the session's id from a state of the program."""
        value = mapping_of(event, "value")
        usage = mapping_of(mapping_of(value, "usage_to_metrics"), "default")
        agent = mapping_of(mapping_of(value, "agent"), "llm")
        found = origin(text_of(agent, "model") or text_of(usage, "model_name"))
        self.conversation.model = self.conversation.model or found
        self.conversation.session = self.conversation.session or identifier(value, "id")

    def _add(self, event: dict[str, Any], line: Line, draft: Draft) -> None:
        self.conversation.drafts.append(line.became(draft))
        self.view.add(identifier(event, "id"), draft)

    def system_prompt(self, event: dict[str, Any], line: Line) -> None:
        """Take the system prompt, and the tools."""
        texts = [text_of(mapping_of(event, key), "text") for key in _PROMPTS]
        draft = Draft("system", [text for text in texts if text])
        first = next((known for known in self.conversation.drafts if known.role == "system"), None)
        if not draft.content:
            line.is_unknown("expected a text in the field system_prompt")
        elif first is None:
            self._add(event, line, draft)
            tools, without = tool_definitions(list_of(event, "tools"))
            self.conversation.tools = tools
            if without:
                self.conversation.caveats.append(f"{without} tools are named without a schema")
        elif first.content == draft.content:
            line.merge(first)
        else:
            line.skip("another system prompt: the first one stands")
            self.conversation.caveats.append("the system prompt changed; the first one stands")

    def message(self, event: dict[str, Any], line: Line) -> None:
        """Take a message of the user, or one of the agent without a call."""
        said = mapping_of(event, "llm_message")
        role = text_of(said, "role")
        if role not in ("user", "assistant"):
            line.is_unknown("expected an llm_message of role user or assistant")
            return
        parts = list_of(event, "extended_content")
        content = content_of(said.get("content"), line) + content_of(parts, line)
        if role == "assistant":
            content = [
                without_thinking(part, line) if isinstance(part, str) else part for part in content
            ]
            _leave_out_reasoning(said, line)
        self._add(event, line, Draft("user" if role == "user" else "assistant", content))

    def action(self, event: dict[str, Any], line: Line) -> None:
        """Take a call; those of one model reply make one turn."""
        call = mapping_of(event, "tool_call")
        call_id = identifier(call, "id") or identifier(event, "tool_call_id")
        name = text_of(call, "name") or text_of(event, "tool_name")
        if not call_id or not name:
            line.is_unknown("expected a tool call with an id and a name")
            return
        arguments = call.get("arguments")
        if arguments is None:
            fields = mapping_of(event, "action")
            arguments = {key: item for key, item in fields.items() if key != "kind"}
        _leave_out_reasoning(event, line)
        content = content_of(event.get("thought"), line)
        reply = identifier(event, "llm_response_id")
        turn = self.turns.get(reply)
        if turn is None:
            turn = Draft("assistant")
            if reply:
                self.turns[reply] = turn
            self._add(event, line, turn)
        else:
            line.merge(turn)
            self.view.add(identifier(event, "id"), turn)
        turn.content.extend(
            without_thinking(part, line) if isinstance(part, str) else part for part in content
        )
        turn.calls.append(DraftCall(call_id, name, as_text(arguments)))

    def observation(self, event: dict[str, Any], line: Line) -> None:
        """Take the result of a call."""
        seen = mapping_of(event, "observation")
        content = content_of(seen.get("content", seen.get("output")), line)
        if not content and not {"content", "output"} & seen.keys():
            content = [as_text({key: item for key, item in seen.items() if key != "kind"})]
        content += content_of(list_of(event, "extended_content"), line)
        self._add(event, line, Draft("tool", content, call_id=identifier(event, "tool_call_id")))

    def rejection(self, event: dict[str, Any], line: Line) -> None:
        """Take the words with which a call was rejected."""
        text = marked("rejected", text=text_of(event, "rejection_reason"))
        self._add(event, line, Draft("tool", [text], call_id=identifier(event, "tool_call_id")))

    def error(self, event: dict[str, Any], line: Line) -> None:
        """Take the error that answered a call."""
        text = text_of(event, "error")
        self._add(event, line, Draft("tool", [text], call_id=identifier(event, "tool_call_id")))

    def condensation(self, event: dict[str, Any], line: Line) -> None:
        """Take a compaction."""
        forgotten = {str(name) for name in list_of(event, "forgotten_event_ids")}
        summary = text_of(event, "summary") or None
        offset = count_of(event, "summary_offset")
        self.conversation.compactions.append(self.view.condense(forgotten, summary, offset))
        line.skip("a condensation, recorded beside the messages")

    def request(self, event: dict[str, Any], line: Line) -> None:
        """Remember why the next condensation comes."""
        reason = label(text_of(event, "reason"))
        self.view.trigger = "requested" if reason in ("unnamed", "other") else reason
        line.skip("asks for the condensation that follows")


_PROMPTS = ("system_prompt", "dynamic_context")
_TAKERS: dict[str, Callable[[_Reading, dict[str, Any], Line], None]] = {
    "SystemPromptEvent": _Reading.system_prompt,
    "MessageEvent": _Reading.message,
    "ActionEvent": _Reading.action,
    "ObservationEvent": _Reading.observation,
    "UserRejectObservation": _Reading.rejection,
    "AgentErrorEvent": _Reading.error,
    "Condensation": _Reading.condensation,
    "CondensationRequest": _Reading.request,
}


def _leave_out_reasoning(holder: dict[str, Any], line: Line) -> None:
    if any(holder.get(key) for key in _REASONING):
        leave_out_thinking(line)


_REASONING = (
    "reasoning_content", "thinking_blocks", "responses_reasoning_item", "reasoning_details",
)  # fmt: skip


def _values(source: SourceFile) -> Iterator[Value]:
    """Yield the events of a file, or, given the first file of a folder, of all its files."""
    if _event_files(source) and isinstance(source.document, dict):
        yield from _folder(source)
    elif isinstance(source.document, list):
        for number, event in enumerate(source.document, 1):
            yield Value(f"event {number}", event)
    elif isinstance(source.document, dict):
        yield Value("event 1", source.document)
    else:
        yield from source.values()


def _event_files(source: SourceFile) -> list[tuple[int, Path]]:
    """Return the numbered files of a folder of events, in order; none for any other file."""
    if _EVENT_FILE.fullmatch(source.path.name) is None:
        return []
    matches = ((_EVENT_FILE.fullmatch(path.name), path) for path in source.path.parent.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match and path.is_file())


def _folder(source: SourceFile) -> Iterator[Value]:
    numbered = _event_files(source)
    if numbered[0][1].name != source.path.name:
        raise DataError(
            f"{source.path}: one event of a conversation; expected the first file of its folder, "
            "which stands for all of them"
        )
    for number, path in numbered:
        place = f"event {number}"
        try:
            file = source_file(path)
        except DataError:
            yield Value(place, problem="the file is empty or cannot be read")
            continue
        if file.document is None:
            yield Value(place, problem="not one JSON document")
        else:
            yield Value(place, file.document, replaced=file.document_replaced)


def _kinds(source: SourceFile) -> set[str]:
    document = source.document
    values = document[:60] if isinstance(document, list) else source.head or [document]
    return {
        text_of(value, "kind")
        for value in values
        if isinstance(value, dict) and {"id", "source", "timestamp"} <= set(value)
    }


def _recognise(source: SourceFile) -> str | None:
    numbered = _event_files(source)
    if numbered and numbered[0][1].name != source.path.name:
        return None  # read with the first file of its folder
    if _kinds(source) & (_TAKERS.keys() | _SKIPPED.keys()):
        return "events with id, source, timestamp and a kind of the OpenHands SDK"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    conversation = Conversation(
        "openhands-events", "OpenHands SDK conversation (V1)", "", Ledger(), caveats=[]
    )
    reading = _Reading(conversation)
    for value in _values(source):
        reading.feed(value)
    if not reading.recognised:
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    if not any(draft.role == "system" for draft in conversation.drafts):
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if not conversation.tools:
        conversation.caveats.append(NO_TOOLS)
    if source.document_replaced:
        conversation.caveats.append(REPLACED_BYTES)
    yield conversation


FORMAT = Format(
    name="openhands-events",
    title="OpenHands SDK events (V1)",
    recognise=_recognise,
    read=_read,
)
