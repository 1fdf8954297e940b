"""Conversations of Cursor: agent transcripts and the store ``state.vscdb``.

Transcripts (``agent-transcripts/*.jsonl``) contain calls without ids and no results; the store
contains both.
"""

import re
import sqlite3
from collections.abc import Iterator
from typing import ClassVar

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
    has_tables,
    is_database,
    opened,
    stored_object,
)
from compression_eval.conversations.sources import SourceFile

_USER, _ASSISTANT = 1, 2
"""Types of bubbles, as the messages of the store are called."""
_QUERY = re.compile(r"(.*?)<user_query>(.*)</user_query>(.*)", re.DOTALL)
_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z")
"""Stands in transcripts where the model thought."""


class _Lines(Reader):
    """A transcript."""

    format = "cursor"

    def kind_of(self, entry: Json) -> str:
        return entry.first("type", "role")

    def message(self, line: Line, entry: Json) -> None:
        content = entry.at("message", "content")
        if not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
            return
        if self.kind_of(entry) == "assistant":
            drafts, change = AssistantTurn().add(content, line), _without_mark
        else:
            drafts, change = user_drafts(content, line), _typed
        for draft in drafts:
            if draft.role != "tool":
                parts = draft.content
                draft.content = [change(p, line) if isinstance(p, str) else p for p in parts]
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


def _without_mark(text: str, line: Line) -> str:
    """Return what the model said, without the mark for what it thought."""
    said = _REDACTED.sub("", text)
    if said != text:
        line.leave_out_thinking()
    return said


def _typed(text: str, line: Line) -> str:
    """Return what the user typed, without the client's notes around it."""
    found = _QUERY.fullmatch(text)
    if found is None:
        return text
    if found[1].strip() or found[3].strip():
        line.leave_out("notes", "what the client put round the user's words")
    return found[2].strip("\n")


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
        if name == "other":
            line.is_unknown("expected a bubble of type 1 or 2")
        else:
            draft = Draft("user" if name == "user" else "assistant", [bubble.text("text")])
            self.say(line, draft)
        if name == "tool":
            call_id = tool.text("toolCallId") or bubble.text("bubbleId")
            draft.call(call_id, tool.text("name"), tool.at("rawArgs") or tool.at("params"))
            if result := tool.at("result") or tool.at("error"):
                self.say(line, Draft("tool", [as_text(result)], call_id=call_id))
        summary = bubble.at("conversationSummary")
        self._compacted(Json.of(summary if isinstance(summary, dict) else from_json(summary)))

    def finish(self) -> Conversation:
        if not self.compactions:
            end = self._starts.get(self._latest.text("lastBubbleId"))
            self._compacted(self._latest.entry("summary") or self._latest, end)
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
    query = "SELECT value FROM cursorDiskKV WHERE key = ?"
    row = connection.execute(query, (key.encode(errors="replace").decode(),)).fetchone()
    return (Json(), "it is not in the store") if row is None else stored_object(row[0])


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
    if has_tables(source, ("cursorDiskKV",)):
        return "an SQLite database with the table cursorDiskKV"
    return sign(source.head, _is_line, "lines with role, and a message with content")


def _read(source: SourceFile) -> Iterator[Conversation]:
    if is_database(source):
        with opened(source.path) as connection:
            yield from _database(connection)
    else:
        yield from read_lines(source, _Lines("Cursor"))


FORMAT = Format("cursor", _recognise, _read, "a transcript of Cursor, or its store state.vscdb")
