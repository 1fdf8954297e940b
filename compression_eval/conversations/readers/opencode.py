"""Sessions of OpenCode: ``opencode export``, its database, and the files of older versions.

All hold the same: a session, its messages, and the parts of each. A compaction is a user message
with a part of that name and the assistant message behind it, whose text is the summary.
"""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import (
    RECORDED,
    Compaction,
    Conversation,
    Draft,
    DraftCall,
    Image,
)
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    from_json,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
    value_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    NO_THINKING,
    Entry,
    Reader,
    is_subagent,
    leave_out_thinking,
    say_injected,
)
from compression_eval.conversations.readers.sqlite import (
    has_tables,
    is_database,
    opened,
    stored_object,
    tables,
)
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile
from compression_eval.fixtures.errors import DataError

_TABLES = ("session", "message", "part")
_QUESTION = "What did we do so far?"
"""What OpenCode shows the model for the message that asked for a compaction."""
_TEXT_FILES = ("text/plain", "application/x-directory")
_LONG = f"{MAX_LINE_BYTES // 2**20} MiB"
_SKIPPED = {
    "step-start": "a mark of a step's course",
    "step-finish": "an account of tokens",
    "snapshot": "a snapshot of the files for undoing",
    "patch": "a list of the files that a step changed",
    "agent": "the name of the agent that the user chose",
    "retry": "a failed request that was tried again",
    "unreadable": f"it is no JSON object, or longer than {_LONG}",
}
_UNREADABLE = {"type": "unreadable"}


class _Thread(Reader):
    """A session that is being read."""

    format = "opencode"

    def __init__(self, info: Entry) -> None:
        super().__init__(origin("OpenCode", text_of(info, "version")), text_of(info, "id"))
        if text_of(info, "parentID") or text_of(info, "parent_id"):
            is_subagent(self.conversation, "session")
        self.conversation.ledger.enter("session", "session").skip("it describes the session")
        self._reverted = text_of(info, "revert", "messageID")
        self._undone = False
        self._starts: dict[str, int] = {}
        """How many drafts there were before a message, by its id."""
        self._asked: dict[str, Entry] = {}
        """Parts that ask for a compaction, by the ids of their messages."""
        self._fresh: Compaction | None = None
        """The compaction that no request has followed yet."""
        self._tokens: int | None = None
        self._pruned = 0
        self._count = 0

    def message(self, info: Entry, parts: list[Any], problem: str = "") -> None:
        """Enter a message and its parts.

        Args:
            info: The message as it is stored.
            parts: Its parts.
            problem: Why it cannot be read; empty if it can.
        """
        enter, role, name = (
            self.conversation.ledger.enter,
            text_of(info, "role"),
            text_of(info, "id"),
        )
        self._count += 1
        self.recognised = True
        head = enter(f"message {self._count}", f"message:{label(role)}")
        lines = [
            enter(f"{head.place}, part {number}", f"part:{label(text_of(part, 'type'))}")
            for number, part in enumerate(parts, 1)
        ]
        self._starts.setdefault(name, len(self.conversation.drafts))
        self._undone = self._undone or bool(name and name == self._reverted)
        if problem:
            head.skip(problem)
        elif self._undone:
            _skip([head, *lines], "undone by the user")
        elif role == "user":
            self._user(head, lines, info, parts)
        elif role == "assistant" and info.get("summary") is True:
            self._summary(head, lines, info, parts)
        elif role == "assistant":
            self._assistant(head, lines, info, parts)
        else:
            head.is_unknown("expected a message of the role user or assistant")
            _skip(lines, "a part of a message that is not known")

    def finish(self) -> Conversation:
        conversation = super().finish()
        say_injected(conversation, "OpenCode (files that were named, prompts to go on)")
        if self._pruned:
            conversation.caveats.append(
                f"{self._pruned} results were cleared from the context later; they stand in the "
                "history, and the clearing is not recorded as a cut"
            )
        return conversation

    def _user(self, head: Line, lines: list[Line], info: Entry, parts: list[Any]) -> None:
        asked = next((part for part in parts if text_of(part, "type") == "compaction"), None)
        if asked is not None:
            self._asked[text_of(info, "id")] = asked
            _skip([head, *lines], "asks for a compaction, which is recorded beside the messages")
            return
        typed, made = Draft("user"), Draft("user", injected=True)
        for part, line in zip(parts, lines, strict=True):
            draft, content = typed, list[str | Image]()
            match text_of(part, "type"):
                case "text" if part.get("ignored") is True:
                    line.skip("shown to the user only")
                case "text":
                    content = [text_of(part, "text")]
                    if part.get("synthetic") is True:
                        draft, line.kind = made, f"{line.kind}:synthetic"
                case "file" if text_of(part, "mime") in _TEXT_FILES:
                    line.skip("a file that was named; its text is a part of its own")
                case "file":
                    content = [_file(part)]
                case "subtask":
                    content = [text_of(part, "prompt")]
                case kind:
                    _other(kind, line)
            if content:
                draft.content += content
                line.merge(draft)
        drafts = [draft for draft in (typed, made) if draft.content] or [typed]
        self.conversation.say(head, *drafts)

    def _assistant(self, head: Line, lines: list[Line], info: Entry, parts: list[Any]) -> None:
        kinds = {text_of(part, "type") for part in parts} - {"step-start", "reasoning"}
        aborted = text_of(info, "error", "name") == "MessageAbortedError" and kinds
        if mapping_of(info, "error") and not aborted:
            _skip([head, *lines], "a failed request, which the model does not see again")
            return
        self._take_usage(info)
        draft, results = Draft("assistant"), list[Draft]()
        for part, line in zip(parts, lines, strict=True):
            match text_of(part, "type"):
                case "text":
                    draft.content.append(text_of(part, "text"))
                    line.merge(draft)
                case "tool":
                    call_id, state = text_of(part, "callID"), mapping_of(part, "state")
                    arguments = as_text(state.get("input"))
                    draft.calls.append(DraftCall(call_id, text_of(part, "tool"), arguments))
                    self._pruned += "compacted" in mapping_of(state, "time")
                    line.merge(draft)
                    if (text := _output(state)) is not None:
                        items = list_of(state, "attachments")
                        files = [_file(item) for item in items if isinstance(item, dict)]
                        result = Draft("tool", [text, *files], call_id=call_id)
                        results.append(line.became(result))
                case "reasoning":
                    leave_out_thinking(line)
                    line.skip(NO_THINKING)
                case kind:
                    _other(kind, line)
        self.conversation.drafts += [head.became(draft), *results]

    def _summary(self, head: Line, lines: list[Line], info: Entry, parts: list[Any]) -> None:
        texts = [text_of(part, "text") for part in parts if text_of(part, "type") == "text"]
        summary = "\n".join(text for text in texts if text)
        if not summary or mapping_of(info, "error"):
            _skip([head, *lines], "a compaction that failed")
            return
        drafts = self.conversation.drafts
        asked = self._asked.get(text_of(info, "parentID"))
        start = self._starts.get(text_of(asked, "tail_start_id"), len(drafts))
        made = [Draft("user", [_QUESTION], injected=True)] if asked is not None else []
        trigger = "" if asked is None else "auto" if asked.get("auto") is True else "manual"
        self._fresh = self.conversation.compact(
            summary,
            [*drafts[start:], *made, Draft("assistant", [summary])],
            trigger=trigger,
            tokens_before=self._tokens,
        )
        _skip([head, *lines], RECORDED)

    def _take_usage(self, info: Entry) -> None:
        """Take how full the context was; the first count after a compaction is its outcome."""
        model = "/".join(filter(None, (text_of(info, "providerID"), text_of(info, "modelID"))))
        if model:
            self.models[origin(model)] += 1
        tokens = mapping_of(info, "tokens")
        cached = [count_of(tokens, "cache", key) or 0 for key in ("read", "write")]
        if sent := (count_of(tokens, "input") or 0) + sum(cached):
            if self._fresh is not None:
                self._fresh.tokens_after, self._fresh = sent, None
            self._tokens = sent + (count_of(tokens, "output") or 0)


def _output(state: Entry) -> str | None:
    """Return what a call gave; None if it was not carried out."""
    match text_of(state, "status"):
        case "completed":
            return text_of(state, "output")
        case "error":
            stopped = value_of(state, "metadata", "interrupted") is True
            output = text_of(state, "metadata", "output") if stopped else ""
            return output or text_of(state, "error")
    return None


def _skip(lines: list[Line], reason: str) -> None:
    for line in lines:
        line.skip(reason)


def _other(kind: str, line: Line) -> None:
    if kind in _SKIPPED:
        line.skip(_SKIPPED[kind])
    else:
        line.is_unknown("a kind of part that OpenCode is not known to write")


def _file(part: Entry) -> str | Image:
    media_type = text_of(part, "mime")
    if media_type.startswith("image/"):
        return Image(media_type, text_of(part, "url"))
    return f"[file: {text_of(part, 'filename') or media_type or 'unnamed'}]"


def _is_export(value: Any) -> bool:
    messages = list_of(value, "messages")
    return bool(messages and text_of(value, "info", "id")) and all(
        isinstance(value_of(message, "info"), dict) and isinstance(value_of(message, "parts"), list)
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
    if is_database(source):
        found = "an SQLite database with the tables session, message and part"
        return found if has_tables(source.path, _TABLES) else None
    if _is_export(source.document):
        return "an object with info, and messages of info and parts"
    return "a session beside a folder with its messages" if _is_session(source) else None


def _read(source: SourceFile) -> Iterator[Conversation]:
    if is_database(source):
        yield from _database(source.path)
    elif _is_export(source.document):
        thread = _Thread(source.document["info"])
        for message in list_of(source.document, "messages"):
            problem = "" if isinstance(message, dict) else "expected an object"
            thread.message(mapping_of(message, "info"), list_of(message, "parts"), problem)
        yield thread.finish()
    elif _is_session(source):
        thread = _Thread(source.document)
        storage, session = source.path.parents[2], text_of(source.document, "id")
        # Ids rise with time.
        for path in sorted((storage / "message" / session).glob("*.json")):
            info, problem = _json(path)
            parts = sorted((storage / "part" / path.stem).glob("*.json"))
            thread.message(info, [_json(part)[0] or _UNREADABLE for part in parts], problem)
        yield thread.finish()
    else:
        raise DataError(
            f"{source.path}: expected what opencode export writes, opencode.db, or a file of "
            "storage/session with its messages in storage/message"
        )


def _json(path: Path) -> tuple[Entry, str]:
    """Return the object of a small file, or why there is none."""
    try:
        if path.stat().st_size > MAX_LINE_BYTES:
            return {}, f"the file is longer than {_LONG}"
        return stored_object(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        return {}, f"cannot be read: {error.strerror or error}"


def _database(path: Path) -> Iterator[Conversation]:
    wanted = {
        "session": set[str](),
        "message": {"id", "session_id", "data"},
        "part": {"id", "message_id", "data"},
    }
    with opened(path) as connection:
        there = tables(connection, path, "OpenCode", wanted)
        optional = [name for name in ("parent_id", "version", "revert") if name in there["session"]]
        order = "time_created, id" if "time_created" in there["message"] else "id"
        sessions = connection.execute(f"SELECT {', '.join(['id', *optional])} FROM session")  # noqa: S608
        for row in sessions.fetchall():
            session = dict(row)
            thread = _Thread({**session, "revert": mapping_of(from_json(session.get("revert")))})
            _take_messages(thread, connection, row["id"], order)
            if thread.recognised:
                yield thread.finish()


def _take_messages(
    thread: _Thread, connection: sqlite3.Connection, session: Any, order: str
) -> None:
    """Feed the messages of a session; what is too long is not read."""
    data = f"CASE WHEN length(data) > {MAX_LINE_BYTES} THEN NULL ELSE data END AS data"
    messages = f"SELECT id, {data} FROM message WHERE session_id IS ? ORDER BY {order}"  # noqa: S608
    parts = f"SELECT {data} FROM part WHERE message_id IS ? ORDER BY id"  # noqa: S608
    for row in connection.execute(messages, (session,)):
        info, problem = stored_object(row["data"])
        if row["data"] is None:
            problem = f"the message is longer than {_LONG}"
        stored = connection.execute(parts, (row["id"],))
        found = [stored_object(part["data"])[0] or _UNREADABLE for part in stored]
        thread.message({**info, "id": row["id"]}, found, problem)


FORMAT = Format("opencode", "OpenCode (export, opencode.db, storage/session)", _recognise, _read)
