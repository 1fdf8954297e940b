"""Conversations of Cursor: agent transcripts, what its CLI prints, and the store ``state.vscdb``.

Transcripts (``agent-transcripts/*.jsonl``) hold calls without ids and no results. What
``cursor-agent --output-format stream-json`` prints, and the store, hold both.
"""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, ClassVar

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Conversation, Draft, DraftCall
from compression_eval.conversations.fields import (
    as_text,
    from_json,
    list_of,
    mapping_of,
    origin,
    text_of,
    value_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.anthropic import AssistantTurn, user_drafts
from compression_eval.conversations.readers.base import (
    NO_THINKING,
    Entry,
    Reader,
    Table,
    is_subagent,
    leave_out_thinking,
    nowhere,
    read_lines,
    summary_draft,
    with_subtype,
)
from compression_eval.conversations.readers.sqlite import (
    has_tables,
    is_database,
    opened,
    stored_object,
)
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile
from compression_eval.fixtures.errors import DataError

_TABLE = ("cursorDiskKV",)
_USER, _ASSISTANT = 1, 2
"""Types of bubbles, as the messages of the store are called."""
_QUERY = re.compile(r"<user_query>\n?(.*)\n?</user_query>", re.DOTALL)
_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z")
"""Stands in transcripts where the model thought."""


class _Lines(Reader):
    """A transcript, or the stream that the CLI prints."""

    format = "cursor"
    unknown = "a line of a kind that Cursor is not known to write"
    expected = "expected lines of a Cursor transcript, found none"

    def __init__(self) -> None:
        super().__init__("Cursor")
        self._said: Draft | None = None
        """The message that pieces of a stream are added to."""
        self._callers: dict[str, Draft] = {}

    def kind_of(self, entry: Any) -> str:
        """Return the type, or in a transcript the role."""
        return text_of(entry, "type") or text_of(entry, "role")

    def name_of(self, entry: Any) -> str:
        """Return the kind with the subtype."""
        return with_subtype(self.kind_of(entry), text_of(entry, "subtype"))

    def take(self, line: Line, entry: Any) -> None:
        self.conversation.session = self.conversation.session or text_of(entry, "session_id")
        if self.kind_of(entry) == "system" and text_of(entry, "model"):
            self.conversation.model = origin(text_of(entry, "model"))
        super().take(line, entry)

    def user(self, line: Line, entry: Entry) -> None:
        """Take what the user said."""
        content = value_of(entry, "message", "content")
        if not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
            return
        self._said = None
        for draft in user_drafts(content, line):
            if draft.role == "user":
                draft.content = [_typed(part, line) for part in draft.content]
            self.conversation.say(line, draft)

    def assistant(self, line: Line, entry: Entry) -> None:
        """Take what the model said, or a piece of it."""
        content, streamed = value_of(entry, "message", "content"), "session_id" in entry
        if not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
            return
        scratch = nowhere()
        drafts = AssistantTurn().add(content, scratch)
        line.left_out += scratch.left_out
        line.unknown, line.reason = scratch.unknown, scratch.reason
        for draft in drafts:
            draft.content = [_without_mark(part, line) for part in draft.content]
        said = self._said
        if streamed and said is not None and len(drafts) == 1 and not drafts[0].calls:
            # Pieces of one message; the whole of it may follow them.
            if drafts[0].text != said.text:
                said.content = [said.text + drafts[0].text]
            line.merge(said)
            return
        self.conversation.say(line, *drafts)
        self._said = drafts[-1] if streamed and drafts and not drafts[-1].calls else None

    def tool(self, line: Line, entry: Entry) -> None:
        """Take the start or the end of a call: ``{"readToolCall": {"args", "result"}}``."""
        self._said = None
        tool = mapping_of(entry, "tool_call")
        kind = next((key for key, part in tool.items() if isinstance(part, dict)), "")
        if not kind:
            line.is_unknown("expected the field tool_call with the call of a tool")
            return
        body, call_id = tool[kind], text_of(entry, "call_id")
        given = body.get("arguments" if kind == "function" else "args")
        name = text_of(body, "name") or text_of(given, "toolName") or kind.removesuffix("ToolCall")
        if call_id in self._callers:
            line.merge(self._callers[call_id])
        else:
            draft = Draft("assistant", calls=[DraftCall(call_id, name, as_text(given))])
            self._callers[call_id] = draft
            self.conversation.say(line, draft)
        if text_of(entry, "subtype") == "completed":
            result = Draft("tool", [_outcome(body.get("result"))], call_id=call_id)
            self.conversation.say(line, result)
        self.recognised = True

    kinds: ClassVar[Table] = {
        "tool_call": tool,
        "system": "the head of the stream",
        "user": user,
        "assistant": assistant,
        "turn_ended": "a mark that the turn ended",
        "result": "the outcome of the stream; its text is the last message's",
        "thinking": NO_THINKING,
        "error": "an error that ended the run",
        "connection": "a notice of the client",
        "retry": "a notice of the client",
        "interaction_query": "a question to the user",
    }

    def finish(self) -> Conversation:
        drafts = self.conversation.drafts
        if any(draft.calls for draft in drafts) and not any(d.role == "tool" for d in drafts):
            self.conversation.caveats.append("Cursor writes no results of tools into transcripts")
        return self.conversation


def _typed(part: Any, line: Line) -> Any:
    """Return what the user typed, without the client's notes around it."""
    found = _QUERY.search(part) if isinstance(part, str) else None
    if found is None:
        return part
    if _QUERY.sub("", part, count=1).strip():
        line.leave_out("notes", "what the client put round the user's words")
    return found[1].strip("\n")


def _without_mark(part: Any, line: Line) -> Any:
    if isinstance(part, str) and _REDACTED.search(part):
        leave_out_thinking(line)
        return _REDACTED.sub("", part)
    return part


def _outcome(result: Any) -> str:
    """Return a result: the text of ``{"success": {"content": text}}``, or the fields as JSON."""
    if isinstance(result, dict) and result.keys() == {"success"}:
        return text_of(result, "success", "content") or as_text(result["success"])
    return as_text(result)


class _Composer(Reader):
    """One conversation of the store."""

    format = "cursor"

    def __init__(self, identifier: str, data: Entry) -> None:
        super().__init__("Cursor", identifier)
        self.conversation.model = origin(text_of(data, "modelConfig", "modelName"))
        if text_of(data, "parentComposerId") or mapping_of(data, "subagentInfo"):
            is_subagent(self.conversation)
        self._starts: dict[str, int] = {}
        """How many messages there were before a bubble, by its id."""
        self._latest = mapping_of(data, "latestConversationSummary")

    def bubble(self, place: str, bubble: Entry, problem: str) -> None:
        """Enter a bubble and take what it holds."""
        kind, conversation = bubble.get("type"), self.conversation
        tool = mapping_of(bubble, "toolFormerData")
        names = {_USER: "user", _ASSISTANT: "tool" if tool else "assistant"}
        name = names.get(kind if isinstance(kind, int) else 0, "other")
        line = conversation.ledger.enter(place, f"bubble:{name}")
        self._starts.setdefault(text_of(bubble, "bubbleId"), len(conversation.drafts))
        if problem:
            line.skip(problem)
            return
        if bubble.get("thinking") or bubble.get("allThinkingBlocks"):
            leave_out_thinking(line)
        if list_of(bubble, "images"):
            line.leave_out("images", "the store names them only")
        if list_of(bubble, "attachedCodeChunks"):
            line.leave_out("attached code", "what the client put round the user's words")
        if kind == _USER:
            conversation.say(line, Draft("user", [text_of(bubble, "text")]))
        elif kind == _ASSISTANT:
            conversation.say(line, *_answer(bubble, tool))
        else:
            line.is_unknown("expected a bubble of type 1 or 2")
        self._compacted(_summary(bubble, "conversationSummary"))

    def finish(self) -> Conversation:
        if not self.conversation.compactions:
            end = self._starts.get(text_of(self._latest, "lastBubbleId"))
            inner = self._latest.get("summary")
            self._compacted(inner if isinstance(inner, dict) else self._latest, end)
        return self.conversation

    def _compacted(self, summary: Entry, end: int | None = None) -> None:
        """Record a summary; messages from the first that is still sent were kept."""
        text, drafts = text_of(summary, "summary"), self.conversation.drafts
        if not text:
            return
        end = len(drafts) if end is None else end
        start = self._starts.get(text_of(summary, "clientShouldStartSendingFromInclusiveBubbleId"))
        kept = drafts[start:end] if start is not None else []
        after = drafts[end - 1] if end else None
        self.conversation.compact(text, [summary_draft(text), *kept], after=after)


def _summary(bubble: Entry, key: str) -> Entry:
    summary = bubble.get(key)
    return summary if isinstance(summary, dict) else mapping_of(from_json(summary))


def _answer(bubble: Entry, tool: Entry) -> Iterator[Draft]:
    draft = Draft("assistant", [text_of(bubble, "text")])
    yield draft
    if tool:
        given, result = tool.get("rawArgs") or tool.get("params"), tool.get("result")
        call_id = text_of(tool, "toolCallId") or text_of(bubble, "bubbleId")
        draft.calls.append(DraftCall(call_id, text_of(tool, "name"), as_text(given)))
        if result := result or tool.get("error"):
            yield Draft("tool", [as_text(result)], call_id=call_id)


def _stored(connection: sqlite3.Connection, key: str) -> tuple[Entry, str]:
    """Return the object under a key of the store, or why there is none."""
    row = connection.execute(
        f"SELECT CASE WHEN length(value) <= {MAX_LINE_BYTES} THEN value END, value IS NOT NULL "  # noqa: S608
        "FROM cursorDiskKV WHERE key = ?",
        (key.encode(errors="replace").decode(),),
    ).fetchone()
    if row is None:
        return {}, "it is not in the store"
    if row[0] is None and row[1]:
        return {}, f"it is longer than {MAX_LINE_BYTES // 2**20} MiB"
    text = row[0].decode("utf-8", errors="replace") if isinstance(row[0], bytes) else row[0]
    return stored_object(text)


def _bubbles(
    connection: sqlite3.Connection, composer: str, data: Entry
) -> Iterator[tuple[Entry, str]]:
    """Yield the messages of a conversation, from wherever its version keeps them."""
    inline = list_of(data, "conversation")
    for bubble in inline:
        yield (bubble, "") if isinstance(bubble, dict) else ({}, "expected an object")
    for header in list_of(data, "fullConversationHeadersOnly") if not inline else ():
        name = text_of(header, "bubbleId")
        found, problem = mapping_of(data, "conversationMap", name), ""
        if not found:
            found, problem = _stored(connection, f"bubbleId:{composer}:{name}")
        yield {**found, "bubbleId": name}, problem


def _database(connection: sqlite3.Connection) -> Iterator[Conversation]:
    keys = connection.execute(
        "SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' "
        "ORDER BY rowid"
    ).fetchall()
    for identifier in (str(row[0]).partition(":")[2] for row in keys):
        data, problem = _stored(connection, f"composerData:{identifier}")
        composer = _Composer(identifier, data)
        head = composer.conversation.ledger.enter("conversation", "composerData")
        head.skip(problem or "it describes the conversation")
        number = 0
        for number, (bubble, fault) in enumerate(_bubbles(connection, identifier, data), 1):
            composer.bubble(f"bubble {number}", bubble, fault)
        # Cursor keeps an entry for every window in which nothing was ever typed.
        if number or problem:
            yield composer.finish()


def _is_line(value: Any) -> bool:
    """Return whether a value is a line of a transcript: a role, and a message without one."""
    return (
        text_of(value, "role") in ("user", "assistant")
        and value.keys() <= {"role", "message", "timestamp"}
        and "content" in mapping_of(value, "message")
    )


def _is_call(value: Any) -> bool:
    calls = mapping_of(value, "tool_call") if text_of(value, "type") == "tool_call" else {}
    return any(key.endswith("ToolCall") or key == "function" for key in calls)


def _is_head(value: Any) -> bool:
    """Return whether a value is the head of a stream; those of other agents name their tools."""
    return (
        text_of(value, "subtype") == "init"
        and {"apiKeySource", "session_id", "permissionMode"} <= value.keys()
        and "tools" not in value
    )


def _recognise(source: SourceFile) -> str | None:
    if is_database(source):
        found = has_tables(source.path, _TABLE)
        return "an SQLite database with the table cursorDiskKV" if found else None
    if any(map(_is_line, source.head)):
        return "lines with role, and a message with content"
    if any(_is_call(value) or _is_head(value) for value in source.head):
        return "lines of a stream with calls such as readToolCall"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    if not is_database(source):
        yield from read_lines(source, _Lines())
        return
    if not has_tables(source.path, _TABLE):
        raise DataError(f"{source.path}: expected Cursor's store with the table cursorDiskKV")
    with opened(source.path) as connection:
        yield from _database(connection)


FORMAT = Format("cursor", "Cursor (agent transcripts, CLI streams, state.vscdb)", _recognise, _read)
