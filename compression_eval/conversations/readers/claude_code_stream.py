"""What ``claude --output-format stream-json`` prints, as CI leaves it: lines, or one JSON list.

The messages are those of a session's own lines, without the tree that links these, and as a rule
without the prompt, which was an argument. So each agent's messages are read in their order, by the
reader of sessions.
"""

import re
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import list_of, origin, text_of, value_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import call_arguments, give_task
from compression_eval.conversations.readers.claude_code import ThreadReader
from compression_eval.conversations.readers.claude_code_tree import (
    SPEAKS,
    Record,
    record,
    split_threads,
)
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_SEEN = "messages with session_id and parent_tool_use_id"
_HEAD = 60
"""Messages that are looked at to tell the format."""


def _is_message(value: Any) -> bool:
    return (
        text_of(value, "type") in SPEAKS
        and isinstance(value_of(value, "message"), dict)
        and bool(text_of(value, "session_id"))
        and "parent_tool_use_id" in value
    )


def _is_head(value: Any) -> bool:
    return (
        (text_of(value, "type"), text_of(value, "subtype")) == ("system", "init")
        and bool(text_of(value, "session_id"))
        and {"tools", "mcp_servers"} <= value.keys()
    )


def _recognise(source: SourceFile) -> str | None:
    values = list_of(source.document)[:_HEAD] or source.head
    if any(map(_is_message, values)):
        return _SEEN
    return "a line of type system and subtype init" if any(map(_is_head, values)) else None


class _Stream:
    """Turns what was printed into lines of a session."""

    def __init__(self) -> None:
        self.spoke = False
        self.product = ""
        self._last: dict[str, str] = {}
        """The uuid of each agent's last message; the main agent's name is empty."""
        self._boundary: dict[str, bool] = {}
        """Whether an agent's last message is the boundary of a compaction."""

    def line(self, number: int, item: Value) -> Record:
        """Return a message as a line that follows its agent's last one."""
        value = item.value
        if not isinstance(value, dict):
            return record(item)
        if _is_head(value):
            name = "Qwen Code" if "qwen_code_version" in value else "Claude Code"
            version = text_of(value, "claude_code_version") or text_of(value, "qwen_code_version")
            self.product = self.product or origin(name, version, "stream-json")
        agent, kind = text_of(value, "parent_tool_use_id"), text_of(value, "type")
        identifier = text_of(value, "uuid") or f"line-{number}"
        fields = {_camel(key): part for key, part in value.items() if key != "message"}
        if "compactMetadata" in fields:
            fields["compactMetadata"] = _renamed(fields["compactMetadata"])
        if isinstance(value.get("message"), dict):
            fields["message"] = value["message"]
        fields |= {
            "uuid": identifier,
            "parentUuid": self._last.get(agent),
            "sessionId": text_of(value, "session_id"),
            "isSidechain": bool(agent),
            "agentId": agent,
        }
        if kind in SPEAKS:
            self.spoke = self.spoke or "message" in fields
            synthetic = kind == "user" and value.get("isSynthetic") is True
            if synthetic and self._boundary.get(agent, False):
                fields["isCompactSummary"] = True
            self._boundary[agent] = False
        made = record(Value(item.place, fields, replaced=item.replaced))
        made.display_copy = made.display_copy or "tool_use_result" in value
        if made.boundary:
            self._boundary[agent] = True
        if made.linked:
            self._last[agent] = identifier
        return made


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _renamed(value: Any) -> Any:
    """Return an object with the names that a session's own lines have."""
    if isinstance(value, dict):
        return {_camel(key): _renamed(part) for key, part in value.items()}
    return value


def _printed(source: SourceFile) -> Iterator[Value]:
    """Yield the messages, whether each has a line or all stand in a list."""
    if isinstance(source.document, list):
        for number, value in enumerate(source.document, 1):
            yield Value(f"message {number}", value, replaced=source.document_replaced)
    else:
        yield from source.values()


def _read(source: SourceFile) -> Iterator[Conversation]:
    stream = _Stream()
    records = [stream.line(number, item) for number, item in enumerate(_printed(source), 1)]
    if not stream.spoke:
        raise DataError(f"{source.path}: expected {_SEEN}; found no message")
    done = [ThreadReader(thread).read() for thread in split_threads(records)]
    calls = call_arguments(done)
    for conversation in done:
        conversation.format = FORMAT.name
        conversation.origin = stream.product or "Claude Code stream-json"
        give_task(conversation, calls.get(conversation.part.removeprefix("agent-"), ""))
        yield conversation


FORMAT = Format("claude-code-stream", "Claude Code --output-format stream-json", _recognise, _read)
