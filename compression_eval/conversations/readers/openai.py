"""OpenAI's messages: content of chat and Responses alike, and files of chat messages.

A file of the format is a fixture of this project, ``{"messages": […]}``, a list, or lines.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, get_args

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import (
    CompactionKind,
    Content,
    Conversation,
    Draft,
    DraftCall,
    Image,
)
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    REPLACED_BYTES,
    Entry,
    Place,
    entered,
    image_at,
    leave_out_thinking,
    nowhere,
    take_tools,
    threads,
)
from compression_eval.conversations.sources import SourceFile, Value

ROLES = ("system", "developer", "user", "assistant", "tool", "function")

_ATTACHED = {
    "input_file": "[an attached file]",
    "file": "[an attached file]",
    "input_audio": "[sound]",
}
_CHAT_PARTS = ("text", "image_url", "input_audio", "file", "refusal")
_THINKING = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")
_KINDS: tuple[CompactionKind, ...] = get_args(CompactionKind)
_SESSION_KEYS = ("session_id", "conversation_id", "thread_id", "id", "name")
_SET_ANEW = ("notes", "language", "task_type", "cuts", "description", "truncated_to", "source")
"""Fields of a fixture that a person wrote; they are given again where the import is written."""


def content_of(value: Any, line: Line) -> Content:
    """Return texts and images in their order.

    Args:
        value: A text, a list of parts, or nothing.
        line: Where what is not carried over is entered.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        return [as_text(value)]
    pieces = (part if isinstance(part, str) else _piece(part, line) for part in value)
    return [piece for piece in pieces if piece is not None]


def _piece(part: Any, line: Line) -> str | Image | None:
    match text_of(part, "type"):
        case "text" | "input_text" | "output_text" | "summary_text":
            return text_of(part, "text")
        case "image_url" | "input_image" | "computer_screenshot" | "image":
            address = text_of(part, "image_url", "url") or text_of(part, "image_url")
            return image_at(address or text_of(part, "url"))
        case "refusal":
            return text_of(part, "refusal")
        case "reasoning" | "thinking" | "reasoning_text":
            leave_out_thinking(line)
        case kind if kind in _ATTACHED:
            line.leave_out(label(kind), "attached files and sound are not carried over")
            return _ATTACHED[kind]
        case "encrypted_content":
            line.leave_out("encrypted content", "it cannot be read")
        case kind:
            why = "unknown kind of content; its text, if any, is kept"
            line.leave_out(f"part {label(kind)}", why)
            return text_of(part, "text") or None
    return None


class ChatMessages:
    """Adds chat messages to a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self.by_place: list[Draft | None] = []
        """The drafts of all messages read so far; None for one that could not be read."""
        self._conversation = conversation
        self._legacy: dict[str, deque[str]] = {}
        """Ids given to calls of the old form that wait for their result, by the tool's name."""
        self._count = 0

    def read(self, line: Line, message: Any) -> None:
        """Add a message, and settle its line."""
        draft = self.draft_of(line, message)
        self.by_place.append(draft)
        if draft is not None:
            self._conversation.say(line, draft)

    def draft_of(self, line: Line, message: Any) -> Draft | None:
        """Return a message; None if it is none, then its line is settled."""
        role = text_of(message, "role")
        if role not in ROLES:
            line.is_unknown(f"expected an object whose role is one of {', '.join(ROLES)}")
        elif not isinstance(message.get("content"), str | list | None):
            line.is_unknown("expected content that is a text, a list of parts or null")
        else:
            return self._draft(line, message, role)
        return None

    def _draft(self, line: Line, message: Entry, role: str) -> Draft:
        content = content_of(message.get("content"), line)
        match role:
            case "tool":
                return Draft("tool", content, call_id=text_of(message, "tool_call_id"))
            case "function":  # the old form knows only the tool's name
                waiting = self._legacy.get(text_of(message, "name"))
                return Draft("tool", content, call_id=waiting.popleft() if waiting else "")
            case "user":
                return Draft("user", content, injected=message.get("injected") is True)
            case "assistant":
                if any(message.get(key) for key in _THINKING):
                    leave_out_thinking(line)
                content.append(text_of(message, "refusal"))
                return Draft("assistant", content, self._calls(line, message))
        return Draft("system", content)

    def _calls(self, line: Line, message: Entry) -> list[DraftCall]:
        calls: list[DraftCall] = []
        for value in list_of(message, "tool_calls"):
            function, custom = mapping_of(value, "function"), mapping_of(value, "custom")
            identifier = text_of(value, "id") or self._new_id()
            if function:
                arguments = as_text(function.get("arguments"))
                calls.append(DraftCall(identifier, text_of(function, "name"), arguments))
            elif custom:
                arguments = as_text({"input": as_text(custom.get("input"))})
                calls.append(DraftCall(identifier, text_of(custom, "name"), arguments))
            else:
                line.leave_out("tool call", "expected an object with function or custom")
        legacy = mapping_of(message, "function_call")
        if legacy and not calls:
            name = text_of(legacy, "name")
            calls.append(DraftCall(self._new_id(), name, as_text(legacy.get("arguments"))))
            self._legacy.setdefault(name, deque()).append(calls[0].id)
        return calls

    def _new_id(self) -> str:
        self._count += 1
        return f"call-{self._count}"


class ValueThread:
    """A conversation of messages or items: each has a line, or a value holds many of them."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.of_lines = False
        """Whether each message has a line."""
        self._begun = False

    def begin(self, value: Value, *, whole: bool) -> None:
        """Take note of how the conversation is held; the first value that can be read decides."""
        if not value.problem and not self._begun:
            self._begun, self.of_lines = True, not whole
            first = self.of_lines or value.place in ("document", "line 1")
            self.conversation.part = "" if first else value.place

    def enter(self, value: Value, place: str, name: str) -> Line:
        """Enter one of the messages that a value holds."""
        line = self.conversation.ledger.enter(f"{value.place}, {place}", name)
        if value.replaced:
            line.leave_out("bytes", REPLACED_BYTES)
        return line


class _Thread(ValueThread):
    """Reads one conversation."""

    def __init__(self) -> None:
        super().__init__(Conversation("openai-chat", "OpenAI chat messages"))
        self._messages = ChatMessages(self.conversation)

    def feed(self, value: Value) -> None:
        """Enter a value, and take what it holds."""
        content, ledger = value.value, self.conversation.ledger
        whole = isinstance(content, list) or _is_frame(content)
        self.begin(value, whole=whole)
        if value.problem or not whole:
            line = entered(ledger, value, _name(content))
            if not value.problem:
                self._messages.read(line, content)
            return
        messages, frame = content, None
        if not isinstance(content, list):
            messages, frame = _messages(content), entered(ledger, value, "conversation")
        for number, message in enumerate(messages):
            self._messages.read(self.enter(value, f"message {number}", _name(message)), message)
        if frame is not None:
            self._frame(frame, content)

    def _frame(self, line: Line, frame: Entry) -> None:
        """Take what an object with messages says beside them."""
        conversation = self.conversation
        line.skip("what stands around the messages, which are entered one by one")
        named = (text_of(frame, key) for key in _SESSION_KEYS)
        conversation.session = next(filter(None, named), "")
        conversation.model = text_of(frame, "model")
        conversation.context_length = count_of(frame, "context_length") or None
        functions = [{"type": "function", "function": item} for item in list_of(frame, "functions")]
        take_tools(conversation, [*list_of(frame, "tools"), *functions])
        for key in _SET_ANEW:
            if frame.get(key):
                line.leave_out(key, "of a fixture; it is set anew where the import is written")
        if earlier := text_of(frame, "source", "origin"):
            conversation.origin = origin(conversation.origin, "from", earlier)
        for value in list_of(frame, "recorded_compactions"):
            self._recorded(line, value)

    def _recorded(self, line: Line, value: Any) -> None:
        messages, cut = self._messages.by_place, count_of(value, "cut")
        named = text_of(value, "kind") if "kind" in mapping_of(value) else "summary"
        kind = next((known for known in _KINDS if known == named), None)
        if not cut or cut > len(messages) or kind is None:
            line.leave_out("recorded compaction", "its cut or kind is none that a fixture can have")
            return
        before = (draft for draft in reversed(messages[:cut]) if draft is not None)
        state = value.get("state")
        self.conversation.compact(
            after=next(before, None),
            kind=kind,
            trigger=text_of(value, "trigger"),
            summary=text_of(value, "summary"),
            tokens_before=count_of(value, "tokens_before"),
            tokens_after=count_of(value, "tokens_after"),
            state=self._state(state) if isinstance(state, list) else None,
        )

    def _state(self, values: list[Any]) -> list[Draft]:
        """Return the messages of a state: those of the conversation are given by their index."""
        reader, known = ChatMessages(self.conversation), self._messages.by_place
        found: list[Draft | None] = []
        for value in values:
            if isinstance(value, dict):
                found.append(reader.draft_of(nowhere(), value))
            elif isinstance(value, int) and 0 <= value < len(known):
                found.append(known[value])
        return [draft for draft in found if draft is not None]

    def finish(self) -> Conversation:
        self.conversation.name_missing()
        return self.conversation


def _name(message: Any) -> str:
    return f"message:{label(text_of(message, 'role'))}"


def _messages(frame: Entry) -> list[Any]:
    """Return the messages of an object, with the answer if it is a request with its response."""
    response = mapping_of(frame, "response") or frame
    answers = [mapping_of(choice, "message") for choice in list_of(response, "choices")[:1]]
    return [*frame["messages"], *filter(None, answers)]


def _is_frame(value: Any) -> bool:
    return isinstance(mapping_of(value).get("messages"), list)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and "type" not in value


def _is_chat(value: Any) -> bool:
    """Return whether a value is a chat message, and not one of another provider or agent."""
    if not _is_message(value):
        return False
    if "content" not in value and not (value.keys() & {"tool_calls", "function_call"}):
        return False  # its words stand elsewhere: it is another agent's message
    content = value.get("content")
    if isinstance(content, list):
        return all(text_of(part, "type") in _CHAT_PARTS for part in content)
    if value["role"] == "tool" and not text_of(value, "tool_call_id"):
        return False
    return isinstance(content, str | None)


def _place(value: Any, thread: _Thread | None) -> Place:
    if isinstance(value, list):
        return "opens" if any(_is_message(item) for item in value) else "foreign"
    if _is_frame(value):
        return "opens"
    if _is_message(value):
        return "belongs" if thread is not None and thread.of_lines else "opens"
    return "foreign"


def _recognise(source: SourceFile) -> str | None:
    values = source.head or [source.document]
    seen = "a message on each line"
    if _is_frame(values[0]):
        values, seen = values[0]["messages"], "an object with messages"
    elif isinstance(values[0], list):
        values, seen = values[0], "a list of messages"
    roles = {text_of(value, "role") for value in values}
    if not all(map(_is_chat, values)) or not roles & {"user", "assistant"}:
        return None
    return f"{seen} with role and content: {', '.join(sorted(roles))}"


def _read(source: SourceFile) -> Iterator[Conversation]:
    expected = "OpenAI chat messages (an object with messages, a list, or one on each line)"
    return threads(source, expected=expected, place=_place, new=_Thread)


FORMAT = Format("openai-chat", "OpenAI chat messages (.json, .jsonl)", _recognise, _read)
