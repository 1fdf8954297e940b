"""Messages of OpenAI's chat API, turned into drafts one by one."""

from collections import deque
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft, DraftCall
from compression_eval.conversations.fields import as_text, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.openai_content import content_of
from compression_eval.conversations.readers.values import leave_out_thinking

ROLES = ("system", "developer", "user", "assistant", "tool", "function")

_THINKING = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")


class MessageReader:
    """Adds messages to a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self.by_place: list[Draft | None] = []
        """The drafts of all messages read so far; None for one that could not be read."""
        self._conversation = conversation
        self._legacy: dict[str, deque[str]] = {}
        """Ids given to calls of the old form that wait for their result, by the tool's name."""
        self._count = 0

    def read(self, line: Line, message: Any) -> None:
        """Add a message, and settle its line."""
        draft = self._draft(line, message)
        self.by_place.append(draft)
        if draft is not None:
            self._conversation.drafts.append(line.became(draft))

    def _draft(self, line: Line, message: Any) -> Draft | None:
        role = text_of(message, "role")
        if role not in ROLES:
            line.is_unknown(f"expected an object whose role is one of {', '.join(ROLES)}")
            return None
        if not isinstance(message.get("content"), str | list | None):
            line.is_unknown("expected content that is a text, a list of parts or null")
            return None
        content = content_of(message.get("content"), line)
        if role in ("tool", "function"):
            return Draft("tool", content, call_id=self._answered(message, role))
        if role != "assistant":
            injected = role == "user" and message.get("injected") is True
            return Draft("user" if role == "user" else "system", content, injected=injected)
        if any(message.get(key) for key in _THINKING):
            leave_out_thinking(line)
        refusal = text_of(message, "refusal")
        return Draft("assistant", [*content, refusal], calls=self._calls(line, message))

    def _answered(self, message: dict[str, Any], role: str) -> str:
        """Return the id of the call that a result answers; the old form knows only its name."""
        if role == "tool":
            return text_of(message, "tool_call_id")
        waiting = self._legacy.get(text_of(message, "name"))
        return waiting.popleft() if waiting else ""

    def _calls(self, line: Line, message: dict[str, Any]) -> list[DraftCall]:
        calls = [
            call
            for value in list_of(message, "tool_calls")
            if (call := self._call(line, value)) is not None
        ]
        legacy = mapping_of(message, "function_call")
        if legacy and not calls:
            name = text_of(legacy, "name")
            call = DraftCall(self._new_id(), name, as_text(legacy.get("arguments")))
            self._legacy.setdefault(name, deque()).append(call.id)
            calls.append(call)
        return calls

    def _call(self, line: Line, value: Any) -> DraftCall | None:
        """Return a call; one of a custom tool has one free text."""
        function, custom = mapping_of(value, "function"), mapping_of(value, "custom")
        identifier = text_of(value, "id") or self._new_id()
        if function:
            arguments = as_text(function.get("arguments"))
            return DraftCall(identifier, text_of(function, "name"), arguments)
        if custom:
            arguments = as_text({"input": as_text(custom.get("input"))})
            return DraftCall(identifier, text_of(custom, "name"), arguments)
        line.leave_out("tool call", "expected an object with function or custom")
        return None

    def _new_id(self) -> str:
        self._count += 1
        return f"call-{self._count}"
