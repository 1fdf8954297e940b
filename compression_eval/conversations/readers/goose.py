"""Sessions of Goose: its database, an exported session, and the JSON Lines of older versions.

All hold the same messages. Each says whether the user and whether the agent sees it. A compaction
hides everything before it from the agent and adds, for the agent alone, the summary as a user
message, a note in the assistant's name, and the user's last message once more.
"""

import sqlite3
from collections.abc import Iterator

from compression_eval.conversations.drafts import (
    SUMMARY_STANDS_IN,
    Compaction,
    Content,
    Conversation,
    Draft,
    Line,
)
from compression_eval.conversations.fields import Json, from_json, label, origin
from compression_eval.conversations.readers.base import (
    Format,
    Reader,
    mcp_content,
    sign,
    with_replaced,
)
from compression_eval.conversations.readers.sqlite import (
    LONGEST,
    has_tables,
    is_database,
    opened,
    short,
    tables,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.errors import DataError

_FOR_USERS = (
    "systemNotification",
    "conversationCompacted",
    "contextLengthExceeded",
    "summarizationRequested",
    "toolConfirmationRequest",
    "actionRequired",
)


class _Session(Reader):
    format = "goose"
    of_lines = False
    """Whether each message has a line, and the header, too."""

    def __init__(self, info: Json) -> None:
        super().__init__("Goose session", info.text("id"))
        kind = info.text("session_type")
        if kind not in ("user", "scheduled"):
            self.part = kind.replace("_", "-")
        model = Json.of(from_json(info.at("model_config_json")))
        self.model = origin(model.text("model_name"))
        self._summary: tuple[Draft, Line] | None = None
        """A message that only the agent sees: a summary, if an answer of that kind follows."""
        self._open: Compaction | None = None
        """A compaction whose last part may be the next message."""

    def name_of(self, entry: Json) -> str:
        return label(entry.text("role") or ("head" if self.of_lines else ""))

    def take(self, line: Line, entry: Json) -> None:
        if self.of_lines and _is_head(entry):
            return
        role = entry.text("role")
        if role not in ("user", "assistant") or not isinstance(entry.at("content"), list):
            line.is_unknown("expected the role user or assistant, and content as a list")
            return
        self.recognised = True
        hidden = entry.at("metadata", "userVisible") is False
        made = _drafts(role, entry.entries("content"), line)
        drafts = [draft for draft in made if draft.role == "tool" or draft.calls or draft.content]
        roles = [draft.role for draft in drafts]
        if hidden and self._summary and roles == ["assistant"]:
            (summary, head), self._summary = self._summary, None
            self._compact(summary, head, drafts[0], line)
            return
        if entry.at("metadata", "agentVisible") is False and not drafts:
            line.skip("shown to the user, not to the model")
            return
        self._settle()
        if hidden and roles == ["user"]:
            self._summary = drafts[0], line
        else:
            self._say(drafts, line)

    def _compact(self, summary: Draft, head: Line, note: Draft, line: Line) -> None:
        """Record a compaction, or open the conversation with a summary of what is not there."""
        summary.injected = True
        if not self.drafts:
            self.caveat(SUMMARY_STANDS_IN)
            self.say(head, summary)
            self.say(line, note)
            return
        self._open = self.compact(summary.text, [summary, note], "summary")

    def _say(self, drafts: list[Draft], line: Line) -> None:
        compaction, self._open = self._open, None
        if compaction is not None and [draft.role for draft in drafts] == ["user"]:
            users = (d for d in reversed(self.drafts) if d.role == "user")
            last = next((draft for draft in users if draft.text == drafts[0].text), None)
            if last is not None and compaction.state is not None:
                compaction.state.append(last)
                return
        self.say(line, *drafts)

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


def _drafts(role: str, content: list[Json], line: Line) -> list[Draft]:
    """Return the messages that one of the session is: results first, then what was said."""
    results: list[Draft] = []
    said = Draft("assistant" if role == "assistant" else "user")
    for part in content:
        match part.text("type"):
            case "toolRequest" | "frontendToolRequest":
                call = part.entry("toolCall", "value")
                if said.role == "user":
                    line.leave_out("tool call", "it stands in a message of the user")
                    continue
                if not call:
                    line.leave_out("tool call", "it was not understood and not carried out")
                said.call(part.name("id"), call.text("name"), call.at("arguments") or {})
            case "toolResponse":
                shown = _result(part.entry("toolResult"), line)
                results.append(Draft("tool", shown, call_id=part.name("id")))
            case "reasoning":
                line.leave_out_thinking()
            case kind if kind in _FOR_USERS:
                line.leave_out(kind, "shown to the user, not to the model")
            case _:
                said.content.extend(_piece(part, line))
    return [*results, said]


def _result(outcome: Json, line: Line) -> Content:
    listed = outcome.entries("value") or outcome.entries("value", "content")
    found: Content = []
    for item in listed:
        audience = item.listed("annotations", "audience")
        if audience and "assistant" not in audience:
            line.leave_out("content for the user", "it was not shown to the model")
        else:
            found.extend(_piece(item, line))
    return [*found, *filter(None, [outcome.text("error")])]


def _piece(part: Json, line: Line) -> Content:
    if part.text("type") == "resource" and part.text("resource", "text"):
        return [part.text("resource", "text")]
    return mcp_content([part], line)


def _is_own(value: Json) -> bool:
    """Return whether a value is a message that only Goose writes."""
    if value.text("role") not in ("user", "assistant"):
        return False
    return isinstance(value.at("metadata", "agentVisible"), bool) or any(
        part.text("type") in ("toolRequest", "toolResponse")
        and (part.entry("toolCall") or part.entry("toolResult"))
        for part in value.entries("content")
    )


def _is_head(value: Json) -> bool:
    return bool(value.text("working_dir")) and "role" not in value


def _recognise(source: SourceFile) -> str | None:
    if is_database(source):
        found = has_tables(source.path, ("sessions", "messages"), column="content_json")
        return "an SQLite database with messages that have a content_json" if found else None
    words = "lines with messages that have a toolRequest or agentVisible"
    if seen := sign(source.head, _is_own, words):
        return seen
    document = Json.of(source.document)
    if _is_head(document) and any(map(_is_own, document.entries("conversation"))):
        return "a JSON object with working_dir and a conversation"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    if is_database(source):
        with opened(source.path) as connection:
            yield from _database(connection, source)
        return
    document = Json.of(source.document)
    session = _Session(document if "conversation" in document else Json())
    if "conversation" in document:
        session.feed_all("message", document.listed("conversation"), 1)
        with_replaced(session, source)
    else:
        session.of_lines = True
        for value in source.values():
            session.feed(value)
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
        f"SELECT id, role, {short('content_json')}, {metadata} AS metadata "  # noqa: S608
        "FROM messages WHERE session_id IS ? ORDER BY id"
    )
    for row in connection.execute(f"SELECT {fields} FROM sessions").fetchall():  # noqa: S608
        session = _Session(Json(dict(row)))
        for stored in connection.execute(query, (row["id"],)):
            content = from_json(stored["content_json"])
            message = Json(
                role=stored["role"], content=content, metadata=from_json(stored["metadata"])
            )
            line = session.enter(f"message row {stored['id']}", session.name_of(message))
            if stored["content_json"] is None:
                line.skip(f"it has no content, or more than {LONGEST}")
            elif not isinstance(content, list):
                line.skip("its content is not a JSON list")
            else:
                session.take(line, message)
        if session.recognised:
            yield session.finish()


FORMAT = Format("goose", _recognise, _read)
