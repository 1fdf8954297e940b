"""Conversations of Cursor: agent transcripts, what its CLI prints, and the store ``state.vscdb``.

Transcripts (``agent-transcripts/*.jsonl``) hold calls without ids and no results. What
``cursor-agent --output-format stream-json`` prints, and the store, hold both.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft, DraftCall
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.anthropic_blocks import AssistantTurn, user_drafts
from compression_eval.conversations.readers.pi_messages import summary_draft
from compression_eval.conversations.readers.sqlite_store import has_tables, opened
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    entered,
    leave_out_thinking,
    origin,
)
from compression_eval.conversations.sources import MAX_LINE_BYTES, SourceFile, Value
from compression_eval.fixtures.errors import DataError

_TABLE = ("cursorDiskKV",)
_USER, _ASSISTANT = 1, 2
"""Types of bubbles, as the messages of the store are called."""
_QUERY = re.compile(r"<user_query>\n?(.*)\n?</user_query>", re.DOTALL)
_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z")
"""Stands in transcripts where the model thought."""

_SKIPPED = {
    "turn_ended": "a mark that the turn ended",
    "system": "the head of the stream",
    "result": "the outcome of the stream; its text is the last message's",
    "thinking": "thinking is left out",
    "error": "an error that ended the run",
    "connection": "a notice of the client",
    "retry": "a notice of the client",
    "interaction_query": "a question to the user",
}


def _conversation(session: str = "") -> Conversation:
    return Conversation(
        FORMAT.name, "Cursor", session, Ledger(), caveats=[NO_SYSTEM_PROMPT, NO_TOOLS]
    )


class _Lines:
    """Reads a transcript, or the stream that the CLI prints."""

    def __init__(self) -> None:
        self.recognised = False
        self._conversation = _conversation()
        self._said: Draft | None = None
        """The message that pieces of a stream are added to."""
        self._callers: dict[str, Draft] = {}

    def feed(self, value: Value) -> None:
        """Enter a line and take what it holds."""
        item = value.value if isinstance(value.value, dict) else {}
        kind = text_of(item, "type") or text_of(item, "role")
        subtype = text_of(item, "subtype")
        name = label(kind) + (f":{label(subtype)}" if subtype else "")
        line = entered(self._conversation.ledger, value, name)
        if value.problem:
            return
        self._conversation.session = self._conversation.session or text_of(item, "session_id")
        content = mapping_of(item, "message").get("content")
        if kind == "tool_call":
            self._tool(line, item)
        elif kind in _SKIPPED:
            if kind == "system" and text_of(item, "model"):
                self._conversation.model = origin(text_of(item, "model"))
            line.skip(_SKIPPED[kind])
        elif kind not in ("user", "assistant"):
            line.is_unknown("a line of a kind that Cursor is not known to write")
        elif not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
        elif kind == "user":
            self.recognised = True
            self._said = None
            for draft in user_drafts(content, line):
                if draft.role == "user":
                    draft.content = [_typed(part, line) for part in draft.content]
                self._conversation.drafts.append(line.became(draft))
        else:
            self.recognised = True
            self._assistant(line, content, streamed="session_id" in item)

    def finish(self) -> Conversation:
        """Return the conversation."""
        drafts = self._conversation.drafts
        if any(draft.calls for draft in drafts) and not any(d.role == "tool" for d in drafts):
            self._conversation.caveats.append("Cursor writes no results of tools into transcripts")
        return self._conversation

    def _assistant(self, line: Line, content: Any, *, streamed: bool) -> None:
        scratch = Line("", "")
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
        for draft in drafts:
            self._conversation.drafts.append(line.became(draft))
        self._said = drafts[-1] if streamed and drafts and not drafts[-1].calls else None

    def _tool(self, line: Line, item: dict[str, Any]) -> None:
        """Take the start or the end of a call: ``{"readToolCall": {"args", "result"}}``."""
        self._said = None
        tool = mapping_of(item, "tool_call")
        name = next((key for key, part in tool.items() if isinstance(part, dict)), "")
        if not name:
            line.is_unknown("expected the field tool_call with the call of a tool")
            return
        self.recognised = True
        body = mapping_of(tool, name)
        given: Any = body.get("args")
        if name == "function":
            given = body.get("arguments")
        called = (
            text_of(body, "name") or text_of(given, "toolName") or name.removesuffix("ToolCall")
        )
        identifier = text_of(item, "call_id")
        if identifier in self._callers:
            line.merge(self._callers[identifier])
        else:
            draft = Draft("assistant", calls=[DraftCall(identifier, called, as_text(given))])
            self._callers[identifier] = draft
            self._conversation.drafts.append(line.became(draft))
        if text_of(item, "subtype") == "completed":
            result = Draft("tool", [_outcome(body.get("result"))], call_id=identifier)
            self._conversation.drafts.append(line.became(result))


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
    if isinstance(result, dict) and len(result) == 1:
        (kind, inner), = result.items()  # fmt: skip
        if kind == "success":
            text = text_of(inner, "content")
            return text or as_text(inner)
    return as_text(result)


class _Store:
    """The table of the store: keys, and JSON as values."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")

    def composers(self) -> list[str]:
        """Return the ids of all conversations."""
        rows = self._connection.execute(
            "SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' "
            "ORDER BY rowid"
        )
        return [str(row[0]).partition(":")[2] for row in rows]

    def get(self, key: str) -> tuple[dict[str, Any], str]:
        """Return the object under a key, or why there is none."""
        row = self._connection.execute(
            f"SELECT length(value) > {MAX_LINE_BYTES}, CASE WHEN length(value) <= {MAX_LINE_BYTES} "  # noqa: S608
            "THEN value END FROM cursorDiskKV WHERE key = ?",
            (key.encode(errors="replace").decode(),),
        ).fetchone()
        if row is None:
            return {}, "it is not in the store"
        if row[0]:
            return {}, f"it is longer than {MAX_LINE_BYTES // 2**20} MiB"
        text = row[1].decode("utf-8", errors="replace") if isinstance(row[1], bytes) else row[1]
        return _object(text)


def _object(text: Any) -> tuple[dict[str, Any], str]:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}, "not JSON"
    return (value, "") if isinstance(value, dict) else ({}, "expected an object")


class _Composer:
    """One conversation of the store."""

    def __init__(self, identifier: str, data: dict[str, Any]) -> None:
        self.conversation = _conversation(identifier)
        self.conversation.model = origin(text_of(mapping_of(data, "modelConfig"), "modelName"))
        if text_of(data, "parentComposerId") or mapping_of(data, "subagentInfo"):
            self.conversation.part = "subagent"
            self.conversation.caveats.append("a sub-agent's thread: its user is another agent")
        self._starts: dict[str, int] = {}
        """How many messages there were before a bubble, by its id."""
        self._latest = mapping_of(data, "latestConversationSummary")

    def take(self, place: str, bubble: dict[str, Any], problem: str) -> None:
        """Enter a bubble and take what it holds."""
        kind = bubble.get("type")
        tool = mapping_of(bubble, "toolFormerData")
        name = {_USER: "user", _ASSISTANT: "tool" if tool else "assistant"}.get(
            kind if isinstance(kind, int) else 0, "other"
        )
        line = self.conversation.ledger.enter(place, f"bubble:{name}")
        drafts = self.conversation.drafts
        self._starts.setdefault(text_of(bubble, "bubbleId"), len(drafts))
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
            drafts.append(line.became(Draft("user", [text_of(bubble, "text")])))
        elif kind == _ASSISTANT:
            self._assistant(line, bubble, tool)
        else:
            line.is_unknown("expected a bubble of type 1 or 2")
        summary = bubble.get("conversationSummary")
        self._compacted(summary if isinstance(summary, dict) else _object(summary)[0])

    def finish(self) -> Conversation:
        """Return the conversation."""
        if not self.conversation.compactions:
            last = text_of(self._latest, "lastBubbleId")
            summary = self._latest.get("summary")
            self._compacted(
                summary if isinstance(summary, dict) else self._latest,
                end=self._starts.get(last),
            )
        return self.conversation

    def _assistant(self, line: Line, bubble: dict[str, Any], tool: dict[str, Any]) -> None:
        draft = Draft("assistant", [text_of(bubble, "text")])
        self.conversation.drafts.append(line.became(draft))
        if not tool:
            return
        given = tool.get("rawArgs") or tool.get("params")
        identifier = text_of(tool, "toolCallId") or text_of(bubble, "bubbleId")
        draft.calls.append(DraftCall(identifier, text_of(tool, "name"), as_text(given)))
        result = tool.get("result") or tool.get("error")
        if result:
            answer = Draft("tool", [as_text(result)], call_id=identifier)
            self.conversation.drafts.append(line.became(answer))

    def _compacted(self, summary: dict[str, Any], end: int | None = None) -> None:
        """Record a summary; messages from the first that is still sent were kept."""
        text, drafts = text_of(summary, "summary"), self.conversation.drafts
        if not text:
            return
        end = len(drafts) if end is None else end
        start = self._starts.get(text_of(summary, "clientShouldStartSendingFromInclusiveBubbleId"))
        kept = drafts[start:end] if start is not None else []
        self.conversation.compactions.append(
            Compaction(
                after=drafts[end - 1] if end else None,
                summary=text,
                state=[summary_draft(text, "conversation_summary"), *kept],
            )
        )


def _bubbles(
    store: _Store, identifier: str, data: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the messages of a conversation, from wherever its version keeps them."""
    inline = list_of(data, "conversation")
    if inline:
        for bubble in inline:
            yield (bubble, "") if isinstance(bubble, dict) else ({}, "expected an object")
        return
    within = mapping_of(data, "conversationMap")
    for header in list_of(data, "fullConversationHeadersOnly"):
        name = text_of(header, "bubbleId")
        found = mapping_of(within, name)
        bubble, problem = (found, "") if found else store.get(f"bubbleId:{identifier}:{name}")
        yield {**bubble, "bubbleId": name}, problem


def _is_line(value: Any) -> bool:
    """Return whether a value is a line of a transcript: a role, and a message without one."""
    return (
        isinstance(value, dict)
        and value.keys() <= {"role", "message", "timestamp"}
        and text_of(value, "role") in ("user", "assistant")
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
    if source.magic.startswith(b"SQLite format 3"):
        found = has_tables(source.path, _TABLE)
        return "an SQLite database with the table cursorDiskKV" if found else None
    if any(map(_is_line, source.head)):
        return "lines with role, and a message with content"
    if any(_is_call(value) or _is_head(value) for value in source.head):
        return "lines of a stream with calls such as readToolCall"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    if source.magic.startswith(b"SQLite format 3"):
        if not has_tables(source.path, _TABLE):
            raise DataError(f"{source.path}: expected Cursor's store with the table cursorDiskKV")
        with opened(source.path) as connection:
            store = _Store(connection)
            for identifier in store.composers():
                data, problem = store.get(f"composerData:{identifier}")
                composer = _Composer(identifier, data)
                head = composer.conversation.ledger.enter("conversation", "composerData")
                head.skip(problem or "it describes the conversation")
                number = 0
                for number, (bubble, fault) in enumerate(_bubbles(store, identifier, data), 1):
                    composer.take(f"bubble {number}", bubble, fault)
                # Cursor keeps an entry for every window in which nothing was ever typed.
                if number or problem:
                    yield composer.finish()
        return
    lines = _Lines()
    for value in source.values():
        lines.feed(value)
    if not lines.recognised:
        raise DataError(f"{source.path}: expected lines of a Cursor transcript, found none")
    yield lines.finish()


FORMAT = Format(
    name="cursor",
    title="Cursor (agent transcripts, CLI streams, state.vscdb)",
    recognise=_recognise,
    read=_read,
)
