"""Sessions of Goose: its database, an exported session, and the JSON Lines of older versions.

All contain the same messages. Each says whether the user and whether the agent sees it. A
compaction hides everything before it from the agent and adds, for the agent alone, the summary as a
user message, a note in the assistant's name, and the user's last message once more.
"""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import (
    SUMMARY_STANDS_IN,
    Compaction,
    Content,
    Conversation,
    Draft,
    Line,
)
from compression_eval.conversations.fields import Json, from_json, label, origin
from compression_eval.conversations.readers.base import Format, Reader, sign
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.readers.sqlite import has_tables, is_database, opened
from compression_eval.conversations.sources import SourceFile, Value

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
        return "head" if _is_head(entry) else label(entry.text("role"))

    def take(self, line: Line, entry: Json) -> None:
        role, content = entry.text("role"), entry.at("content")
        if _is_head(entry):
            return
        if role not in ("user", "assistant") or not isinstance(content, list):
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
        if self.drafts:
            self._open = self.compact(summary.text, [summary, note], "summary")
        else:
            self.caveat(SUMMARY_STANDS_IN)
            self.say(head, summary)
            self.say(line, note)

    def _say(self, drafts: list[Draft], line: Line) -> None:
        compaction, self._open = self._open, None
        if compaction and compaction.state and [draft.role for draft in drafts] == ["user"]:
            users = (draft for draft in reversed(self.drafts) if draft.role == "user")
            last = next((draft for draft in users if draft.text == drafts[0].text), None)
            if last is not None:
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
            case "toolRequest" | "frontendToolRequest" if said.role == "user":
                line.leave_out("tool call", "it is in a message of the user")
            case "toolRequest" | "frontendToolRequest":
                call = part.entry("toolCall", "value")
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
                said.content.extend(content_of([part], line))
    return [*results, said]


def _result(outcome: Json, line: Line) -> Content:
    found: Content = []
    for item in outcome.entries("value") or outcome.entries("value", "content"):
        audience = item.listed("annotations", "audience")
        if audience and "assistant" not in audience:
            line.leave_out("content for the user", "it was not shown to the model")
        else:
            found.extend(content_of([item], line))
    return [*found, *filter(None, [outcome.text("error")])]


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
    if has_tables(source, ("sessions", "messages"), column="content_json"):
        return "an SQLite database with messages that have a content_json"
    words = "lines with messages that have a toolRequest or agentVisible"
    if seen := sign(source.head, _is_own, words):
        return seen
    document = Json.of(source.document)
    if _is_head(document) and any(map(_is_own, document.entries("conversation"))):
        return "a JSON object with working_dir and a conversation"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = Json.of(source.document)
    sessions: Iterator[tuple[Json, Iterator[Value]]]
    if is_database(source):
        sessions = _database(source)
    elif "conversation" in document:
        messages = enumerate(document.listed("conversation"), 1)
        values = (Value(f"message {number}", message) for number, message in messages)
        sessions = iter([(document, values)])
    else:
        sessions = iter([(Json(), source.values())])
    for info, messages_of in sessions:
        session = _Session(info)
        for value in messages_of:
            session.feed(value)
        if session.recognised:
            yield session.finish()


def _database(source: SourceFile) -> Iterator[tuple[Json, Iterator[Value]]]:
    """Yield the sessions of the database, each with its messages."""
    with opened(source.path) as connection:
        query = "SELECT * FROM messages WHERE session_id IS ? ORDER BY id"
        for session in map(dict, connection.execute("SELECT * FROM sessions").fetchall()):
            rows = map(dict, connection.execute(query, (session["id"],)))
            yield Json(session), map(_stored, rows)


def _stored(row: dict[str, Any]) -> Value:
    """Return a message of the database."""
    message = {
        "role": row["role"],
        "content": from_json(row["content_json"]),
        "metadata": from_json(row.get("metadata_json")),
    }
    return Value(f"message row {row['id']}", message)


FORMAT = Format(
    "goose", _recognise, _read, "a session of Goose: sessions.db, an export, or lines of messages"
)
