"""Sessions that Hermes wrote or exported as JSON.

Four forms: a message on each line behind one that describes the session; exported sessions, one
on each line; the snapshot of a session in one document; trajectories for training.
"""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Conversation, Draft
from compression_eval.conversations.fields import list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.hermes_history import History
from compression_eval.conversations.readers.hermes_lineage import Session, session_of, threads
from compression_eval.conversations.readers.hermes_rows import Row, message_row
from compression_eval.conversations.readers.records import records
from compression_eval.conversations.readers.sharegpt import add_turns, is_turn
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import NO_SYSTEM_PROMPT, NO_TOOLS, entered
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_EXPORTED = ("end_reason", "parent_session_id", "lineage_session_ids", "started_at")
_SNAPSHOT = ("session_start", "last_updated", "message_count", "platform")


def recognise(source: SourceFile) -> str | None:
    """Return what marks the format."""
    for value in source.head or [source.document]:
        if text_of(value, "role") == "session_meta":
            return "a line with the role session_meta"
        if _is_trajectory(value):
            return "conversations of turns with from and value"
    first = source.head[0] if source.head else source.document
    if not _is_session(first):
        return None
    if text_of(first, "id") and sum(key in first for key in _EXPORTED) > 1:
        return "a session with id, messages, " + " and ".join(
            key for key in _EXPORTED if key in first
        )
    if text_of(first, "session_id") and sum(key in first for key in _SNAPSHOT) > 1:
        return "a session with session_id, messages, " + " and ".join(
            key for key in _SNAPSHOT if key in first
        )
    return None


def read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the conversations of a file; exported sessions that go on with each other are one.

    Raises:
        DataError: It holds no session in any of the forms.
    """
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
            yield Value(value.place, problem=value.problem, replaced=value.replaced)
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
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def _is_trajectory(value: Any) -> bool:
    turns = list_of(value, "conversations")
    return bool(turns) and any(is_turn(turn) for turn in turns)


def _trajectory(value: Value) -> Conversation:
    content = value.value
    conversation = Conversation(
        format=FORMAT.name,
        origin="Hermes trajectory",
        session=text_of(content, "id"),
        ledger=Ledger(),
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
        self._place: dict[str, tuple[int, int]] | None = None
        """For the place of every session: its thread, and its position in it."""
        self._threads: list[_Sessions] = []
        self._missing: list[int] = []

    def add(self, value: Value) -> Conversation | None:
        """Take a session, and return the conversation that it completes."""
        if self._place is None:
            self._place = self._sorted()
        number, position = self._place[value.place]
        thread = self._threads[number]
        thread.add_session(value, position)
        self._missing[number] -= 1
        if self._missing[number]:
            return None
        # What was read of it is not needed any more; there may be thousands.
        self._threads[number] = _Sessions("", "")
        return thread.finish()

    def _sorted(self) -> dict[str, tuple[int, int]]:
        """Read the file once for what the sessions say of each other, and keep only that."""
        places: list[str] = []
        sessions: list[Session] = []
        for value in records(self._source):
            if not value.problem and _is_session(value.value) and not _is_trajectory(value.value):
                sessions.append(_placed(len(places), value.value))
                places.append(value.place)
        found: dict[str, tuple[int, int]] = {}
        for thread in threads(sessions):
            first = thread.sessions[0]
            kind = "" if thread.kind in ("main", "child") else thread.kind
            for position, session in enumerate(thread.sessions):
                found[places[session.number]] = (len(self._threads), position)
            self._threads.append(_Sessions(first.id, kind))
            self._missing.append(len(thread.sessions))
        return found


def _placed(number: int, value: dict[str, Any]) -> Session:
    """Return what places a session; one that brings its lineage along stands for itself."""
    if list_of(value, "segments"):
        first = mapping_of({"first": value["segments"][0]}, "first")
        value = {**first, "parent_session_id": "", "end_reason": ""}
    return session_of(number, value)


class _Sessions:
    """The sessions of one conversation, while they are read."""

    def __init__(self, session: str, part: str) -> None:
        self._conversation = Conversation(FORMAT.name, "Hermes", session, Ledger(), part=part)
        self._rows: dict[tuple[int, int], list[Row]] = {}
        """By the position of the session in the conversation, and of the segment in it."""
        self._prompts: dict[tuple[int, int], tuple[Line, str]] = {}

    def add_line(self, value: Value) -> None:
        """Take a message that stands on a line of its own."""
        content = value.value
        if text_of(content, "role") == "session_meta":
            line = entered(self._conversation.ledger, value, "session_meta")
            line.skip("it describes the session")
            self._describe(content)
            return
        self._add_message(content, value.place, (0, 0))
        if value.replaced:
            self._conversation.ledger.lines[-1].leave_out("bytes", "not UTF-8, replaced")

    def add_session(self, value: Value, position: int) -> None:
        """Take a session with its messages, or with the segments of its lineage."""
        content = value.value
        line = entered(self._conversation.ledger, value, "session")
        line.skip("what stands around its messages, which are entered one by one")
        segments = [item for item in list_of(content, "segments") if _is_session(item)]
        if not segments:
            self._describe(content)
            self._add_segment(content, value.place, line, (position, 0))
            return
        line.leave_out("messages", "they stand in its segments")
        for number, segment in enumerate(segments):
            where = f"{value.place}, segment {number}"
            inner = self._conversation.ledger.enter(where, "segment")
            inner.skip("what stands around its messages, which are entered one by one")
            self._describe(segment)
            self._add_segment(segment, where, inner, (position, number))

    def finish(self) -> Conversation:
        """Return the conversation."""
        conversation = self._conversation
        for order in sorted(self._prompts):
            self._take_prompt(*self._prompts[order])
        rows: list[Row] = []
        for session, order in enumerate(sorted(self._rows)):
            for row in self._rows[order]:
                row.session = session
                rows.append(row)
        History(conversation).assemble(rows)
        if not any(draft.role == "system" for draft in conversation.drafts):
            conversation.caveats.append(NO_SYSTEM_PROMPT)
        if not conversation.tools:
            conversation.caveats.append(NO_TOOLS)
        return conversation

    def _describe(self, content: dict[str, Any]) -> None:
        conversation = self._conversation
        conversation.model = conversation.model or text_of(content, "model")
        conversation.tools = conversation.tools or tool_definitions(list_of(content, "tools"))[0]

    def _add_segment(
        self, content: dict[str, Any], where: str, line: Line, order: tuple[int, int]
    ) -> None:
        if prompt := text_of(content, "system_prompt"):
            self._prompts[order] = (line, prompt)
        for number, message in enumerate(content["messages"]):
            self._add_message(message, f"{where}, message {number}", order)

    def _add_message(self, message: Any, place: str, order: tuple[int, int]) -> None:
        ledger = self._conversation.ledger
        if not isinstance(message, dict):
            ledger.enter(place, "message").is_unknown("expected an object")
            return
        row = message_row(message, place, ledger)
        if row is not None:
            self._rows.setdefault(order, []).append(row)

    def _take_prompt(self, line: Line, prompt: str) -> None:
        """The system prompt of the first session that has one opens the conversation."""
        drafts = self._conversation.drafts
        if not drafts:
            drafts.append(line.became(Draft("system", [prompt])))
        elif prompt == drafts[0].text:
            line.merge(drafts[0])
        else:
            line.skip("its system prompt took the place of an earlier one")


FORMAT = Format(
    name="hermes-jsonl",
    title="Hermes sessions (.jsonl, session_*.json, exports, trajectories)",
    recognise=recognise,
    read=read,
)
