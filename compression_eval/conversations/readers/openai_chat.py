"""OpenAI chat messages: fixtures of this project, ``{"messages": […]}``, lists, and lines."""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger
from compression_eval.conversations.readers.chat_frame import take_frame
from compression_eval.conversations.readers.chat_messages import ROLES, MessageReader
from compression_eval.conversations.readers.records import Place, threads
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    entered,
)
from compression_eval.conversations.sources import SourceFile, Value

_PARTS = ("text", "image_url", "input_audio", "file", "refusal")


def recognise(source: SourceFile) -> str | None:
    """Return what marks chat messages: roles, and contents that no other format has so."""
    values = source.head or [source.document]
    first = values[0]
    if isinstance(first, dict) and isinstance(first.get("messages"), list):
        values, seen = first["messages"], "an object with messages"
    elif isinstance(first, list):
        values, seen = first, "a list of messages"
    else:
        seen = "a message on each line"
    if not values or not all(_is_chat(value) for value in values):
        return None
    roles = {text_of(value, "role") for value in values}
    if not roles & {"user", "assistant"}:
        return None
    return f"{seen} with role and content: {', '.join(sorted(roles))}"


def read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a file.

    Messages on lines of their own are one conversation; every list, and every object with
    messages, is one of its own.

    Raises:
        DataError: There are no messages.
    """
    return threads(
        source,
        expected="OpenAI chat messages (an object with messages, a list, or one on each line)",
        place=_place,
        new=_Thread,
    )


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
        return all(text_of(part, "type") in _PARTS for part in content)
    if value["role"] == "tool" and not text_of(value, "tool_call_id"):
        return False
    return isinstance(content, str | None)


def _is_frame(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def _place(value: Any, thread: "_Thread | None") -> Place:
    if isinstance(value, list):
        return "opens" if any(_is_message(item) for item in value) else "foreign"
    if _is_frame(value):
        return "opens"
    if _is_message(value):
        return "belongs" if thread is not None and thread.of_lines else "opens"
    return "foreign"


class _Thread:
    """Reads one conversation."""

    def __init__(self) -> None:
        self.of_lines = False
        """Whether every line is a message."""
        self._conversation = Conversation("openai-chat", "OpenAI chat messages", "", Ledger())
        self._messages = MessageReader(self._conversation)
        self._begun = False

    def feed(self, value: Value) -> None:
        """Enter a value, and take what it holds."""
        content = value.value
        if value.problem or not (isinstance(content, list) or _is_frame(content)):
            line = entered(self._conversation.ledger, value, _kind(content))
            if not value.problem:
                self._begin(value.place, of_lines=True)
                self._messages.read(line, content)
        elif isinstance(content, list):
            self._begin(value.place)
            self._read(f"{value.place}, message", content, value)
        else:
            self._begin(value.place)
            line = entered(self._conversation.ledger, value, "conversation")
            self._read(f"{value.place}, message", _messages(content), value)
            take_frame(self._conversation, line, content, self._messages.by_place)

    def finish(self) -> Conversation:
        """Return the conversation."""
        conversation = self._conversation
        if not any(draft.role == "system" for draft in conversation.drafts):
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        if not conversation.tools:
            conversation.caveats.append(NO_TOOLS)
        return conversation

    def _begin(self, place: str, *, of_lines: bool = False) -> None:
        """Take note of how the conversation is held; the first value decides."""
        if not self._begun:
            self._begun, self.of_lines = True, of_lines
            first = of_lines or place in ("document", "line 1")
            self._conversation.part = "" if first else place

    def _read(self, where: str, messages: list[Any], value: Value) -> None:
        for number, message in enumerate(messages):
            line = self._conversation.ledger.enter(f"{where} {number}", _kind(message))
            if value.replaced:
                line.leave_out("bytes", REPLACED_BYTES)
            self._messages.read(line, message)


def _kind(message: Any) -> str:
    return f"message:{label(text_of(message, 'role'))}"


def _messages(frame: dict[str, Any]) -> list[Any]:
    """Return the messages of an object, with the answer if it is a request with its response."""
    response = mapping_of(frame, "response") or frame
    answers = [mapping_of(choice, "message") for choice in list_of(response, "choices")[:1]]
    return [*frame["messages"], *(answer for answer in answers if answer)]


FORMAT = Format(
    name="openai-chat",
    title="OpenAI chat messages (.json, .jsonl)",
    recognise=recognise,
    read=read,
)
