"""OpenAI's messages: content of chat and Responses alike, and files of chat messages.

A file of the format is a fixture of this project, ``{"messages": […]}``, a list, or lines.
"""

from collections import defaultdict
from typing import Any, ClassVar, get_args

from compression_eval.conversations.drafts import (
    CompactionKind,
    Content,
    Conversation,
    Draft,
    Image,
    Line,
    Role,
    image_at,
)
from compression_eval.conversations.fields import Json, as_text, entries, label, origin
from compression_eval.conversations.readers.base import Place, Reader, prevails, thread_format
from compression_eval.conversations.sources import SourceFile, Value

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_ATTACHED = {
    "input_file": "[an attached file]",
    "file": "[an attached file]",
    "input_audio": "[sound]",
}
_CHAT_PARTS = ("text", "image_url", "input_audio", "file", "refusal")
_THINKING = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")
_SESSION_KEYS = ("session_id", "conversation_id", "thread_id", "id", "name")
_SET_ANEW = ("notes", "language", "task_type", "cuts", "description", "truncated_to", "source")
"""Fields of a fixture that a person wrote; they are given again where the import is written."""


def content_of(value: Any, line: Line) -> Content:
    """Return the texts and images of a text, a list of parts or nothing, in their order.

    What is not carried over is said of the line.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        return [as_text(value)]
    pieces = (part if isinstance(part, str) else _piece(Json.of(part), line) for part in value)
    return [piece for piece in pieces if piece is not None]


def _piece(part: Json, line: Line) -> str | Image | None:
    match part.text("type"):
        case "text" | "input_text" | "output_text" | "summary_text":
            return part.text("text")
        case "image_url" | "input_image" | "computer_screenshot" | "image":
            return image_at(part.text("image_url", "url") or part.first("image_url", "url"))
        case "refusal":
            return part.text("refusal")
        case "reasoning" | "thinking" | "reasoning_text":
            line.leave_out_thinking()
        case kind if kind in _ATTACHED:
            line.leave_out(label(kind), "attached files and sound are not carried over")
            return _ATTACHED[kind]
        case "encrypted_content":
            line.leave_out("encrypted content", "it cannot be read")
        case kind:
            why = "unknown kind of content; its text, if any, is kept"
            line.leave_out(f"part {label(kind)}", why)
            return part.text("text") or None
    return None


class ChatMessages:
    """Reads the chat messages of one conversation."""

    def __init__(self) -> None:
        self.by_place: list[Draft | None] = []
        """The drafts of all messages read so far; None for one that could not be read."""
        self._legacy: dict[str, list[str]] = defaultdict(list)
        """Ids given to calls of the old form that wait for their result, by the tool's name."""
        self._count = 0

    def read(self, line: Line, message: Json) -> list[Draft]:
        """Return the message that a line is; none if it is no message."""
        draft = self.draft_of(line, message)
        self.by_place.append(draft)
        return [draft] if draft else []

    def draft_of(self, line: Line, message: Json) -> Draft | None:
        """Return a message; None if it is none."""
        role, value = message.text("role"), message.at("content")
        if role not in ROLES:
            line.is_unknown(f"expected an object whose role is one of {', '.join(ROLES)}")
            return None
        if not isinstance(value, str | list | None):
            line.is_unknown("expected content that is a text, a list of parts or null")
            return None
        draft = Draft(ROLES[role], content_of(value, line))
        if role == "tool":
            draft.call_id = message.text("tool_call_id")
        elif role == "function":  # the old form knows only the tool's name
            waiting = self._legacy[message.text("name")]
            draft.call_id = waiting.pop(0) if waiting else ""
        elif role == "user":
            draft.injected = message.at("injected") is True
        elif role == "assistant":
            if any(message.get(key) for key in _THINKING):
                line.leave_out_thinking()
            draft.content.append(message.text("refusal"))
            self._add_calls(draft, line, message)
        return draft

    def _add_calls(self, draft: Draft, line: Line, message: Json) -> None:
        for value in message.entries("tool_calls"):
            function, custom = value.entry("function"), value.entry("custom")
            call_id = value.text("id") or self._new_id()
            if function:
                draft.call(call_id, function.text("name"), function.at("arguments"))
            elif custom:
                draft.call(call_id, custom.text("name"), {"input": custom.json("input")})
            else:
                line.leave_out("tool call", "expected an object with function or custom")
        legacy = message.entry("function_call")
        if legacy and not draft.calls:
            draft.call(self._new_id(), legacy.text("name"), legacy.at("arguments"))
            self._legacy[legacy.text("name")].append(draft.calls[0].id)

    def _new_id(self) -> str:
        self._count += 1
        return f"call-{self._count}"


class ValueThread(Reader):
    """A conversation of messages or items: each has a line, or a value holds many of them."""

    framed: ClassVar[tuple[str, str, int]] = ("conversation", "message", 0)
    """What to call an object that holds many, one of a list of them, and the first's number."""
    lacks = ()
    of_lines = False
    """Whether each message has a line; the first value that can be read decides."""
    _begun = False

    def is_frame(self, value: Any) -> bool:
        """Return whether a value is an object that holds many messages."""
        raise NotImplementedError

    def take_frame(self, line: Line, frame: Json, value: Value) -> None:
        """Take an object that holds many messages, and what it says beside them."""
        raise NotImplementedError

    def name_of(self, entry: Json) -> str:
        """Return what to call a message in counts."""
        return f"message:{label(entry.text('role'))}"

    def read_all(self, value: Value, what: str, messages: list[Any]) -> None:
        """Take messages that a value holds."""
        for number, message in enumerate(map(Json.of, messages), self.framed[2]):
            place = f"{value.place}, {what} {number}"
            super().feed(Value(place, message, replaced=value.replaced))

    def feed(self, value: Value) -> None:
        """Take what a value holds: one message, a list of them, or an object around them."""
        content, is_frame = value.value, self.is_frame(value.value)
        if not value.problem and not self._begun:
            self._begun, self.of_lines = True, not (is_frame or isinstance(content, list))
            first = self.of_lines or value.place in ("document", "line 1")
            self.part = "" if first else value.place
        if isinstance(content, list):
            self.read_all(value, self.framed[1], content)
        elif is_frame:
            self.take_frame(self.enter_value(value, self.framed[0]), Json(content), value)
        else:
            super().feed(value)

    def finish(self) -> Conversation:
        """Return the conversation; nothing is fed after it."""
        self.name_missing()
        return self


class _Thread(ValueThread):
    format = "openai-chat"
    expected = (
        "expected OpenAI chat messages (an object with messages, a list, or one on each line), "
        "found none"
    )

    def __init__(self) -> None:
        super().__init__("OpenAI chat messages")
        self._messages = ChatMessages()

    def is_frame(self, value: Any) -> bool:
        return _is_frame(value)

    def take(self, line: Line, entry: Json) -> None:
        self.say(line, *self._messages.read(line, entry))

    def take_frame(self, line: Line, frame: Json, value: Value) -> None:
        # A request may stand with its response.
        choices = (frame.entry("response") or frame).entries("choices")[:1]
        answers = filter(None, (choice.entry("message") for choice in choices))
        self.read_all(value, "message", [*frame["messages"], *answers])
        self.session = frame.first(*_SESSION_KEYS)
        self.model = frame.text("model")
        self.context_length = frame.count("context_length") or None
        functions = [{"type": "function", "function": item} for item in frame.listed("functions")]
        self.take_tools([*frame.listed("tools"), *functions])
        for key in _SET_ANEW:
            if frame.get(key):
                line.leave_out(key, "of a fixture; it is set anew where the import is written")
        if earlier := frame.text("source", "origin"):
            self.origin = origin(self.origin, "from", earlier)
        for item in frame.entries("recorded_compactions"):
            self._recorded(line, item)

    def _recorded(self, line: Line, value: Json) -> None:
        messages, cut = self._messages.by_place, value.count("cut")
        kinds: tuple[CompactionKind, ...] = get_args(CompactionKind)
        kind = next((known for known in kinds if known == value.get("kind", "summary")), None)
        if not cut or cut > len(messages) or kind is None:
            line.leave_out("recorded compaction", "its cut or kind is none that a fixture can have")
            return
        reader, state = ChatMessages(), list[Draft | None]()
        for item in value.listed("state"):
            if isinstance(item, dict):
                state.append(reader.draft_of(Line(), Json(item)))
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
        return False  # its words stand elsewhere: it is another agent's message
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


FORMAT = thread_format(_Thread, _recognise, _place)
