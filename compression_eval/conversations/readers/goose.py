"""Sessions of Goose: its database, an exported session, and the JSON Lines of older versions.

All hold the same messages. Each says whether the user and whether the agent sees it. A compaction
hides everything before it from the agent and adds, for the agent alone, the summary as a user
message, a note in the assistant's name, and the user's last message once more.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import (
    RECORDED,
    Compaction,
    Content,
    Conversation,
    Draft,
    DraftCall,
)
from compression_eval.conversations.fields import (
    as_text,
    from_json,
    identifier,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
    value_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    SUMMARY_STANDS_IN,
    Entry,
    Reader,
    entered,
    leave_out_thinking,
    mcp_content,
    with_replaced,
)
from compression_eval.conversations.readers.sqlite import (
    TOO_LONG,
    has_tables,
    is_database,
    opened,
    tables,
)
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile, Value
from compression_eval.fixtures.errors import DataError

_FOR_USERS = (
    "systemNotification", "conversationCompacted", "contextLengthExceeded",
    "summarizationRequested", "toolConfirmationRequest", "actionRequired",
)  # fmt: skip


class _Session(Reader):
    """A session that is being read."""

    format = "goose"
    key = "role"

    def __init__(self, info: Entry) -> None:
        super().__init__("Goose session", text_of(info, "id"))
        kind = text_of(info, "session_type")
        if kind not in ("user", "scheduled"):
            self.conversation.part = kind.replace("_", "-")
        model = from_json(info.get("model_config_json"))
        self.conversation.model = origin(text_of(model, "model_name"))
        self._summary: tuple[Draft, Line] | None = None
        """A message that only the agent sees: a summary, if an answer of that kind follows."""
        self._open: Compaction | None = None
        """A compaction whose last part may be the next message."""

    def take(self, line: Line, entry: Any) -> None:
        role, content = text_of(entry, "role"), value_of(entry, "content")
        if role not in ("user", "assistant") or not isinstance(content, list):
            line.is_unknown("expected the role user or assistant, and content as a list")
            return
        self.recognised = True
        hidden = value_of(entry, "metadata", "userVisible") is False
        drafts = [draft for draft in _drafts(role, content, line) if _says_anything(draft)]
        roles = [draft.role for draft in drafts]
        if hidden and roles == ["user"]:
            self._settle()
            self._summary = drafts[0], line
        elif hidden and self._summary and roles == ["assistant"]:
            self._compact(*self._summary, drafts[0], line)
        elif value_of(entry, "metadata", "agentVisible") is False and not drafts:
            line.skip("shown to the user, not to the model")
        else:
            self._settle()
            self._say(drafts, line)

    def _compact(self, summary: Draft, head: Line, note: Draft, line: Line) -> None:
        """Record a compaction, or open the conversation with a summary of what is not there."""
        self._summary = None
        summary.injected = True
        if not self.conversation.drafts:
            self.conversation.caveats.append(SUMMARY_STANDS_IN)
            self.conversation.say(head, summary)
            self.conversation.say(line, note)
            return
        head.skip(RECORDED)
        line.skip("what a compaction put behind its summary, recorded beside the messages")
        self._open = self.conversation.compact(
            kind="summary", summary=summary.text, state=[summary, note]
        )

    def _say(self, drafts: list[Draft], line: Line) -> None:
        compaction, self._open = self._open, None
        if compaction is not None and [draft.role for draft in drafts] == ["user"]:
            users = (d for d in reversed(self.conversation.drafts) if d.role == "user")
            last = next((draft for draft in users if draft.text == drafts[0].text), None)
            if last is not None and compaction.state is not None:
                line.merge(last)
                compaction.state.append(last)
                return
        if not drafts:
            line.skip("an empty message")
        self.conversation.say(line, *drafts)

    def _settle(self) -> None:
        """Take a message that only the agent sees, and that no compaction made, as what it is.

        The user's last message is hidden when a compaction repeats it.
        """
        if self._summary is not None:
            (draft, line), self._summary = self._summary, None
            self._say([draft], line)

    def finish(self) -> Conversation:
        self._settle()
        return super().finish()


def _drafts(role: str, content: list[Any], line: Line) -> list[Draft]:
    """Return the messages that one of the session is: results first, then what was said."""
    results: list[Draft] = []
    said = Draft("assistant" if role == "assistant" else "user")
    for part in content:
        match text_of(part, "type"):
            case "toolRequest" | "frontendToolRequest":
                call = mapping_of(part, "toolCall", "value")
                if not call:
                    line.leave_out("tool call", "it was not understood and not carried out")
                arguments = as_text(call.get("arguments") or {})
                said.calls.append(
                    DraftCall(identifier(part, "id"), text_of(call, "name"), arguments)
                )
            case "toolResponse":
                shown = _result(mapping_of(part, "toolResult"), line)
                results.append(Draft("tool", shown, call_id=identifier(part, "id")))
            case "reasoning":
                leave_out_thinking(line)
            case kind if kind in _FOR_USERS:
                line.leave_out(kind, "shown to the user, not to the model")
            case _:
                said.content.extend(_piece(part, line))
    return [*results, said]


def _says_anything(draft: Draft) -> bool:
    return draft.role == "tool" or bool(draft.calls or draft.content)


def _result(outcome: Entry, line: Line) -> Content:
    value = outcome.get("value")
    items = list_of(value, "content") if isinstance(value, dict) else list_of(value)
    found: Content = []
    for item in items:
        audience = list_of(item, "annotations", "audience")
        if audience and "assistant" not in audience:
            line.leave_out("content for the user", "it was not shown to the model")
        else:
            found.extend(_piece(item, line))
    return [*found, *filter(None, [text_of(outcome, "error")])]


def _piece(part: Any, line: Line) -> Content:
    if text_of(part, "type") == "resource" and text_of(part, "resource", "text"):
        return [text_of(part, "resource", "text")]
    return mcp_content([part], line, (), "content", "only texts and images are carried over")


def _is_own(value: Any) -> bool:
    """Return whether a value is a message that only Goose writes."""
    if text_of(value, "role") not in ("user", "assistant"):
        return False
    if isinstance(value_of(value, "metadata", "agentVisible"), bool):
        return True
    return any(
        text_of(part, "type") in ("toolRequest", "toolResponse")
        and (mapping_of(part, "toolCall") or mapping_of(part, "toolResult"))
        for part in list_of(value, "content")
    )


def _is_head(value: Any) -> bool:
    return bool(text_of(value, "working_dir")) and "role" not in value


def _recognise(source: SourceFile) -> str | None:
    if is_database(source):
        found = has_tables(source.path, ("sessions", "messages"), column="content_json")
        return "an SQLite database with messages that have a content_json" if found else None
    if any(map(_is_own, source.head)):
        return "lines with messages that have a toolRequest or agentVisible"
    document = source.document
    if _is_head(document) and any(map(_is_own, list_of(document, "conversation"))):
        return "a JSON object with working_dir and a conversation"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    if is_database(source):
        with opened(source.path) as connection:
            yield from _database(connection, source)
        return
    document = source.document
    if isinstance(document, dict) and "conversation" in document:
        session = _Session(document)
        for number, message in enumerate(list_of(document, "conversation"), 1):
            session.feed(Value(f"message {number}", message))
        with_replaced(session.conversation, source)
    else:
        session = _Session({})
        for value in source.values():
            name = label(text_of(value.value, "role") or "head")
            line = entered(session.conversation.ledger, value, name)
            if _is_head(value.value):
                line.skip("the header of the session")
            elif not value.problem:
                session.take(line, value.value)
    if not session.recognised:
        raise DataError(
            f"{source.path}: expected a session of Goose: sessions.db, an export, or lines with "
            "messages, found no message"
        )
    yield session.finish()


def _database(connection: sqlite3.Connection, source: SourceFile) -> Iterator[Conversation]:
    wanted = {"sessions": {"id"}, "messages": {"id", "session_id", "role", "content_json"}}
    there = tables(connection, source.path, "Goose", wanted)
    names = ("id", "session_type", "model_config_json")
    fields = ", ".join(name for name in names if name in there["sessions"])
    metadata = "metadata_json" if "metadata_json" in there["messages"] else "NULL"
    query = (
        f"SELECT id, role, CASE WHEN length(content_json) <= {MAX_LINE_BYTES} "  # noqa: S608
        f"THEN content_json END AS content, {metadata} AS metadata "
        "FROM messages WHERE session_id IS ? ORDER BY id"
    )
    for row in connection.execute(f"SELECT {fields} FROM sessions").fetchall():  # noqa: S608
        session = _Session(dict(row))
        for stored in connection.execute(query, (row["id"],)):
            content = from_json(stored["content"])
            message = {
                "role": stored["role"],
                "content": content,
                "metadata": from_json(stored["metadata"]),
            }
            line = session.conversation.ledger.enter(
                f"message row {stored['id']}", session.name_of(message)
            )
            if stored["content"] is None:
                line.skip(f"it has no content, or {TOO_LONG}")
            elif not isinstance(content, list):
                line.skip("its content is not a JSON list")
            else:
                session.take(line, message)
        if session.recognised:
            yield session.finish()


FORMAT = Format("goose", "Goose (sessions.db, exports, JSONL)", _recognise, _read)
