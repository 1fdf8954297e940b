"""Conversations of Cursor: agent transcripts, what its CLI prints, and the store ``state.vscdb``.

Transcripts (``agent-transcripts/*.jsonl``) hold calls without ids and no results. What
``cursor-agent --output-format stream-json`` prints, and the store, hold both.
"""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, ClassVar

from compression_eval.conversations.drafts import NO_THINKING, Conversation, Draft, Line
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
    """A transcript, or the stream that the CLI prints."""

    format = "cursor"
    expected = "expected lines of a Cursor transcript, found none"
    subtype = ("subtype",)

    def __init__(self) -> None:
        super().__init__("Cursor")
        self._said: Draft | None = None
        """The message that pieces of a stream are added to."""
        self._callers: dict[str, Draft] = {}

    def kind_of(self, entry: Json) -> str:
        return entry.first("type", "role")

    def take(self, line: Line, entry: Json) -> None:
        self.session = self.session or entry.text("session_id")
        if self.kind_of(entry) == "system" and entry.text("model"):
            self.model = origin(entry.text("model"))
        super().take(line, entry)

    def message(self, line: Line, entry: Json) -> None:
        content = entry.at("message", "content")
        if not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
        elif self.kind_of(entry) == "assistant":
            self._answer(line, content, streamed="session_id" in entry)
        else:
            self._said = None
            for draft in user_drafts(content, line):
                if draft.role == "user":
                    draft.content = [_typed(part, line) for part in draft.content]
                self.say(line, draft)

    def _answer(self, line: Line, content: Any, *, streamed: bool) -> None:
        """Take what the model said, or a piece of it."""
        said = self._said
        drafts = AssistantTurn().add(content, line)
        for draft in drafts:
            for number, part in enumerate(draft.content):
                if isinstance(part, str) and _REDACTED.search(part):
                    line.leave_out_thinking()
                    draft.content[number] = _REDACTED.sub("", part)
        if streamed and said is not None and len(drafts) == 1 and not drafts[0].calls:
            # Pieces of one message; the whole of it may follow them.
            if drafts[0].text != said.text:
                said.content = [said.text + drafts[0].text]
            return
        self.say(line, *drafts)
        self._said = drafts[-1] if streamed and drafts and not drafts[-1].calls else None

    def tool(self, line: Line, entry: Json) -> None:
        """Take the start or the end of a call: ``{"readToolCall": {"args", "result"}}``."""
        self._said = None
        tool = entry.entry("tool_call")
        kind = next((key for key, part in tool.items() if isinstance(part, dict)), "")
        if not kind:
            line.is_unknown("expected the field tool_call with the call of a tool")
            return
        body, call_id = tool.entry(kind), entry.text("call_id")
        given = "arguments" if kind == "function" else "args"
        name = body.text("name") or body.text(given, "toolName") or kind.removesuffix("ToolCall")
        if call_id not in self._callers:
            self._callers[call_id] = draft = Draft("assistant")
            draft.call(call_id, name, body.at(given))
            self.say(line, draft)
        if entry.text("subtype") == "completed":
            result = body.at("result")
            text = as_text(result)
            if isinstance(result, dict) and result.keys() == {"success"}:
                text = body.text("result", "success", "content") or as_text(result["success"])
            self.say(line, Draft("tool", [text], call_id=call_id))
        self.recognised = True

    kinds: ClassVar[Table] = {
        "tool_call": tool,
        "system": "the head of the stream",
        "user": message,
        "assistant": message,
        "turn_ended": "a mark that the turn ended",
        "result": "the outcome of the stream; its text is the last message's",
        "thinking": NO_THINKING,
        "error": "an error that ended the run",
        "connection": "a notice of the client",
        "retry": "a notice of the client",
        "interaction_query": "a question to the user",
    }

    def finish(self) -> Conversation:
        drafts = self.drafts
        if any(draft.calls for draft in drafts) and not any(d.role == "tool" for d in drafts):
            self.caveat("Cursor writes no results of tools into transcripts")
        return self


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


def _is_streamed(value: Json) -> bool:
    """Return whether a value is a call of a stream, or its head; other agents' name their tools."""
    calls = value.entry("tool_call") if value.text("type") == "tool_call" else {}
    return any(key.endswith("ToolCall") or key == "function" for key in calls) or (
        value.text("subtype") == "init"
        and {"apiKeySource", "session_id", "permissionMode"} <= value.keys()
        and "tools" not in value
    )


def _recognise(source: SourceFile) -> str | None:
    if is_database(source):
        found = has_tables(source.path, _TABLE)
        return "an SQLite database with the table cursorDiskKV" if found else None
    line = sign(source.head, (_is_line, "lines with role, and a message with content"))
    stream = (_is_streamed, "lines of a stream with calls such as readToolCall")
    return line or sign(source.head, stream)


def _read(source: SourceFile) -> Iterator[Conversation]:
    if not is_database(source):
        yield from read_lines(source, _Lines())
        return
    if not has_tables(source.path, _TABLE):
        raise DataError(f"{source.path}: expected Cursor's store with the table cursorDiskKV")
    with opened(source.path) as connection:
        yield from _database(connection)


FORMAT = Format("cursor", _recognise, _read)
