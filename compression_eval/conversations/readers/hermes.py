"""Sessions of Hermes: its ``state.db``, and what it wrote or exported as JSON.

A compaction can end a session and go on in a new one; a branch and a sub-agent also name the
session they come from, but are conversations of their own.

As JSON there are four forms: a message on each line behind one that describes the session;
exported sessions, one on each line; the snapshot of a session in one document; trajectories for
training.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Conversation, Draft
from compression_eval.conversations.fields import from_json, list_of, mapping_of, text_of, value_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    REPLACED_BYTES,
    Entry,
    entered,
    records,
    tool_definitions,
)
from compression_eval.conversations.readers.hermes_history import (
    REASONING,
    REPEATS,
    History,
    Row,
    decoded,
    message_row,
)
from compression_eval.conversations.readers.sharegpt import add_turns, is_turn
from compression_eval.conversations.readers.sqlite import columns, has_tables, is_database, opened
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile, Value
from compression_eval.fixtures.errors import DataError

_SESSION = ("id", "model", "model_config", "parent_session_id", "started_at", "end_reason")
_LONG = ("content", "tool_calls")
_ASIDE = (*REASONING, *REPEATS)
"""Only whether there is something in them matters."""
_MESSAGE = ("role", "content", "tool_call_id", "tool_calls", *_ASIDE, "active", "compacted")
_EXPORTED = ("end_reason", "parent_session_id", "lineage_session_ids", "started_at")
_SNAPSHOT = ("session_start", "last_updated", "message_count", "platform")
_DESCRIBES = "it describes the session"
_AROUND = "what stands around its messages, which are entered one by one"


@dataclass(frozen=True)
class _Session:
    """What is needed of a session to place it; not its messages."""

    number: int
    """Its position in the file, from 0."""
    id: str
    parent: str
    end_reason: str
    branch: bool
    delegate: bool
    started: float
    model: str


def _session(number: int, value: Mapping[str, Any]) -> _Session:
    """Return a session as stored or exported."""
    config, started = value.get("model_config"), value.get("started_at")
    if isinstance(config, str):
        config = from_json(config)
    is_number = isinstance(started, int | float) and not isinstance(started, bool)
    return _Session(
        number=number,
        id=text_of(value, "id") or text_of(value, "session_id"),
        parent=text_of(value, "parent_session_id"),
        end_reason=text_of(value, "end_reason"),
        branch=value_of(config, "_branched_from") is not None,
        delegate=value_of(config, "_delegate_from") is not None,
        started=float(started or 0) if is_number else 0.0,
        model=text_of(value, "model"),
    )


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

    children: dict[_Session, list[_Session]] = {}
    for session in sessions:
        parent = known.get(session.parent)
        if parent is not None and parent is not session and kind(session) == "child":
            children.setdefault(parent, []).append(session)
    follower = {
        parent: min(
            found, key=lambda one: (one.end_reason != "compression", one.started, one.number)
        )
        for parent, found in children.items()
        if parent.end_reason == "compression"
    }
    followers = set(follower.values())
    by_age = sorted(sessions, key=lambda session: (session.started, session.number))
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


def _recognise_database(source: SourceFile) -> str | None:
    if is_database(source) and has_tables(source.path, ("sessions", "messages"), column="content"):
        return "an SQLite database with the tables sessions and messages"
    return None


def _read_database(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a database; sessions that go on with each other are one."""
    if not is_database(source):
        raise DataError(f"{source.path}: expected the SQLite database of Hermes (state.db)")
    with opened(source.path) as connection:
        store = _Store(connection)
        if missing := store.missing():
            raise DataError(f"{source.path}: expected the database of Hermes, it has no {missing}")
        for kind, lineage in _lineages(list(store.sessions())):
            yield store.conversation(kind, lineage)
        for identifier in store.strays():
            conversation = store.empty(identifier or "", "stray")
            conversation.caveats.append("the messages name a session that is not in the database")
            History(conversation).assemble(list(store.messages(identifier, conversation, 0)))
            yield conversation


class _Store:
    """The tables, whichever version of the schema they have."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._replaced = False
        connection.text_factory = self._text
        self._there = {
            table: columns(connection, table)
            for table in ("sessions", "messages", "system_prompts", "schema_version")
        }
        self._origin = "Hermes database"
        if "version" in self._there["schema_version"]:
            row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
            if row is not None and isinstance(row[0], int):
                self._origin += f" (schema {row[0]})"

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self._replaced = True
            return raw.decode("utf-8", errors="replace")

    def missing(self) -> str:
        """Return which table or column is not there without which nothing can be read."""
        for table, wanted in (("sessions", {"id"}), ("messages", {"id", "session_id", "role"})):
            if not self._there[table]:
                return f"table {table}"
            if lacking := sorted(wanted - self._there[table]):
                return f"column {table}.{lacking[0]}"
        return ""

    def sessions(self) -> Iterator[_Session]:
        """Yield what is needed to sort the sessions; never their prompts or messages."""
        names = ", ".join(name for name in _SESSION if name in self._there["sessions"])
        query = f"SELECT {names} FROM sessions ORDER BY rowid"  # noqa: S608 own names
        for number, row in enumerate(self._connection.execute(query)):
            yield _session(number, dict(row))

    def empty(self, session: str, part: str) -> Conversation:
        """Return a conversation to be filled."""
        return Conversation(DATABASE_FORMAT.name, self._origin, session, part=part)

    def conversation(self, kind: str, lineage: Sequence[_Session]) -> Conversation:
        """Return the conversation of some sessions."""
        conversation = self.empty(lineage[0].id, "" if kind == "main" else kind)
        conversation.model = next((session.model for session in lineage if session.model), "")
        if kind == "child":
            conversation.caveats.append(
                "the session names another as its parent but does not go on from a compaction of it"
            )
        rows: list[Row] = []
        for index, session in enumerate(lineage):
            line = conversation.ledger.enter(f"session {session.number + 1}", "session")
            if prompt := self._system_prompt(session.id):
                conversation.say_system(line, Draft("system", [prompt]))
            else:
                line.skip("its fields are no messages")
            rows.extend(self.messages(session.id, conversation, index))
        History(conversation).assemble(rows)
        return conversation

    def _system_prompt(self, session: str) -> str:
        wanted = [
            name
            for name in ("system_prompt", "system_prompt_hash")
            if name in self._there["sessions"]
        ]
        if not wanted:
            return ""
        query = f"SELECT {', '.join(wanted)} FROM sessions WHERE id = ?"  # noqa: S608 own names
        row = self._connection.execute(query, (session,)).fetchone()
        values = dict(row) if row is not None else {}
        prompt, key = values.get("system_prompt"), values.get("system_prompt_hash")
        if not prompt and key is not None and {"hash", "prompt"} <= self._there["system_prompts"]:
            query = "SELECT prompt FROM system_prompts WHERE hash = ?"
            found = self._connection.execute(query, (key,)).fetchone()
            prompt = found[0] if found is not None else None
        return text_of(prompt)

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
                ledger.enter(place, "session_meta").skip(_DESCRIBES)
                tools = list_of(decoded(values.get("content")), "tools")
                conversation.tools = conversation.tools or tool_definitions(tools)[0]
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

    def _query(self) -> str:
        there = self._there["messages"]
        lengths = [f"coalesce(length({name}), 0)" for name in _LONG if name in there]
        too_long = f"{' + '.join(lengths) or '0'} > {MAX_LINE_BYTES}"
        parts = ["id AS number", f"{too_long} AS too_long"]
        for name in (name for name in _MESSAGE if name in there):
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


DATABASE_FORMAT = Format("hermes-db", "Hermes state.db", _recognise_database, _read_database)


def _recognise(source: SourceFile) -> str | None:
    values = source.head or [source.document]
    for value in values:
        if text_of(value, "role") == "session_meta":
            return "a line with the role session_meta"
        if _is_trajectory(value):
            return "conversations of turns with from and value"
    for name, keys in (("id", _EXPORTED), ("session_id", _SNAPSHOT)):
        found = [key for key in keys if key in mapping_of(values[0])]
        if _is_session(values[0]) and text_of(values[0], name) and len(found) > 1:
            return f"a session with {name}, messages, {' and '.join(found)}"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a file; exported sessions that go on with each other are one."""
    finished: Conversation | None = None
    asides: list[Value] = []
    for item in _conversations(source):
        if isinstance(item, Value):
            asides.append(item)
            continue
        if finished is not None:
            yield finished
        finished = item
    if finished is None:
        raise DataError(
            f"{source.path}: expected sessions of Hermes (messages on lines, exported sessions, "
            "a snapshot or trajectories), found none"
        )
    for value in asides:
        line = entered(finished.ledger, value, "other")
        if not value.problem:
            line.is_unknown("expected a message, a session or a trajectory")
    yield finished


def _conversations(source: SourceFile) -> Iterator[Conversation | Value]:
    """Yield every conversation as it is complete, and what belongs to none."""
    gathering = _Gathering(source)
    lines: _Sessions | None = None
    for value in records(source):
        content = value.value
        if value.problem:
            yield value
        elif _is_trajectory(content):
            yield _trajectory(value)
        elif _is_session(content):
            conversation = gathering.add(value)
            if conversation is not None:
                yield conversation
        elif text_of(content, "role"):
            lines = lines or _Sessions("", "")
            lines.add_line(value)
        else:
            yield Value(value.place, replaced=value.replaced)
    if lines is not None:
        yield lines.finish()


def _is_session(value: Any) -> bool:
    return isinstance(value_of(value, "messages"), list)


def _is_trajectory(value: Any) -> bool:
    return any(is_turn(turn) for turn in list_of(value, "conversations"))


def _trajectory(value: Value) -> Conversation:
    content = value.value
    conversation = Conversation(
        FORMAT.name,
        "Hermes trajectory",
        text_of(content, "id"),
        part="" if value.place in ("line 1", "the document") else value.place,
        model=text_of(content, "model"),
    )
    line = entered(conversation.ledger, value, "trajectory")
    line.skip("what stands around its turns, which are entered one by one")
    add_turns(conversation, content["conversations"], f"{value.place}, turn")
    return conversation


class _Gathering:
    """Puts exported sessions together, however far apart they stand in the file."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._places: dict[str, tuple[int, int]] = {}
        """For the place of every session: its conversation, and its position in it."""
        self._open: list[_Sessions] = []
        self._missing: list[int] = []

    def add(self, value: Value) -> Conversation | None:
        """Take a session, and return the conversation that it completes."""
        if not self._places:
            self._sort()
        number, position = self._places[value.place]
        sessions = self._open[number]
        sessions.add_session(value, position)
        self._missing[number] -= 1
        if self._missing[number]:
            return None
        # What was read of it is not needed any more; there may be thousands.
        self._open[number] = _Sessions("", "")
        return sessions.finish()

    def _sort(self) -> None:
        """Read the file once for what the sessions say of each other, and keep only that."""
        places: list[str] = []
        sessions: list[_Session] = []
        for value in records(self._source):
            content = value.value
            if value.problem or not _is_session(content) or _is_trajectory(content):
                continue
            if segments := list_of(content, "segments"):
                # One that brings its lineage along stands for itself.
                alone = {"parent_session_id": "", "end_reason": ""}
                content = {**mapping_of(segments[0]), **alone}
            sessions.append(_session(len(places), content))
            places.append(value.place)
        for number, (kind, lineage) in enumerate(_lineages(sessions)):
            for position, session in enumerate(lineage):
                self._places[places[session.number]] = number, position
            part = "" if kind in ("main", "child") else kind
            self._open.append(_Sessions(lineage[0].id, part))
            self._missing.append(len(lineage))


class _Sessions:
    """The sessions of one conversation, while they are read."""

    def __init__(self, session: str, part: str) -> None:
        self._conversation = Conversation(FORMAT.name, "Hermes", session, part=part)
        self._rows: dict[tuple[int, int], list[Row]] = {}
        """By the position of the session in the conversation, and of the segment in it."""
        self._prompts: dict[tuple[int, int], tuple[Line, str]] = {}

    def add_line(self, value: Value) -> None:
        content, ledger = value.value, self._conversation.ledger
        if text_of(content, "role") == "session_meta":
            entered(ledger, value, "session_meta").skip(_DESCRIBES)
            self._describe(content)
            return
        self._add_message(content, value.place, (0, 0))
        if value.replaced:
            ledger.lines[-1].leave_out("bytes", "not UTF-8, replaced")

    def add_session(self, value: Value, position: int) -> None:
        """Take a session with its messages, or with the segments of its lineage."""
        line = entered(self._conversation.ledger, value, "session")
        line.skip(_AROUND)
        segments = [item for item in list_of(value.value, "segments") if _is_session(item)]
        if not segments:
            self._add_segment(value.value, value.place, line, (position, 0))
            return
        line.leave_out("messages", "they stand in its segments")
        for number, segment in enumerate(segments):
            where = f"{value.place}, segment {number}"
            inner = self._conversation.ledger.enter(where, "segment")
            inner.skip(_AROUND)
            self._add_segment(segment, where, inner, (position, number))

    def finish(self) -> Conversation:
        for order in sorted(self._prompts):
            line, prompt = self._prompts[order]
            self._conversation.say_system(line, Draft("system", [prompt]))
        rows: list[Row] = []
        for session, order in enumerate(sorted(self._rows)):
            for row in self._rows[order]:
                row.session = session
                rows.append(row)
        History(self._conversation).assemble(rows)
        return self._conversation

    def _describe(self, content: Entry) -> None:
        conversation = self._conversation
        conversation.model = conversation.model or text_of(content, "model")
        conversation.tools = conversation.tools or tool_definitions(list_of(content, "tools"))[0]

    def _add_segment(self, content: Entry, where: str, line: Line, order: tuple[int, int]) -> None:
        self._describe(content)
        if prompt := text_of(content, "system_prompt"):
            self._prompts[order] = line, prompt
        for number, message in enumerate(content["messages"]):
            self._add_message(message, f"{where}, message {number}", order)

    def _add_message(self, message: Any, place: str, order: tuple[int, int]) -> None:
        ledger = self._conversation.ledger
        if not isinstance(message, dict):
            ledger.enter(place, "message").is_unknown("expected an object")
        elif (row := message_row(message, place, ledger)) is not None:
            self._rows.setdefault(order, []).append(row)


FORMAT = Format(
    "hermes-jsonl",
    "Hermes sessions (.jsonl, session_*.json, exports, trajectories)",
    _recognise,
    _read,
)
