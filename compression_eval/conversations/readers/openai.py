"""OpenAI's chat messages, however they are stored, and files of them.

A file of the format is a fixture of this project, ``{"messages": […]}``, a list, or lines.
"""

from collections import defaultdict
from dataclasses import replace
from typing import Any, ClassVar, get_args

from compression_eval.conversations.drafts import (
    CompactionKind,
    Conversation,
    Draft,
    Line,
    Role,
)
from compression_eval.conversations.fields import Json, entries, label, origin
from compression_eval.conversations.readers.base import Place, Reader, prevails, thread_format
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.sources import SourceFile, Value

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_CHAT_PARTS = ("text", "image_url", "input_audio", "file", "refusal")
_THINKING = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")
_SESSION_KEYS = ("session_id", "conversation_id", "thread_id", "id", "name")
_SET_ANEW = ("notes", "language", "task_type", "cuts", "description", "truncated_to", "source")
"""Fields of a fixture that a person wrote; they are given again where the import is written."""


def chat_draft(message: Json, line: Line) -> Draft | None:
    """Return a chat message; None if it is none.

    Calls of the old form, and their results, know only the tool's name.
    """
    role, value = message.text("role"), message.at("content")
    if role not in ROLES:
        line.is_unknown(f"expected an object whose role is one of {', '.join(ROLES)}")
        return None
    if not isinstance(value, str | list | None):
        line.is_unknown("expected content that is a text, a list of parts or null")
        return None
    draft = Draft(ROLES[role], content_of(value, line))
    if draft.role == "tool":
        draft.call_id = message.name("name" if role == "function" else "tool_call_id")
    elif role == "user":
        draft.injected = message.at("injected") is True
    elif role == "assistant":
        draft.content.append(message.text("refusal"))
        for call in message.entries("tool_calls"):
            function, custom = call.entry("function"), call.entry("custom")
            if function:
                draft.call(call.name("id"), function.text("name"), function.at("arguments"))
            elif custom:
                draft.call(call.name("id"), custom.text("name"), {"input": custom.json("input")})
            else:
                line.leave_out("tool call", "expected an object with function or custom")
        legacy = message.entry("function_call")
        if legacy and not draft.calls:
            name = legacy.text("name")
            draft.call(name, name, legacy.at("arguments"))
    if any(message.get(key) for key in _THINKING):
        line.leave_out_thinking()
    return draft


class ValueThread(Reader):
    """A conversation of messages or items: each has a line, or a value contains many of them."""

    framed: ClassVar[tuple[str, str, int]] = ("conversation", "message", 0)
    """What to call an object that contains many, one of a list of them, and the first's number."""
    lacks = ()
    of_lines = False
    """Whether each message has a line; the first value that can be read decides."""
    _begun = False

    def frame_of(self, value: Any) -> Json | None:
        """Return a value as an object that contains many messages; None if it is none."""
        raise NotImplementedError

    def take_frame(self, line: Line, frame: Json, value: Value) -> None:
        """Take an object that contains many messages, and what it says next to them."""
        raise NotImplementedError

    def name_of(self, entry: Json) -> str:
        """Return what to call a message in counts."""
        return f"message:{label(entry.text('role'))}"

    def read_all(self, value: Value, what: str, messages: list[Any], first: int = 0) -> None:
        """Take messages that a value contains."""
        for number, message in enumerate(map(Json.of, messages), first + self.framed[2]):
            place = f"{value.place}, {what} {number}"
            super().feed(Value(place, message, replaced=value.replaced))

    def feed(self, value: Value) -> None:
        """Take what a value contains: one message, a list of them, or an object around them."""
        frame = self.frame_of(value.value)
        if not value.problem and not self._begun:
            self._begun, self.of_lines = True, not (frame or isinstance(value.value, list))
            first = self.of_lines or value.place in ("document", "line 1")
            self.part = "" if first else value.place
        if frame:
            self.take_frame(self.enter_value(value, self.framed[0]), frame, value)
        elif isinstance(value.value, list):
            self.read_all(value, self.framed[1], value.value)
        else:
            super().feed(value)

    def finish(self) -> Conversation:
        """Return the conversation; nothing is fed after it."""
        self.name_missing()
        return self


class _Thread(ValueThread):
    format = "openai-chat"

    def __init__(self) -> None:
        super().__init__("OpenAI chat messages")
        self._by_place: list[Draft | None] = []
        """The drafts of all messages read so far; None for one that could not be read."""
        self._waiting: dict[str, list[str]] = defaultdict(list)
        """Ids of calls of the old form that wait for their result, by the tool's name."""

    def frame_of(self, value: Any) -> Json | None:
        return Json(value) if _is_frame(value) else None

    def take(self, line: Line, entry: Json) -> None:
        draft = chat_draft(entry, line)
        if draft is not None:
            self._pair(draft, entry)
            self.say(line, draft)
        self._by_place.append(draft)

    def _pair(self, draft: Draft, message: Json) -> None:
        """Give a call of the old form an id of its own, or its result the id of the call.

        Of several calls in a row with one name, the first one gets the first result.
        """
        name, called = message.text("name"), message.text("function_call", "name")
        if message.text("role") == "function":
            draft.call_id = self._waiting[name].pop(0) if self._waiting[name] else ""
        elif called and [call.id for call in draft.calls] == [called]:
            if self.last is None or not (self.last.calls or self.last.role == "tool"):
                self._waiting.clear()  # nothing came of calls before other messages
            draft.calls = [replace(draft.calls[0], id=f"{called}-{len(self._by_place)}")]
            self._waiting[called].append(draft.calls[0].id)

    def take_frame(self, line: Line, frame: Json, value: Value) -> None:
        # A request may be with its response.
        choices = (frame.entry("response") or frame).entries("choices")[:1]
        answers = filter(None, (choice.entry("message") for choice in choices))
        self.read_all(value, "message", [*frame["messages"], *answers])
        self.session = frame.first(*_SESSION_KEYS)
        self.model = frame.text("model")
        self.context_length = frame.count("context_length") or None
        functions = [{"type": "function", "function": item} for item in frame.listed("functions")]
        self.take_tools([*frame.listed("tools"), *functions])
        for key in filter(frame.get, _SET_ANEW):
            line.leave_out(key, "of a fixture; it is set again where the import is written")
        if earlier := frame.text("source", "origin"):
            self.origin = origin(self.origin, "from", earlier)
        for item in frame.entries("recorded_compactions"):
            self._recorded(line, item)

    def _recorded(self, line: Line, value: Json) -> None:
        """Take a compaction of a fixture; its state names messages by their place."""
        messages, cut = self._by_place, value.count("cut")
        kinds: tuple[CompactionKind, ...] = get_args(CompactionKind)
        kind = next((known for known in kinds if known == value.get("kind", "summary")), None)
        if not cut or cut > len(messages) or kind is None:
            line.leave_out("recorded compaction", "its cut or kind is none that a fixture can have")
            return
        state: list[Draft | None] = []
        for item in value.listed("state"):
            if isinstance(item, dict):
                state.append(chat_draft(Json(item), Line()))
            elif isinstance(item, int) and 0 <= item < len(messages):
                state.append(messages[item])  # a message of the conversation itself
        known = isinstance(value.at("state"), list)
        self.compact(
            after=next((draft for draft in reversed(messages[:cut]) if draft is not None), None),
            kind=kind,
            trigger=value.text("trigger"),
            summary=value.text("summary"),
            tokens_before=value.count("tokens_before"),
            tokens_after=value.count("tokens_after"),
            state=[draft for draft in state if draft is not None] if known else None,
        )


def _is_frame(value: Any) -> bool:
    return isinstance(Json.of(value).at("messages"), list)


def _is_message(value: Any) -> bool:
    return Json.of(value).text("role") in ROLES and "type" not in value


def _is_chat(value: Any) -> bool:
    """Return whether a value is a chat message, and not one of another provider or agent."""
    if not _is_message(value):
        return False
    if "content" not in value and not (value.keys() & {"tool_calls", "function_call"}):
        return False  # its words are elsewhere: it is another agent's message
    content = value.get("content")
    if isinstance(content, list):
        return all(part.text("type") in _CHAT_PARTS for part in entries(content))
    if value["role"] == "tool" and not Json(value).text("tool_call_id"):
        return False
    return isinstance(content, str | None)


def _place(value: Any, thread: _Thread | None) -> Place:
    if _is_frame(value) or (isinstance(value, list) and any(map(_is_message, value))):
        return "opens"
    if _is_message(value):
        return "belongs" if thread is not None and thread.of_lines else "opens"
    return "foreign"


def _recognise(source: SourceFile) -> str | None:
    values = source.head or [source.document]
    seen = "a message on each line"
    if frames := [value for value in values if _is_frame(value)]:
        values, seen = frames[0]["messages"], "an object with messages"
    elif isinstance(values[0], list):
        values, seen = values[0], "a list of messages"
    if not prevails(values, lambda value: value.text("role"), _is_chat):
        return None
    roles = {value.text("role") for value in entries(values) if _is_chat(value)}
    if not roles & {"user", "assistant"}:
        return None
    return f"{seen} with role and content: {', '.join(sorted(roles))}"


FORMAT = thread_format(
    _Thread,
    _recognise,
    _place,
    "OpenAI chat messages (an object with messages, a list, or one on each line)",
)
