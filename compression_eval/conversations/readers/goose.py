"""Sessions of Goose: its database, an exported session, and the JSON Lines of older versions.

All hold the same messages. Each says whether the user and whether the agent sees it. A compaction
hides everything before it from the agent and adds, for the agent alone, the summary as a user
message, a note in the assistant's name, and the user's last message once more.
"""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft, DraftCall, Image
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.sqlite_store import columns, has_tables, opened
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    SUMMARY_STANDS_IN,
    entered,
    identifier,
    leave_out_thinking,
    origin,
)
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile
from compression_eval.fixtures.errors import DataError

_EXPECTED = "a session of Goose: sessions.db, an export, or lines with messages"
_TABLES = ("sessions", "messages")
_CALLS = ("toolRequest", "frontendToolRequest")
_THINKING = ("thinking", "redactedThinking", "reasoning")
_FOR_USERS = (
    "systemNotification", "conversationCompacted", "contextLengthExceeded",
    "summarizationRequested", "toolConfirmationRequest", "actionRequired",
)  # fmt: skip
_MARKS = {"toolRequest", "toolResponse"}
_RECORDED = "a compaction, recorded beside the messages"


class _Session:
    """A session that is being read."""

    def __init__(self, info: dict[str, Any]) -> None:
        kind = text_of(info, "session_type")
        model = info.get("model_config_json")
        self.conversation = Conversation(
            "goose",
            "Goose session",
            text_of(info, "id"),
            Ledger(),
            part="" if kind in ("", "user", "scheduled") else kind.replace("_", "-"),
            model=origin(text_of(_decoded(model), "model_name")),
            caveats=[NO_SYSTEM_PROMPT, NO_TOOLS],
        )
        self.messages = 0
        self._summary: tuple[Draft, Line] | None = None
        """A message that only the agent sees: a summary, if an answer of that kind follows."""
        self._open: Compaction | None = None
        """A compaction whose last part may be the next message."""

    def feed(self, line: Line, message: Any) -> None:
        """Take a message of the session."""
        role, content = text_of(message, "role"), list_of(message, "content")
        if role not in ("user", "assistant") or not isinstance(message.get("content"), list):
            line.is_unknown("expected the role user or assistant, and content as a list")
            return
        self.messages += 1
        metadata = mapping_of(message, "metadata")
        hidden = metadata.get("userVisible") is False
        drafts = [draft for draft in _drafts(role, content, line) if _says_anything(draft)]
        if hidden and len(drafts) == 1 and drafts[0].role == "user":
            self._settle()
            self._summary = drafts[0], line
        elif hidden and self._summary and [draft.role for draft in drafts] == ["assistant"]:
            self._compact(drafts[0], line)
        elif metadata.get("agentVisible") is False and not drafts:
            line.skip("shown to the user, not to the model")
        else:
            self._settle()
            self._say(drafts, line)

    def _compact(self, note: Draft, line: Line) -> None:
        """Record a compaction, or open the conversation with a summary of what is not there."""
        if self._summary is None:
            return
        (summary, head), self._summary = self._summary, None
        summary.injected = True
        drafts = self.conversation.drafts
        if not drafts:
            self.conversation.caveats.append(SUMMARY_STANDS_IN)
            drafts += [head.became(summary), line.became(note)]
            return
        head.skip(_RECORDED)
        line.skip("what a compaction put behind its summary, recorded beside the messages")
        self._open = Compaction(after=drafts[-1], summary=summary.text, state=[summary, note])
        self.conversation.compactions.append(self._open)

    def _say(self, drafts: list[Draft], line: Line) -> None:
        compaction, self._open = self._open, None
        known = self.conversation.drafts
        if compaction is not None and [draft.role for draft in drafts] == ["user"]:
            last = next(
                (d for d in reversed(known) if d.role == "user" and d.text == drafts[0].text), None
            )
            if last is not None and compaction.state is not None:
                line.merge(last)
                compaction.state.append(last)
                return
        if not drafts:
            line.skip("an empty message")
        known.extend(line.became(draft) for draft in drafts)

    def _settle(self) -> None:
        """Take a message that only the agent sees, and that no compaction made, as what it is.

        The user's last message is hidden when a compaction repeats it.
        """
        if self._summary is not None:
            (draft, line), self._summary = self._summary, None
            self._say([draft], line)

    def finish(self) -> Conversation:
        """Return the conversation."""
        self._settle()
        return self.conversation


def _drafts(role: str, content: list[Any], line: Line) -> list[Draft]:
    """Return the messages that one of the session is: results first, then what was said."""
    results: list[Draft] = []
    said = Draft("assistant" if role == "assistant" else "user")
    for part in content:
        kind = text_of(part, "type")
        if kind in _CALLS:
            said.calls.append(_call(part, line))
        elif kind == "toolResponse":
            results.append(_result(part, line))
        elif kind in _THINKING:
            leave_out_thinking(line)
        elif kind in _FOR_USERS:
            line.leave_out(kind, "shown to the user, not to the model")
        else:
            said.content.extend(_piece(part, line))
    return [*results, said]


def _says_anything(draft: Draft) -> bool:
    return draft.role == "tool" or bool(draft.calls or draft.content)


def _call(part: dict[str, Any], line: Line) -> DraftCall:
    """Return a call; one that could not be understood has its error for arguments."""
    outcome = mapping_of(part, "toolCall")
    call = mapping_of(outcome, "value")
    if not call:
        line.leave_out("tool call", "it was not understood and not carried out")
    return DraftCall(
        identifier(part, "id"), text_of(call, "name"), as_text(call.get("arguments") or {})
    )


def _result(part: dict[str, Any], line: Line) -> Draft:
    outcome = mapping_of(part, "toolResult")
    value = outcome.get("value")
    items = list_of(value, "content") if isinstance(value, dict) else value
    found: list[str | Image] = []
    for item in items if isinstance(items, list) else []:
        audience = list_of(mapping_of(item, "annotations"), "audience")
        if audience and "assistant" not in audience:
            line.leave_out("content for the user", "it was not shown to the model")
        else:
            found.extend(_piece(item, line))
    if text_of(outcome, "error"):
        found.append(text_of(outcome, "error"))
    return Draft("tool", found, call_id=identifier(part, "id"))


def _piece(part: Any, line: Line) -> list[str | Image]:
    """Return a text or an image; what tools of MCP return has the same form."""
    kind = text_of(part, "type")
    if kind == "text":
        return [text_of(part, "text")]
    if kind == "image":
        media_type, data = text_of(part, "mimeType"), text_of(part, "data")
        return [Image(media_type, f"data:{media_type};base64,{data}" if data else "")]
    resource = mapping_of(part, "resource")
    if kind == "resource" and text_of(resource, "text"):
        return [text_of(resource, "text")]
    line.leave_out(f"content {label(kind)}", "only texts and images are carried over")
    return []


def _decoded(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def _is_own(value: Any) -> bool:
    """Return whether a value is a message that only Goose writes."""
    if text_of(value, "role") not in ("user", "assistant"):
        return False
    if isinstance(mapping_of(value, "metadata").get("agentVisible"), bool):
        return True
    return any(
        text_of(part, "type") in _MARKS
        and (mapping_of(part, "toolCall") or mapping_of(part, "toolResult"))
        for part in list_of(value, "content")
    )


def _is_head(value: Any) -> bool:
    return bool(text_of(value, "working_dir")) and "role" not in value


def _recognise(source: SourceFile) -> str | None:
    if source.magic.startswith(b"SQLite format 3"):
        found = has_tables(source.path, _TABLES, column="content_json")
        return "an SQLite database with messages that have a content_json" if found else None
    if any(map(_is_own, source.head)):
        return "lines with messages that have a toolRequest or agentVisible"
    document = source.document
    if _is_head(document) and any(map(_is_own, list_of(document, "conversation"))):
        return "a JSON object with working_dir and a conversation"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    if source.magic.startswith(b"SQLite format 3"):
        with opened(source.path) as connection:
            yield from _database(connection, source)
        return
    document = source.document
    if isinstance(document, dict) and "conversation" in document:
        session = _Session(document)
        messages = list_of(document, "conversation")
        for number, message in enumerate(messages, 1):
            place = f"message {number}"
            line = session.conversation.ledger.enter(place, label(text_of(message, "role")))
            session.feed(line, message)
        if source.document_replaced:
            session.conversation.caveats.append(REPLACED_BYTES)
    else:
        session = _Session({})
        for value in source.values():
            line = entered(
                session.conversation.ledger, value, label(text_of(value.value, "role") or "head")
            )
            if _is_head(value.value):
                line.skip("the header of the session")
            elif not value.problem:
                session.feed(line, value.value)
    if not session.messages:
        raise DataError(f"{source.path}: expected {_EXPECTED}, found no message")
    yield session.finish()


def _database(connection: sqlite3.Connection, source: SourceFile) -> Iterator[Conversation]:
    connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
    there = {table: columns(connection, table) for table in _TABLES}
    wanted = {"sessions": {"id"}, "messages": {"id", "session_id", "role", "content_json"}}
    for table, names in wanted.items():
        if missing := sorted(names - there[table]):
            raise DataError(
                f"{source.path}: expected the database of Goose, {table} has no column {missing[0]}"
            )
    fields = [
        name for name in ("id", "session_type", "model_config_json") if name in there["sessions"]
    ]
    for row in connection.execute(f"SELECT {', '.join(fields)} FROM sessions").fetchall():  # noqa: S608
        session = _Session(dict(row))
        for place, message, problem in _rows(connection, row["id"], there["messages"]):
            line = session.conversation.ledger.enter(place, label(text_of(message, "role")))
            if problem:
                line.skip(problem)
            else:
                session.feed(line, message)
        if session.messages:
            yield session.finish()


def _rows(
    connection: sqlite3.Connection, session: Any, there: set[str]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield place, message and problem of every message; what is too long is not read."""
    short = f"CASE WHEN length(content_json) <= {MAX_LINE_BYTES} THEN content_json END AS content"
    metadata = "metadata_json" if "metadata_json" in there else "NULL AS metadata_json"
    query = f"SELECT id, role, {short}, {metadata} FROM messages WHERE session_id IS ? ORDER BY id"  # noqa: S608
    for row in connection.execute(query, (session,)):
        content = _decoded(row["content"])
        message = {
            "role": row["role"],
            "content": content,
            "metadata": _decoded(row["metadata_json"]),
        }
        problem = "" if isinstance(content, list) else "its content is not a JSON list"
        if row["content"] is None:
            problem = f"it has no content, or more than {MAX_LINE_BYTES // 2**20} MiB"
        yield f"message row {row['id']}", message, problem


FORMAT = Format(
    name="goose",
    title="Goose (sessions.db, exports, JSONL)",
    recognise=_recognise,
    read=_read,
)
