"""Conversations of Cursor: agent transcripts and the store ``state.vscdb``.

Transcripts (``agent-transcripts/*.jsonl``) hold calls without ids and no results; the store holds
both.
"""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, ClassVar

from compression_eval.conversations.drafts import Conversation, Draft, Line
from compression_eval.conversations.fields import Json, as_text, from_json, origin
from compression_eval.conversations.readers.anthropic import AssistantTurn, user_drafts
from compression_eval.conversations.readers.base import (
    Format,
    Reader,
    Table,
    read_lines,
    sign,
    summary_draft,
)
from compression_eval.conversations.readers.sqlite import (
    LONGEST,
    has_tables,
    is_database,
    opened,
    short,
    stored_object,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.errors import DataError

_TABLE = ("cursorDiskKV",)
_USER, _ASSISTANT = 1, 2
"""Types of bubbles, as the messages of the store are called."""
_QUERY = ("<user_query>", "</user_query>")
_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z")
"""Stands in transcripts where the model thought."""


class _Lines(Reader):
    """A transcript."""

    format = "cursor"
    expected = "expected lines of a Cursor transcript, found none"

    def __init__(self) -> None:
        super().__init__("Cursor")

    def kind_of(self, entry: Json) -> str:
        return entry.first("type", "role")

    def message(self, line: Line, entry: Json) -> None:
        content = entry.at("message", "content")
        if not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
            return
        answers = self.kind_of(entry) == "assistant"
        drafts = AssistantTurn().add(content, line) if answers else user_drafts(content, line)
        for draft in drafts:
            if answers:
                draft.content = [_without_mark(part, line) for part in draft.content]
            elif draft.role == "user":
                draft.content = [_typed(part, line) for part in draft.content]
        self.say(line, *drafts)

    kinds: ClassVar[Table] = {
        "user": message,
        "assistant": message,
        "turn_ended": "a mark that the turn ended",
    }

    def finish(self) -> Conversation:
        if self.called and not any(draft.role == "tool" for draft in self.drafts):
            self.caveat("Cursor writes no results of tools into transcripts")
        return self


def _without_mark(part: Any, line: Line) -> Any:
    """Return what the model said, without the mark for what it thought."""
    if not isinstance(part, str) or not _REDACTED.search(part):
        return part
    line.leave_out_thinking()
    return _REDACTED.sub("", part)


def _typed(part: Any, line: Line) -> Any:
    """Return what the user typed, without the client's notes around it."""
    if not isinstance(part, str):
        return part
    before, opened, rest = part.partition(_QUERY[0])
    typed, closed, after = rest.rpartition(_QUERY[1])
    if not (opened and closed):
        return part
    if before.strip() or after.strip():
        line.leave_out("notes", "what the client put round the user's words")
    return typed.strip("\n")


class _Composer(Reader):
    """One conversation of the store."""

    format = "cursor"

    def __init__(self, identifier: str, data: Json) -> None:
        super().__init__("Cursor", identifier)
        self.model = origin(data.text("modelConfig", "modelName"))
        if data.text("parentComposerId") or data.entry("subagentInfo"):
            self.name_subagent()
        self._starts: dict[str, int] = {}
        """How many messages there were before a bubble, by its id."""
        self._latest = data.entry("latestConversationSummary")

    def bubble(self, place: str, bubble: Json, problem: str) -> None:
        kind, tool = bubble.at("type"), bubble.entry("toolFormerData")
        names = {_USER: "user", _ASSISTANT: "tool" if tool else "assistant"}
        name = names.get(kind if isinstance(kind, int) else 0, "other")
        line = self.enter(place, f"bubble:{name}")
        self._starts.setdefault(bubble.text("bubbleId"), len(self.drafts))
        if problem:
            line.skip(problem)
            return
        if bubble.at("thinking") or bubble.at("allThinkingBlocks"):
            line.leave_out_thinking()
        if bubble.listed("images"):
            line.leave_out("images", "the store names them only")
        if bubble.listed("attachedCodeChunks"):
            line.leave_out("attached code", "what the client put round the user's words")
        if kind == _USER:
            self.say(line, Draft("user", [bubble.text("text")]))
        elif kind == _ASSISTANT:
            draft = Draft("assistant", [bubble.text("text")])
            self.say(line, draft)
            if tool:
                call_id = tool.text("toolCallId") or bubble.text("bubbleId")
                draft.call(call_id, tool.text("name"), tool.at("rawArgs") or tool.at("params"))
                if result := tool.at("result") or tool.at("error"):
                    self.say(line, Draft("tool", [as_text(result)], call_id=call_id))
        else:
            line.is_unknown("expected a bubble of type 1 or 2")
        summary = bubble.at("conversationSummary")
        self._compacted(Json.of(summary if isinstance(summary, dict) else from_json(summary)))

    def finish(self) -> Conversation:
        if not self.compactions:
            end = self._starts.get(self._latest.text("lastBubbleId"))
            inner = self._latest.at("summary")
            self._compacted(Json(inner) if isinstance(inner, dict) else self._latest, end)
        return self

    def _compacted(self, summary: Json, end: int | None = None) -> None:
        """Record a summary; messages from the first that is still sent were kept."""
        text, drafts = summary.text("summary"), self.drafts
        if text:
            end = len(drafts) if end is None else end
            first = summary.text("clientShouldStartSendingFromInclusiveBubbleId")
            kept = drafts[self._starts[first] : end] if first in self._starts else []
            after = drafts[end - 1] if end else None
            self.compact(text, [summary_draft(text), *kept], after=after)


def _stored(connection: sqlite3.Connection, key: str) -> tuple[Json, str]:
    """Return the object under a key of the store, or why there is none."""
    row = connection.execute(
        f"SELECT {short('value')}, value IS NOT NULL FROM cursorDiskKV WHERE key = ?",  # noqa: S608
        (key.encode(errors="replace").decode(),),
    ).fetchone()
    if row is None:
        return Json(), "it is not in the store"
    if row[0] is None and row[1]:
        return Json(), f"it is longer than {LONGEST}"
    text = row[0].decode("utf-8", errors="replace") if isinstance(row[0], bytes) else row[0]
    return stored_object(text)


def _bubbles(
    connection: sqlite3.Connection, composer: str, data: Json
) -> Iterator[tuple[Json, str]]:
    """Yield the messages of a conversation, from wherever its version keeps them."""
    inline = data.listed("conversation")
    for bubble in inline:
        yield Json.of(bubble), "" if isinstance(bubble, dict) else "expected an object"
    for header in data.entries("fullConversationHeadersOnly") if not inline else ():
        name = header.text("bubbleId")
        found, problem = data.entry("conversationMap", name), ""
        if not found:
            found, problem = _stored(connection, f"bubbleId:{composer}:{name}")
        yield Json({**found, "bubbleId": name}), problem


def _database(connection: sqlite3.Connection) -> Iterator[Conversation]:
    keys = connection.execute(
        "SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' "
        "ORDER BY rowid"
    ).fetchall()
    for identifier in (str(row[0]).partition(":")[2] for row in keys):
        data, problem = _stored(connection, f"composerData:{identifier}")
        composer = _Composer(identifier, data)
        if problem:
            composer.enter("conversation", "composerData").skip(problem)
        number = 0
        for number, (bubble, fault) in enumerate(_bubbles(connection, identifier, data), 1):
            composer.bubble(f"bubble {number}", bubble, fault)
        # Cursor keeps an entry for every window in which nothing was ever typed.
        if number or problem:
            yield composer.finish()


def _is_line(value: Json) -> bool:
    """Return whether a value is a line of a transcript: a role, and a message without one."""
    return (
        value.text("role") in ("user", "assistant")
        and value.keys() <= {"role", "message", "timestamp"}
        and "content" in value.entry("message")
    )


def _recognise(source: SourceFile) -> str | None:
    if is_database(source):
        found = has_tables(source.path, _TABLE)
        return "an SQLite database with the table cursorDiskKV" if found else None
    return sign(source.head, _is_line, "lines with role, and a message with content")


def _read(source: SourceFile) -> Iterator[Conversation]:
    if not is_database(source):
        yield from read_lines(source, _Lines())
        return
    if not has_tables(source.path, _TABLE):
        raise DataError(f"{source.path}: expected Cursor's store with the table cursorDiskKV")
    with opened(source.path) as connection:
        yield from _database(connection)


FORMAT = Format("cursor", _recognise, _read)
