"""Hermes' `state.db`: all sessions of a user, with what compactions wrote among the messages."""

import sqlite3
from collections.abc import Iterator, Sequence

from compression_eval.conversations.drafts import Conversation, Draft
from compression_eval.conversations.fields import list_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger
from compression_eval.conversations.readers.hermes_history import History
from compression_eval.conversations.readers.hermes_lineage import (
    Session,
    Thread,
    session_of,
    threads,
)
from compression_eval.conversations.readers.hermes_rows import Row, decoded, message_row
from compression_eval.conversations.readers.sqlite_store import columns, has_tables, opened
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
)
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile
from compression_eval.fixtures.errors import DataError

_TABLES = ("sessions", "messages")
_SESSION = ("id", "model", "model_config", "parent_session_id", "started_at", "end_reason")
_MESSAGE = (
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "api_content",
    "active",
    "compacted",
)
_LONG = ("content", "tool_calls")
_ASIDE = _MESSAGE[4:10]
"""Only whether there is something in them matters."""


def recognise(source: SourceFile) -> str | None:
    """Return what marks the format."""
    if not source.magic.startswith(b"SQLite format 3") or not has_tables(
        source.path, _TABLES, column="content"
    ):
        return None
    return "an SQLite database with the tables sessions and messages"


def read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a database; sessions that go on with each other are one.

    Raises:
        DataError: It is no such database, or cannot be read.
    """
    if not source.magic.startswith(b"SQLite format 3"):
        raise DataError(f"{source.path}: expected the SQLite database of Hermes (state.db)")
    with opened(source.path) as connection:
        store = _Store(connection)
        missing = store.missing()
        if missing:
            raise DataError(f"{source.path}: expected the database of Hermes, it has no {missing}")
        sessions = list(store.sessions())
        for thread in threads(sessions):
            yield _conversation(store, thread)
        for identifier in store.strays():
            yield _stray(store, identifier)


def _conversation(store: "_Store", thread: Thread) -> Conversation:
    conversation = Conversation(
        format=FORMAT.name,
        origin=store.origin,
        session=thread.sessions[0].id,
        ledger=Ledger(),
        part="" if thread.kind == "main" else thread.kind,
        model=next((session.model for session in thread.sessions if session.model), ""),
    )
    if thread.kind == "child":
        conversation.caveats.append(
            "the session names another as its parent but does not go on from a compaction of it"
        )
    rows: list[Row] = []
    for index, session in enumerate(thread.sessions):
        _take_session(store, session, conversation)
        rows.extend(store.messages(session.id, conversation, index))
    return _finished(conversation, rows)


def _take_session(store: "_Store", session: Session, conversation: Conversation) -> None:
    """Enter a session; the system prompt of the first one that has one opens the conversation."""
    line = conversation.ledger.enter(f"session {session.number + 1}", "session")
    prompt = store.system_prompt(session.id)
    if not prompt:
        line.skip("its fields are no messages")
    elif not conversation.drafts:
        conversation.drafts.append(line.became(Draft("system", [prompt])))
    elif prompt == conversation.drafts[0].text:
        line.merge(conversation.drafts[0])
    else:
        line.skip("its system prompt took the place of an earlier one")


def _stray(store: "_Store", identifier: str | None) -> Conversation:
    """Return the messages that name a session which is not in the database."""
    conversation = Conversation(
        format=FORMAT.name,
        origin=store.origin,
        session=identifier or "",
        ledger=Ledger(),
        part="stray",
    )
    conversation.caveats.append("the messages name a session that is not in the database")
    return _finished(conversation, list(store.messages(identifier, conversation, 0)))


def _finished(conversation: Conversation, rows: Sequence[Row]) -> Conversation:
    History(conversation).assemble(rows)
    if not any(draft.role == "system" for draft in conversation.drafts):
        conversation.caveats.append(NO_SYSTEM_PROMPT)
    if not conversation.tools:
        conversation.caveats.append(NO_TOOLS)
    return conversation


class _Store:
    """The tables, whichever version of the schema they have."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._replaced = False
        connection.text_factory = self._text
        self._columns = {table: columns(connection, table) for table in _TABLES}
        self._prompts = columns(connection, "system_prompts")
        self.origin = " ".join(["Hermes database", *self._version()])

    def missing(self) -> str:
        """Return which table or column is not there without which nothing can be read."""
        for table, wanted in (("sessions", {"id"}), ("messages", {"id", "session_id", "role"})):
            if not self._columns[table]:
                return f"table {table}"
            if lacking := sorted(wanted - self._columns[table]):
                return f"column {table}.{lacking[0]}"
        return ""

    def sessions(self) -> Iterator[Session]:
        """Yield what is needed to sort the sessions; never their prompts or messages."""
        names = [name for name in _SESSION if name in self._columns["sessions"]]
        query = f"SELECT {', '.join(names)} FROM sessions ORDER BY rowid"  # noqa: S608 own names
        for number, row in enumerate(self._connection.execute(query)):
            yield session_of(number, dict(row))

    def system_prompt(self, session: str) -> str:
        """Return the system prompt of a session; empty if it has none."""
        wanted = [
            name
            for name in ("system_prompt", "system_prompt_hash")
            if name in self._columns["sessions"]
        ]
        if not wanted:
            return ""
        query = f"SELECT {', '.join(wanted)} FROM sessions WHERE id = ?"  # noqa: S608 own names
        row = self._connection.execute(query, (session,)).fetchone()
        values = dict(row) if row is not None else {}
        prompt = values.get("system_prompt")
        key = values.get("system_prompt_hash")
        if not prompt and key is not None and {"hash", "prompt"} <= self._prompts:
            found = self._connection.execute(
                "SELECT prompt FROM system_prompts WHERE hash = ?", (key,)
            ).fetchone()
            prompt = found[0] if found is not None else None
        return prompt if isinstance(prompt, str) else ""

    def messages(
        self, session: str | None, conversation: Conversation, index: int
    ) -> Iterator[Row]:
        """Enter the messages of a session and yield those that may be said."""
        ledger = conversation.ledger
        self._replaced = False
        for row in self._connection.execute(self._query(), (session,)):
            values = dict(row)
            place = f"message row {values.pop('number')}"
            replaced, self._replaced = self._replaced, False
            if values.pop("too_long"):
                line = ledger.enter(place, "unreadable")
                line.skip(f"the message is longer than {MAX_LINE_BYTES // 2**20} MiB")
                continue
            if values.get("role") == "session_meta":
                _take_meta(values, place, conversation)
            elif (found := message_row(values, place, ledger, session=index)) is not None:
                yield found
            if replaced:
                ledger.lines[-1].leave_out("bytes", REPLACED_BYTES)

    def strays(self) -> Iterator[str | None]:
        """Yield the ids of sessions that only messages name."""
        query = (
            "SELECT DISTINCT session_id FROM messages WHERE session_id IS NULL "
            "OR session_id NOT IN (SELECT id FROM sessions WHERE id IS NOT NULL) ORDER BY 1"
        )
        for row in self._connection.execute(query).fetchall():
            yield row[0]

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self._replaced = True
            return raw.decode("utf-8", errors="replace")

    def _query(self) -> str:
        there = self._columns["messages"]
        lengths = [f"coalesce(length({name}), 0)" for name in _LONG if name in there]
        too_long = f"{' + '.join(lengths) or '0'} > {MAX_LINE_BYTES}"
        parts = ["id AS number", f"{too_long} AS too_long"]
        for name in _MESSAGE:
            if name not in there:
                continue
            if name in _LONG:
                parts.append(f"CASE WHEN {too_long} THEN NULL ELSE {name} END AS {name}")
            elif name in _ASIDE:
                parts.append(f"coalesce({name}, '') <> '' AS {name}")
            else:
                parts.append(name)
        return (
            f"SELECT {', '.join(parts)} FROM messages "  # noqa: S608 own names and numbers
            "WHERE session_id IS ? ORDER BY id"
        )

    def _version(self) -> Iterator[str]:
        if "version" in columns(self._connection, "schema_version"):
            row = self._connection.execute("SELECT max(version) FROM schema_version").fetchone()
            if row is not None and isinstance(row[0], int):
                yield f"(schema {row[0]})"


def _take_meta(values: dict[str, object], place: str, conversation: Conversation) -> None:
    """Take the tools from a row that describes the session."""
    line = conversation.ledger.enter(place, "session_meta")
    line.skip("it describes the session")
    content = decoded(values.get("content"))
    tools, _ = tool_definitions(list_of(content, "tools"))
    conversation.tools = conversation.tools or tools


FORMAT = Format(
    name="hermes-db",
    title="Hermes state.db",
    recognise=recognise,
    read=read,
)
