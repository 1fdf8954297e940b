"""What ``claude --output-format stream-json`` prints, as CI leaves it: lines, or one JSON list.

The messages are those of a session's own lines, without the tree that links these, and as a rule
without the prompt, which was an argument. So each agent's messages are read in their order, by the
reader of sessions.
"""

import re
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import Json, origin
from compression_eval.conversations.readers.base import Format, call_arguments, sign
from compression_eval.conversations.readers.claude_code import read_thread
from compression_eval.conversations.readers.claude_code_tree import SPEAKS, Record, split
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.errors import DataError

_SEEN = "messages with session_id and parent_tool_use_id"
_MAX_HEAD = 60
"""Messages that are looked at to tell the format."""


def _is_message(value: Json) -> bool:
    speaks = value.text("type") in SPEAKS and isinstance(value.at("message"), dict)
    return speaks and bool(value.text("session_id")) and "parent_tool_use_id" in value


def _is_head(value: Json) -> bool:
    named = (value.text("type"), value.text("subtype")) == ("system", "init")
    return named and bool(value.text("session_id")) and {"tools", "mcp_servers"} <= value.keys()


def _recognise(source: SourceFile) -> str | None:
    listed = source.document[:_MAX_HEAD] if isinstance(source.document, list) else []
    values = listed or source.head
    head = (_is_head, "a line of type system and subtype init")
    return sign(values, (_is_message, _SEEN)) or sign(values, head)


class _Stream:
    """Turns what was printed into lines of a session."""

    def __init__(self) -> None:
        self.product = ""
        self._last: dict[str, Record] = {}
        """Each agent's last message that is part of a session; the main agent's name is empty."""
        self._spoken: dict[str, Record] = {}
        """Each agent's last message of a user, of the model, or the boundary of a compaction."""

    def line(self, number: int, item: Value) -> Record:
        """Return a message as a line that follows its agent's last one."""
        if not isinstance(item.value, dict):
            return Record(item)
        value = Json(item.value)
        if _is_head(value):
            name = "Qwen Code" if "qwen_code_version" in value else "Claude Code"
            version = value.first("claude_code_version", "qwen_code_version")
            self.product = self.product or origin(name, version, "stream-json")
        agent, kind = value.text("parent_tool_use_id"), value.text("type")
        fields = {_camel(key): part for key, part in value.items() if key != "message"}
        if "compactMetadata" in fields:
            fields["compactMetadata"] = _renamed(fields["compactMetadata"])
        if isinstance(value.at("message"), dict):
            fields["message"] = value["message"]
        last, spoken = self._last.get(agent), self._spoken.get(agent)
        fields |= {
            "uuid": value.text("uuid") or f"line-{number}",
            "parentUuid": last.uuid if last else None,
            "sessionId": value.text("session_id"),
            "isSidechain": bool(agent),
            "agentId": agent,
        }
        if kind == "user" and value.at("isSynthetic") is True and spoken and spoken.boundary:
            fields["isCompactSummary"] = True
        made = Record(Value(item.place, fields, replaced=item.replaced))
        if made.boundary or kind in SPEAKS:
            self._spoken[agent] = made
        if made.linked:
            self._last[agent] = made
        return made


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _renamed(value: Any) -> Any:
    """Return an object with the names that a session's own lines have."""
    if isinstance(value, dict):
        return {_camel(key): _renamed(part) for key, part in value.items()}
    return value


def _read(source: SourceFile) -> Iterator[Conversation]:
    stream, printed = _Stream(), source.values()
    if isinstance(source.document, list):
        printed = (
            Value(f"message {number}", value, replaced=source.document_replaced)
            for number, value in enumerate(source.document, 1)
        )
    records = [stream.line(number, item) for number, item in enumerate(printed, 1)]
    if not any(record.speaks and "message" in record.entry for record in records):
        raise DataError(f"{source.path}: expected {_SEEN}; found no message")
    done = [read_thread(thread) for thread in split(records)]
    calls = call_arguments(done)
    for conversation in done:
        conversation.format = FORMAT.name
        conversation.origin = stream.product or "Claude Code stream-json"
        conversation.take_task(calls.get(conversation.part.removeprefix("agent-"), ""))
        yield conversation


FORMAT = Format("claude-code-stream", "Claude Code --output-format stream-json", _recognise, _read)
