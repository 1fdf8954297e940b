"""Chat recordings of Qwen Code: lines in the frame of Claude Code's, messages in Gemini's form.

What the model saw is the path from the first record to the last one in the file; records beside it
were taken back. A compression is recorded with the whole history that the model went on with.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Conversation, Draft, DraftCall
from compression_eval.conversations.fields import (
    as_text,
    count_of,
    identifier,
    list_of,
    mapping_of,
    origin,
    text_of,
    value_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    LEFT_BRANCH,
    Entry,
    Reader,
    say_injected,
    with_originals,
    with_subtype,
)
from compression_eval.conversations.readers.gemini_cli import content_of, parts_of, response_of
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_SPEAKS = ("user", "assistant", "tool_result")
_TYPED = ("", "mid_turn_user_message")
"""Subtypes of user records that the user wrote; others are notices of the client."""
_CONVERTED = 1
"""``compressionStatus`` of a compression that worked; newer versions write a word."""


@dataclass(eq=False)
class _Record:
    """A line of the tree."""

    line: Line
    value: Entry
    parent: "_Record | None"


class _Session(Reader):
    """One thread: the session, or a sub-agent."""

    format = "qwen-code"

    def __init__(self, first: Any, part: str) -> None:
        product = origin("Qwen Code", text_of(first, "version"))
        super().__init__(product, text_of(first, "sessionId"), part)
        self._by_id: dict[str, _Record] = {}
        self._records: list[_Record] = []
        self._open: dict[str, list[str]] = {}
        """Ids of calls without a result, by the tool's name: old recordings name none."""
        self._lost = False

    def name_of(self, entry: Any) -> str:
        """Return the type with the subtype."""
        return with_subtype(text_of(entry, "type"), text_of(entry, "subtype"))

    def take(self, line: Line, entry: Any) -> None:
        """Put a line into the tree; it is settled once the path is known."""
        if not mapping_of(entry):
            line.is_unknown("expected a JSON object")
            return
        parent = self._by_id.get(text_of(entry, "parentUuid"))
        if parent is None and text_of(entry, "parentUuid") and self._records:
            self._lost, parent = True, self._records[-1]
        self._records.append(_Record(line, entry, parent))
        if name := text_of(entry, "uuid"):
            self._by_id.setdefault(name, self._records[-1])

    def finish(self) -> Conversation:
        """Return the conversation on the path to the last record."""
        path: set[_Record] = set()
        node = self._records[-1] if self._records else None
        while node is not None and node not in path:
            path.add(node)
            node = node.parent
        for record in self._records:
            kind, subtype = text_of(record.value, "type"), text_of(record.value, "subtype")
            compresses = kind == "system" and subtype == "chat_compression"
            if record not in path and (kind in _SPEAKS or compresses):
                record.line.skip(LEFT_BRANCH)
            elif kind in _SPEAKS:
                self._said(record.line, record.value)
            elif compresses:
                self._compressed(record.line, record.value)
            elif kind == "system":
                record.line.skip("a record of the client, which the model does not see")
            else:
                record.line.is_unknown("a record of a kind that Qwen Code is not known to write")
        conversation = super().finish()
        say_injected(conversation, "Qwen Code (notices)")
        if self._lost:
            conversation.caveats.append(
                "a line follows one that is not in the file; the line before it was taken for it"
            )
        return conversation

    def _said(self, line: Line, entry: Entry) -> None:
        kind = text_of(entry, "type")
        if not isinstance(entry.get("message"), dict):
            line.is_unknown("expected the field message as an object")
            return
        drafts = self._drafts(entry["message"], line)
        injected = kind == "user" and text_of(entry, "subtype") not in _TYPED
        for draft in drafts:
            draft.injected = injected and draft.role == "user"
        self.conversation.say(line, *drafts)
        self.models[origin(text_of(entry, "model"))] += kind == "assistant"
        limit = count_of(entry, "contextWindowSize")
        self.conversation.context_length = limit or self.conversation.context_length
        if "toolCallResult" in entry:
            line.leave_out("toolCallResult", "what the screen showed of a result")

    def _drafts(self, message: Entry, line: Line) -> list[Draft]:
        """Return the messages of a content: results first, then what was said or called."""
        parts = parts_of(message.get("parts"), line)
        said = list(content_of(parts, line))
        drafts: list[Draft] = []
        for part in parts:
            if isinstance(part.get("functionResponse"), dict):
                result = response_of(part)
                waiting = self._open.get(text_of(part, "functionResponse", "name"), [])
                if result.call_id in waiting:
                    waiting.remove(result.call_id or "")
                elif not result.call_id and waiting:
                    result.call_id = waiting.pop(0)
                drafts.append(result)
        if text_of(message, "role") == "model":
            turn = Draft("assistant", said)
            for part in parts:
                if isinstance(call := part.get("functionCall"), dict):
                    name = text_of(call, "name")
                    call_id = identifier(call, "id") or f"{name}-{line.place}-{len(turn.calls)}"
                    turn.calls.append(DraftCall(call_id, name, as_text(call.get("args"))))
                    self._open.setdefault(name, []).append(call_id)
            drafts.append(turn)
        elif said or not drafts:
            drafts.append(Draft("user", said))
        return drafts

    def _compressed(self, line: Line, entry: Entry) -> None:
        info = mapping_of(entry, "systemPayload", "info")
        status = info.get("compressionStatus", _CONVERTED)
        if isinstance(status, int) and status != _CONVERTED:
            line.skip("a compression that failed")
            return
        drafts: list[Draft] = []
        waiting, self._open = self._open, {}
        for content in list_of(entry, "systemPayload", "compressedHistory"):
            if isinstance(content, dict):
                drafts += self._drafts(content, line)
            else:
                line.leave_out("content of the kept history", "expected an object")
        self._open = waiting
        state = with_originals(drafts, self.conversation)
        known = set(self.conversation.drafts)
        made = [draft for draft in state if draft not in known]
        for draft in made:
            draft.injected = draft.role == "user"
        self.conversation.compact(
            next((draft.text for draft in made if draft.text), ""),
            trigger=text_of(info, "triggerReason"),
            tokens_before=count_of(info, "originalTokenCount"),
            tokens_after=count_of(info, "newTokenCount"),
            state=state or None,
        )
        line.skip("a compression, recorded beside the messages")


def _is_record(value: Any) -> bool:
    return (
        text_of(value, "type") in _SPEAKS
        and bool(text_of(value, "sessionId"))
        and bool(text_of(value, "uuid"))
        and isinstance(value_of(value, "message", "parts"), list)
    )


def _recognise(source: SourceFile) -> str | None:
    if any(map(_is_record, source.head)):
        return "lines with uuid, sessionId and a message in parts"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    sessions: dict[str, _Session] = {}
    waiting: list[Value] = []
    recognised = False
    for value in source.values():
        recognised = recognised or _is_record(value.value)
        agent = ""
        if value_of(value.value, "isSidechain") is True:
            agent = text_of(value.value, "agentId") or "side"
        waiting.append(value)
        if value.problem and not sessions:
            continue  # it stands in the account of whoever comes first
        if agent not in sessions:
            sessions[agent] = _Session(value.value, f"agent-{agent}" if agent else "")
        while waiting:
            sessions[agent].feed(waiting.pop(0))
    if not recognised:
        raise DataError(
            f"{source.path}: expected records of Qwen Code with uuid, sessionId and a message in "
            "parts, found none"
        )
    for session in sessions.values():
        yield session.finish()


FORMAT = Format("qwen-code", "Qwen Code chat recordings (JSONL)", _recognise, _read)
