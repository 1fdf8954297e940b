"""What ``claude --output-format stream-json`` prints, as CI leaves it: lines, or one JSON list.

The messages are those of a session's own lines, without the tree that links these, and as a rule
without the prompt, which was an argument. So each agent's messages are read in their order, by the
reader of sessions.
"""

import re
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.claude_code_lines import Record, record
from compression_eval.conversations.readers.claude_code_thread import ThreadReader
from compression_eval.conversations.readers.claude_code_tree import split_threads
from compression_eval.conversations.readers.values import give_task, origin
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_SEEN = "messages with session_id and parent_tool_use_id"
_SPEAKS = ("user", "assistant")


def _values(source: SourceFile) -> Iterator[Value]:
    """Yield the messages, whether each has a line or all stand in a list."""
    if isinstance(source.document, list):
        for number, value in enumerate(source.document, 1):
            yield Value(f"message {number}", value, replaced=source.document_replaced)
    else:
        yield from source.values()


def _is_message(value: Any) -> bool:
    return (
        text_of(value, "type") in _SPEAKS
        and isinstance(value.get("message"), dict)
        and bool(text_of(value, "session_id"))
        and "parent_tool_use_id" in value
    )


def _is_head(value: Any) -> bool:
    return (
        text_of(value, "type") == "system"
        and text_of(value, "subtype") == "init"
        and bool(text_of(value, "session_id"))
        and {"tools", "mcp_servers"} <= value.keys()
    )


def _recognise(source: SourceFile) -> str | None:
    values = source.head
    if isinstance(source.document, list):
        values = source.document[:60]
    if any(_is_message(value) for value in values):
        return _SEEN
    return "a line of type system and subtype init" if any(map(_is_head, values)) else None


class _Lines:
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
        agent = text_of(value, "parent_tool_use_id")
        kind = text_of(value, "type")
        fields = {_camel(key): part for key, part in value.items() if key != "message"}
        if "compactMetadata" in fields:
            fields["compactMetadata"] = _renamed(fields["compactMetadata"])
        if isinstance(value.get("message"), dict):
            fields["message"] = value["message"]
        identifier = text_of(value, "uuid") or f"line-{number}"
        fields |= {
            "uuid": identifier,
            "parentUuid": self._last.get(agent),
            "sessionId": text_of(value, "session_id"),
            "isSidechain": bool(agent),
            "agentId": agent,
        }
        if kind in _SPEAKS:
            self.spoke = self.spoke or "message" in fields
            after_boundary = self._boundary.get(agent, False)
            if kind == "user" and after_boundary and value.get("isSynthetic") is True:
                fields["isCompactSummary"] = True
            self._boundary[agent] = False
        made = record(Value(item.place, fields, replaced=item.replaced))
        if "tool_use_result" in value:
            made.display_copy = True
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


def _read(source: SourceFile) -> Iterator[Conversation]:
    lines = _Lines()
    records = [lines.line(number, item) for number, item in enumerate(_values(source), 1)]
    if not lines.spoke:
        raise DataError(f"{source.path}: expected {_SEEN}; found no message")
    done = []
    for thread in split_threads(records):
        conversation = ThreadReader(thread).read()
        conversation.format = FORMAT.name
        conversation.origin = lines.product or "Claude Code stream-json"
        done.append(conversation)
    calls = {
        call.id: call.arguments
        for conversation in done
        for draft in conversation.drafts
        for call in draft.calls
    }
    for conversation in done:
        give_task(conversation, calls.get(conversation.part.removeprefix("agent-"), ""))
        yield conversation


FORMAT = Format(
    name="claude-code-stream",
    title="Claude Code --output-format stream-json",
    recognise=_recognise,
    read=_read,
)
