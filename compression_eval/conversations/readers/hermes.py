"""Sessions of Hermes: its ``state.db``, and what it wrote or exported as JSON.

A compaction can end a session and continue in a new one; a branch and a sub-agent also name the
session they come from, but are conversations of their own.

As JSON there are three forms: a message on each line behind one that describes the session;
exported sessions, one on each line; the snapshot of a session in one document.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from compression_eval.conversations.drafts import (
    REPLACED_BYTES,
    Conversation,
    Draft,
    Line,
)
from compression_eval.conversations.fields import Json, entries, from_json
from compression_eval.conversations.readers.base import Format, records, with_asides
from compression_eval.conversations.readers.hermes_history import (
    REASONING,
    REPEATS,
    Row,
    assemble,
    decoded,
    message_row,
)
from compression_eval.conversations.readers.sqlite import (
    columns,
    has_tables,
    is_database,
    opened,
)
from compression_eval.conversations.sources import SourceFile, Value

_SESSION = ("id", "model", "model_config", "parent_session_id", "started_at", "end_reason")
_MESSAGE = (
    *("role", "content", "tool_call_id", "tool_calls", "active", "compacted"),
    *(*REASONING, *REPEATS),
)
_EXPORTED = ("end_reason", "parent_session_id", "lineage_session_ids", "started_at")
_SNAPSHOT = ("session_start", "last_updated", "message_count", "platform")


class _Session:
    """What is needed of a session to place it; not its messages."""

    def __init__(self, number: int, value: Json) -> None:
        config, started = value.at("model_config"), value.at("started_at")
        config = Json.of(from_json(config) if isinstance(config, str) else config)
        self.number = number
        """Its position in the file, from 0."""
        self.id = value.first("id", "session_id")
        self.parent = value.text("parent_session_id")
        self.end_reason = value.text("end_reason")
        self.branch = config.at("_branched_from") is not None
        self.delegate = config.at("_delegate_from") is not None
        self.age = (float(started) if isinstance(started, int | float) else 0.0, number)
        self.model = value.text("model")


def _lineages(sessions: Sequence[_Session]) -> Iterator[tuple[str, list[_Session]]]:
    """Yield the sessions of each conversation with its kind, each session once, by age.

    A conversation's kind is ``main``, ``branch``, ``delegate`` or ``child``.
    """
    known = {session.id: session for session in sessions if session.id}

    def kind(session: _Session) -> str:
        parent = known.get(session.parent)
        if session.delegate:
            return "delegate"
        if session.branch or (parent is not None and parent.end_reason == "branched"):
            return "branch"
        return "child" if session.parent else "main"

    by_age = sorted(sessions, key=lambda session: session.age)
    follower: dict[_Session, _Session] = {}
    for session in sorted(by_age, key=lambda one: one.end_reason != "compression"):
        parent = known.get(session.parent)
        follows = kind(session) == "child" and parent is not session
        if follows and parent is not None and parent.end_reason == "compression":
            follower.setdefault(parent, session)
    followers = set(follower.values())
    done: set[_Session] = set()
    # Those left over after the first round name each other as parents, which no agent writes.
    for session in (*(one for one in by_age if one not in followers), *by_age):
        lineage: list[_Session] = []
        member: _Session | None = session
        while member is not None and member not in done:
            done.add(member)
            lineage.append(member)
            member = follower.get(member)
        if lineage:
            yield kind(session), lineage


class _Lineage(Conversation):
    """The sessions of one conversation, which are read in their order."""

    def __init__(self, format_name: str, origin: str, session: str, kind: str) -> None:
        super().__init__(format_name, origin, session, part="" if kind == "main" else kind)
        self._rows: list[Row] = []
        self._sessions = 0

    def begin_session(self, line: Line, prompt: str) -> None:
        """Take the head of a session: what follows is a part of it."""
        self._sessions += 1
        if prompt:
            self.say_system(line, Draft("system", [prompt]))

    def describe(self, content: Json) -> None:
        """Take model and tools, whichever session names them first."""
        self.model = self.model or content.text("model")
        if not self.tools:
            self.take_tools(content.listed("tools"))

    def add_message(self, message: Any, place: str) -> None:
        """Take a message, as it is stored or exported, or a description of the session."""
        if Json.of(message).text("role") == "session_meta":
            content = Json.of(decoded(message.get("content")))
            self.describe(content or Json(message))
        elif not isinstance(message, dict):
            self.enter(place, "message").is_unknown("expected an object")
        elif (row := message_row(Json(message), place, self)) is not None:
            row.session = self._sessions
            self._rows.append(row)

    def add_exported(self, value: Value) -> None:
        """Take a session with its messages, or with the segments of its lineage."""
        content, line = Json(value.value), self.enter_value(value, "session")
        segments = [item for item in content.entries("segments") if _is_session(item)]
        for number, segment in enumerate(segments or [content]):
            where = f"{value.place}, segment {number}" if segments else value.place
            self.describe(segment)
            inner = self.enter(where, "segment") if segments else line
            self.begin_session(inner, segment.text("system_prompt"))
            for count, message in enumerate(segment["messages"]):
                self.add_message(message, f"{where}, message {count}")

    def finish(self) -> Conversation:
        """Return the conversation; nothing is added after it."""
        assemble(self, self._rows)
        return self


def _recognise_database(source: SourceFile) -> str | None:
    if has_tables(source, ("sessions", "messages"), column="content"):
        return "an SQLite database with the tables sessions and messages"
    return None


def _read_database(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a database; sessions that continue with each other are one."""
    if is_database(source):
        with opened(source.path) as connection:
            yield from _Store(connection).conversations()


class _Store:
    """The tables, whichever version of the schema they have."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        sessions, messages, prompts, versions = (
            columns(connection, table)
            for table in ("sessions", "messages", "system_prompts", "schema_version")
        )
        self._session = ", ".join(name for name in _SESSION if name in sessions)
        self._prompt = "system_prompt" if "system_prompt" in sessions else "NULL"
        if {"hash", "prompt"} <= prompts and "system_prompt_hash" in sessions:
            shared = "(SELECT prompt FROM system_prompts WHERE hash = system_prompt_hash)"
            self._prompt = f"coalesce(nullif({self._prompt}, ''), {shared})"
        self._message = ", ".join(name for name in _MESSAGE if name in messages)
        self._origin = "Hermes database"
        if "version" in versions:
            row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
            self._origin += f" (schema {row[0]})" if isinstance(row[0], int) else ""

    def conversations(self) -> Iterator[Conversation]:
        """Yield every conversation, then messages whose session is gone."""
        # To sort the sessions, neither their prompts nor their messages are needed.
        query = f"SELECT {self._session} FROM sessions ORDER BY rowid"  # noqa: S608 own names
        rows = enumerate(self._connection.execute(query).fetchall())
        sessions = [_Session(number, Json(dict(row))) for number, row in rows]
        for kind, lineage in _lineages(sessions):
            yield self._conversation(kind, lineage)
        query = (
            "SELECT DISTINCT session_id FROM messages WHERE session_id IS NULL "
            "OR session_id NOT IN (SELECT id FROM sessions WHERE id IS NOT NULL) ORDER BY 1"
        )
        for (identifier,) in self._connection.execute(query).fetchall():
            session = Json(id=identifier).name("id")
            stray = _Lineage(DATABASE_FORMAT.name, self._origin, session, "stray")
            stray.caveat("the messages name a session that is not in the database")
            self._add_messages(identifier, stray)
            yield stray.finish()

    def _conversation(self, kind: str, sessions: Sequence[_Session]) -> Conversation:
        lineage = _Lineage(DATABASE_FORMAT.name, self._origin, sessions[0].id, kind)
        lineage.model = next((session.model for session in sessions if session.model), "")
        if kind == "child":
            lineage.caveat(
                "the session names another as its parent but does not continue from its compaction"
            )
        query = f"SELECT {self._prompt} FROM sessions WHERE id = ?"  # noqa: S608 own names
        for session in sessions:
            line = lineage.enter(f"session {session.number + 1}", "session")
            (prompt,) = self._connection.execute(query, (session.id,)).fetchone() or (None,)
            lineage.begin_session(line, prompt if isinstance(prompt, str) else "")
            self._add_messages(session.id, lineage)
        return lineage.finish()

    def _add_messages(self, session: str | None, lineage: _Lineage) -> None:
        """Enter the messages of a session."""
        query = (
            f"SELECT id AS number, {self._message} "  # noqa: S608 own names
            "FROM messages WHERE session_id IS ? ORDER BY id"
        )
        for row in map(dict, self._connection.execute(query, (session,))):
            place = f"message row {row.pop('number')}"
            lineage.add_message(row, place)


DATABASE_FORMAT = Format(
    "hermes-db", _recognise_database, _read_database, "the SQLite database of Hermes (state.db)"
)


def _recognise(source: SourceFile) -> str | None:
    values = entries(source.head or [source.document])
    if any(value.text("role") == "session_meta" for value in values):
        return "a line with the role session_meta"
    for name, keys in (("id", _EXPORTED), ("session_id", _SNAPSHOT)):
        found = [key for key in keys if key in values[0]]
        if _is_session(values[0]) and values[0].text(name) and len(found) > 1:
            return f"a session with {name}, messages, {' and '.join(found)}"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a file; exported sessions that continue each other are one."""
    nothing = (
        f"{source.path}: expected sessions of Hermes (messages on lines, exported sessions or a "
        "snapshot), found none"
    )
    unknown = "expected a message or a session"
    return with_asides(_conversations(source), "other", nothing, unknown)


def _conversations(source: SourceFile) -> Iterator[Conversation | Value]:
    """Yield every conversation, and what belongs to none."""
    exported: list[Value] = []
    lines = _Lineage(FORMAT.name, "Hermes", "", "main")
    there = False
    for value in records(source):
        content = Json.of(value.value)
        if value.problem:
            yield value
        elif _is_session(content):
            exported.append(value)
        elif content.text("role"):
            there = True
            lines.add_message(content, value.place)
            if value.replaced and lines.lines:
                lines.lines[-1].leave_out("bytes", REPLACED_BYTES)
        else:
            yield Value(value.place, replaced=value.replaced)
    if there:
        yield lines.finish()
    sessions: list[_Session] = []
    for number, value in enumerate(exported):
        content = Json(value.value)
        if segments := content.entries("segments"):
            # One that brings its lineage along stands for itself.
            content = Json({**segments[0], "parent_session_id": "", "end_reason": ""})
        sessions.append(_Session(number, content))
    for kind, lineage in _lineages(sessions):
        part = "main" if kind == "child" else kind
        found = _Lineage(FORMAT.name, "Hermes", lineage[0].id, part)
        for session in lineage:
            found.add_exported(exported[session.number])
        yield found.finish()


def _is_session(value: Any) -> bool:
    return isinstance(Json.of(value).at("messages"), list)


FORMAT = Format("hermes-jsonl", _recognise, _read)
