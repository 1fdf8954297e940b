"""Sessions of OpenCode: ``opencode export``, its database, and the files of older versions.

All hold the same: a session, its messages, and the parts of each. A compaction is a user message
with a part of that name and the assistant message behind it, whose text is the summary.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft, DraftCall, Image
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    label,
    list_of,
    mapping_of,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.sqlite_store import columns, has_tables, opened
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    leave_out_thinking,
    origin,
    say_injected,
)
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile
from compression_eval.fixtures.errors import DataError

_TABLES = ("session", "message", "part")
_QUESTION = "What did we do so far?"
"""What OpenCode shows the model for the message that asked for a compaction."""
_TEXT_FILES = ("text/plain", "application/x-directory")

_SKIPPED = {
    "step-start": "a mark of a step's course",
    "step-finish": "an account of tokens",
    "snapshot": "a snapshot of the files for undoing",
    "patch": "a list of the files that a step changed",
    "agent": "the name of the agent that the user chose",
    "retry": "a failed request that was tried again",
    "unreadable": f"it is no JSON object, or longer than {MAX_LINE_BYTES // 2**20} MiB",
}
_UNREADABLE = {"type": "unreadable"}


@dataclass(frozen=True)
class _Message:
    """A message as it is stored."""

    place: str
    info: dict[str, Any]
    parts: list[Any]
    problem: str = ""
    """Why it cannot be read; empty if it can."""


@dataclass
class _Thread:
    """A session that is being read."""

    info: dict[str, Any]
    conversation: Conversation
    by_id: dict[str, int] = field(default_factory=dict)
    """How many drafts there were before a message, by its id."""
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Parts that ask for a compaction, by the ids of their messages."""
    fresh: Compaction | None = None
    tokens: int | None = None
    models: Counter[str] = field(default_factory=Counter)
    pruned: int = 0
    undone: bool = False

    def take(self, message: _Message) -> None:
        """Enter a message and its parts."""
        info, role = message.info, text_of(message.info, "role")
        head = self.conversation.ledger.enter(message.place, f"message:{label(role)}")
        name = text_of(info, "id")
        lines = [
            self.conversation.ledger.enter(
                f"{message.place}, part {number}", f"part:{label(text_of(part, 'type'))}"
            )
            for number, part in enumerate(message.parts, 1)
        ]
        self.by_id.setdefault(name, len(self.conversation.drafts))
        self.undone = self.undone or bool(name and name == self._reverted())
        if message.problem:
            head.skip(message.problem)
        elif self.undone:
            _skip([head, *lines], "undone by the user")
        elif role == "user":
            self._user(head, lines, message)
        elif role == "assistant" and (info.get("summary") is True):
            self._summary(head, lines, message)
        elif role == "assistant":
            self._assistant(head, lines, message)
        else:
            head.is_unknown("expected a message of the role user or assistant")
            _skip(lines, "a part of a message that is not known")

    def finish(self) -> Conversation:
        """Return the conversation."""
        conversation = self.conversation
        if self.models:
            conversation.model = self.models.most_common(1)[0][0]
        say_injected(conversation, "OpenCode (files that were named, prompts to go on)")
        if self.pruned:
            conversation.caveats.append(
                f"{self.pruned} results were cleared from the context later; they stand in the "
                "history, and the clearing is not recorded as a cut"
            )
        return conversation

    def _reverted(self) -> str:
        return text_of(mapping_of(self.info, "revert"), "messageID")

    def _user(self, head: Line, lines: list[Line], message: _Message) -> None:
        asked = next(
            (part for part in message.parts if text_of(part, "type") == "compaction"), None
        )
        if asked is not None:
            self.asked[text_of(message.info, "id")] = asked
            _skip([head, *lines], "asks for a compaction, which is recorded beside the messages")
            return
        typed, made = Draft("user"), Draft("user", injected=True)
        for part, line in zip(message.parts, lines, strict=True):
            kind = text_of(part, "type")
            draft = typed
            if kind == "text" and part.get("ignored") is True:
                line.skip("shown to the user only")
            elif kind == "text":
                if part.get("synthetic") is True:
                    draft, line.kind = made, f"{line.kind}:synthetic"
                draft.content.append(text_of(part, "text"))
                line.merge(draft)
            elif kind == "file" and text_of(part, "mime") in _TEXT_FILES:
                line.skip("a file that was named; its text is a part of its own")
            elif kind == "file":
                draft.content.append(_file(part))
                line.merge(draft)
            elif kind == "subtask":
                draft.content.append(text_of(part, "prompt"))
                line.merge(draft)
            else:
                _other(kind, line)
        drafts = [draft for draft in (typed, made) if draft.content] or [typed]
        self.conversation.drafts += [head.became(draft) for draft in drafts]

    def _assistant(self, head: Line, lines: list[Line], message: _Message) -> None:
        error = mapping_of(message.info, "error")
        kinds = {text_of(part, "type") for part in message.parts} - {"step-start", "reasoning"}
        if error and not (text_of(error, "name") == "MessageAbortedError" and kinds):
            _skip([head, *lines], "a failed request, which the model does not see again")
            return
        self._count(message.info)
        draft, results = Draft("assistant"), []
        for part, line in zip(message.parts, lines, strict=True):
            kind = text_of(part, "type")
            if kind == "text":
                draft.content.append(text_of(part, "text"))
                line.merge(draft)
            elif kind == "tool":
                call, result = _call(part)
                draft.calls.append(call)
                self.pruned += "compacted" in mapping_of(mapping_of(part, "state"), "time")
                line.merge(draft)
                if result is not None:
                    results.append(line.became(result))
            elif kind == "reasoning":
                leave_out_thinking(line)
                line.skip("thinking is left out")
            else:
                _other(kind, line)
        self.conversation.drafts += [head.became(draft), *results]

    def _summary(self, head: Line, lines: list[Line], message: _Message) -> None:
        """Take the answer to a compaction's request."""
        texts = [text_of(part, "text") for part in message.parts if text_of(part, "type") == "text"]
        summary = "\n".join(text for text in texts if text)
        if not summary or mapping_of(message.info, "error"):
            _skip([head, *lines], "a compaction that failed")
            return
        drafts = self.conversation.drafts
        asked = self.asked.get(text_of(message.info, "parentID"))
        start = self.by_id.get(text_of(asked, "tail_start_id"), len(drafts))
        made = [Draft("user", [_QUESTION], injected=True)] if asked is not None else []
        self.fresh = Compaction(
            after=drafts[-1] if drafts else None,
            trigger="" if asked is None else "auto" if asked.get("auto") is True else "manual",
            summary=summary,
            tokens_before=self.tokens,
            state=[*drafts[start:], *made, Draft("assistant", [summary])],
        )
        self.conversation.compactions.append(self.fresh)
        _skip([head, *lines], "a compaction, recorded beside the messages")

    def _count(self, info: dict[str, Any]) -> None:
        """Take how full the context was; the first count after a compaction is its outcome."""
        model = "/".join(filter(None, (text_of(info, "providerID"), text_of(info, "modelID"))))
        if model:
            self.models[origin(model)] += 1
        tokens, cache = mapping_of(info, "tokens"), mapping_of(mapping_of(info, "tokens"), "cache")
        sent = sum(
            count_of(*each) or 0 for each in ((tokens, "input"), (cache, "read"), (cache, "write"))
        )
        if not sent:
            return
        if self.fresh is not None:
            self.fresh.tokens_after, self.fresh = sent, None
        self.tokens = sent + (count_of(tokens, "output") or 0)


def _call(part: Any) -> tuple[DraftCall, Draft | None]:
    """Return a call and its result; None if it was not carried out."""
    state = mapping_of(part, "state")
    status = text_of(state, "status")
    given = state.get("input")
    call = DraftCall(text_of(part, "callID"), text_of(part, "tool"), as_text(given))
    text: str | None = None
    if status == "completed":
        text = text_of(state, "output")
    elif status == "error":
        metadata = mapping_of(state, "metadata")
        stopped = metadata.get("interrupted") is True
        text = (text_of(metadata, "output") if stopped else "") or text_of(state, "error")
    if text is None:
        return call, None
    files = [_file(item) for item in list_of(state, "attachments") if isinstance(item, dict)]
    return call, Draft("tool", [text, *files], call_id=call.id)


def _skip(lines: list[Line], reason: str) -> None:
    for line in lines:
        line.skip(reason)


def _other(kind: str, line: Line) -> None:
    if kind in _SKIPPED:
        line.skip(_SKIPPED[kind])
    else:
        line.is_unknown("a kind of part that OpenCode is not known to write")


def _file(part: dict[str, Any]) -> str | Image:
    media_type, url = text_of(part, "mime"), text_of(part, "url")
    if media_type.startswith("image/"):
        return Image(media_type, url)
    return f"[file: {text_of(part, 'filename') or media_type or 'unnamed'}]"


def _thread(info: dict[str, Any]) -> _Thread:
    conversation = Conversation(
        FORMAT.name,
        origin("OpenCode", text_of(info, "version")),
        text_of(info, "id"),
        Ledger(),
        caveats=[NO_SYSTEM_PROMPT, NO_TOOLS],
    )
    if text_of(info, "parentID") or text_of(info, "parent_id"):
        conversation.part = "subagent"
        conversation.caveats.append("a sub-agent's session: its user is another agent")
    conversation.ledger.enter("session", "session").skip("it describes the session")
    return _Thread(info, conversation)


def _is_export(value: Any) -> bool:
    messages = list_of(value, "messages")
    return bool(messages and text_of(mapping_of(value, "info"), "id")) and all(
        isinstance(message, dict)
        and isinstance(message.get("info"), dict)
        and isinstance(message.get("parts"), list)
        for message in messages[:20]
    )


def _is_session(source: SourceFile) -> bool:
    """Return whether a file is a session of the older storage, whose messages lie elsewhere."""
    value = source.document
    name = text_of(value, "id")
    return (
        re.fullmatch(r"[\w-]+", name) is not None
        and {"projectID", "directory", "time"} <= value.keys()
        and source.path.parent.parent.name == "session"
        and (source.path.parents[2] / "message" / name).is_dir()
    )


def _recognise(source: SourceFile) -> str | None:
    if source.magic.startswith(b"SQLite format 3"):
        tables = "an SQLite database with the tables session, message and part"
        return tables if has_tables(source.path, _TABLES) else None
    if _is_export(source.document):
        return "an object with info, and messages of info and parts"
    return "a session beside a folder with its messages" if _is_session(source) else None


def _read(source: SourceFile) -> Iterator[Conversation]:
    if source.magic.startswith(b"SQLite format 3"):
        yield from _database(source.path)
    elif _is_export(source.document):
        thread = _thread(source.document["info"])
        for number, message in enumerate(list_of(source.document, "messages"), 1):
            place = f"message {number}"
            if isinstance(message, dict):
                found = _Message(place, mapping_of(message, "info"), list_of(message, "parts"))
            else:
                found = _Message(place, {}, [], "expected an object")
            thread.take(found)
        yield thread.finish()
    elif _is_session(source):
        thread = _thread(source.document)
        for stored in _stored(source.path.parents[2], text_of(source.document, "id")):
            thread.take(stored)
        yield thread.finish()
    else:
        raise DataError(
            f"{source.path}: expected what opencode export writes, opencode.db, or a file of "
            "storage/session with its messages in storage/message"
        )


def _stored(storage: Path, session: str) -> Iterator[_Message]:
    """Yield the messages of a session of the older storage; ids rise with time."""
    for number, path in enumerate(sorted((storage / "message" / session).glob("*.json")), 1):
        info, problem = _json(path)
        parts: list[Any] = []
        for part in sorted((storage / "part" / path.stem).glob("*.json")):
            parts.append(_json(part)[0] or _UNREADABLE)
        yield _Message(f"message {number}", info, parts, problem)


def _json(path: Path) -> tuple[dict[str, Any], str]:
    """Return the object of a small file, or why there is none."""
    try:
        if path.stat().st_size > MAX_LINE_BYTES:
            return {}, f"the file is longer than {MAX_LINE_BYTES // 2**20} MiB"
        return _object(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        return {}, f"cannot be read: {error.strerror or error}"


def _object(text: Any) -> tuple[dict[str, Any], str]:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}, "not JSON"
    return (value, "") if isinstance(value, dict) else ({}, "expected an object")


def _database(path: Path) -> Iterator[Conversation]:
    with opened(path) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
        there = {table: columns(connection, table) for table in _TABLES}
        wanted = {"message": {"session_id", "data"}, "part": {"message_id", "data"}}
        for table, names in wanted.items():
            if missing := sorted(({"id"} | names) - there[table]):
                raise DataError(
                    f"{path}: expected the database of OpenCode, {table} has no column {missing[0]}"
                )
        optional = [name for name in ("parent_id", "version", "revert") if name in there["session"]]
        sessions = connection.execute(f"SELECT {', '.join(['id', *optional])} FROM session")  # noqa: S608
        for row in sessions.fetchall():
            info = dict(row)
            info["revert"] = _object(info.get("revert"))[0]
            thread = _thread(info)
            for number, message in enumerate(_rows(connection, row["id"], there), 1):
                thread.take(
                    _Message(f"message {number}", message.info, message.parts, message.problem)
                )
            if thread.by_id:
                yield thread.finish()


def _rows(
    connection: sqlite3.Connection, session: Any, there: dict[str, set[str]]
) -> Iterator[_Message]:
    """Yield the messages of a session; what is too long is not read."""
    data = f"CASE WHEN length(data) > {MAX_LINE_BYTES} THEN NULL ELSE data END AS data"
    order = "time_created, id" if "time_created" in there["message"] else "id"
    messages = connection.execute(
        f"SELECT id, {data} FROM message WHERE session_id IS ? ORDER BY {order}", (session,)  # noqa: S608
    )  # fmt: skip
    for row in messages:
        info, problem = _object(row["data"])
        if row["data"] is None:
            problem = f"the message is longer than {MAX_LINE_BYTES // 2**20} MiB"
        parts = connection.execute(
            f"SELECT {data} FROM part WHERE message_id IS ? ORDER BY id", (row["id"],)  # noqa: S608
        )  # fmt: skip
        found = [_object(part["data"])[0] or _UNREADABLE for part in parts]
        yield _Message("", {**info, "id": row["id"]}, found, problem)


FORMAT = Format(
    name="opencode",
    title="OpenCode (export, opencode.db, storage/session)",
    recognise=_recognise,
    read=_read,
)
