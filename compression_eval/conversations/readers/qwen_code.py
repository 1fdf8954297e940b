"""Chat recordings of Qwen Code: lines in the frame of Claude Code's, messages in Gemini's form.

What the model saw is the path from the first record to the last one in the file; records beside it
were taken back. A compression is recorded with the whole history that the model went on with.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft, DraftCall
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
from compression_eval.conversations.readers.codex_compaction import with_originals
from compression_eval.conversations.readers.gemini_messages import (
    content_of,
    parts_of,
    response_of,
)
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    entered,
    identifier,
    origin,
    say_injected,
)
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
    kind: str
    value: dict[str, Any]
    parent: "_Record | None"
    drafts: list[Draft] = field(default_factory=list)


class _Session:
    """One thread: the session, or a sub-agent."""

    def __init__(self, first: dict[str, Any], part: str) -> None:
        self.conversation = Conversation(
            "qwen-code",
            origin("Qwen Code", text_of(first, "version")),
            text_of(first, "sessionId"),
            Ledger(),
            part=part,
            caveats=[NO_SYSTEM_PROMPT, NO_TOOLS],
        )
        self._by_id: dict[str, _Record] = {}
        self._records: list[_Record] = []
        self._open: dict[str, list[str]] = {}
        """Ids of calls without a result, by the tool's name: old recordings name none."""
        self._lost = False

    def feed(self, value: Value) -> None:
        """Enter a line and put it into the tree."""
        record = value.value if isinstance(value.value, dict) else {}
        subtype = text_of(record, "subtype")
        name = label(text_of(record, "type")) + (f":{label(subtype)}" if subtype else "")
        line = entered(self.conversation.ledger, value, name)
        if value.problem:
            return
        if not record:
            line.is_unknown("expected a JSON object")
            return
        parent = self._by_id.get(text_of(record, "parentUuid"))
        if parent is None and text_of(record, "parentUuid") and self._records:
            self._lost, parent = True, self._records[-1]
        node = _Record(line, name, record, parent)
        self._records.append(node)
        if text_of(record, "uuid"):
            self._by_id.setdefault(text_of(record, "uuid"), node)

    def finish(self) -> Conversation:
        """Return the conversation on the path to the last record."""
        path: dict[int, _Record] = {}
        node = self._records[-1] if self._records else None
        while node is not None and id(node) not in path:
            path[id(node)] = node
            node = node.parent
        conversation = self.conversation
        models: Counter[str] = Counter()
        for record in self._records:
            kind, subtype = text_of(record.value, "type"), text_of(record.value, "subtype")
            if kind in _SPEAKS and id(record) not in path:
                record.line.skip("on a branch that the user left")
            elif kind in _SPEAKS and isinstance(record.value.get("message"), dict):
                drafts = self._drafts(record.value["message"], record.line)
                injected = kind == "user" and subtype not in _TYPED
                for draft in drafts:
                    draft.injected = injected and draft.role == "user"
                    conversation.drafts.append(record.line.became(draft))
                models[origin(text_of(record.value, "model"))] += kind == "assistant"
                limit = count_of(record.value, "contextWindowSize")
                conversation.context_length = limit or conversation.context_length
                if "toolCallResult" in record.value:
                    record.line.leave_out("toolCallResult", "what the screen showed of a result")
            elif kind in _SPEAKS:
                record.line.is_unknown("expected the field message as an object")
            elif kind == "system" and subtype == "chat_compression":
                self._compressed(record, on_path=id(record) in path)
            elif kind == "system":
                record.line.skip("a record of the client, which the model does not see")
            else:
                record.line.is_unknown("a record of a kind that Qwen Code is not known to write")
        models.pop("", None)
        conversation.model = models.most_common(1)[0][0] if models else ""
        say_injected(conversation, "Qwen Code (notices)")
        if self._lost:
            conversation.caveats.append(
                "a line follows one that is not in the file; the line before it was taken for it"
            )
        return conversation

    def _drafts(self, message: dict[str, Any], line: Line) -> list[Draft]:
        """Return the messages of a content: results first, then what was said or called."""
        parts = parts_of(message.get("parts"), line)
        said = list(content_of(parts, line))
        drafts: list[Draft] = []
        for part in parts:
            if isinstance(part.get("functionResponse"), dict):
                result = response_of(part)
                waiting = self._open.get(text_of(part["functionResponse"], "name"), [])
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

    def _compressed(self, record: _Record, *, on_path: bool) -> None:
        payload = mapping_of(record.value, "systemPayload")
        info, history = mapping_of(payload, "info"), list_of(payload, "compressedHistory")
        if not on_path:
            record.line.skip("on a branch that the user left")
            return
        status = info.get("compressionStatus", _CONVERTED)
        if isinstance(status, int) and status != _CONVERTED:
            record.line.skip("a compression that failed")
            return
        conversation = self.conversation
        drafts: list[Draft] = []
        waiting, self._open = self._open, {}
        for content in history:
            if isinstance(content, dict):
                drafts += self._drafts(content, record.line)
            else:
                record.line.leave_out("content of the kept history", "expected an object")
        self._open = waiting
        state = with_originals(drafts, conversation)
        known = set(conversation.drafts)
        made = [draft for draft in state if draft not in known]
        for draft in made:
            draft.injected = draft.role == "user"
        summary = next((draft.text for draft in made if draft.text), "")
        conversation.compactions.append(
            Compaction(
                after=conversation.drafts[-1] if conversation.drafts else None,
                kind="summary" if summary else "opaque",
                trigger=text_of(info, "triggerReason"),
                summary=summary or None,
                tokens_before=count_of(info, "originalTokenCount"),
                tokens_after=count_of(info, "newTokenCount"),
                state=state or None,
            )
        )
        record.line.skip("a compression, recorded beside the messages")


def _is_record(value: Any) -> bool:
    return (
        text_of(value, "type") in _SPEAKS
        and bool(text_of(value, "sessionId"))
        and bool(text_of(value, "uuid"))
        and isinstance(mapping_of(value, "message").get("parts"), list)
    )


def _recognise(source: SourceFile) -> str | None:
    if any(map(_is_record, source.head)):
        return "lines with uuid, sessionId and a message in parts"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    threads: dict[str, _Session] = {}
    waiting: list[Value] = []
    recognised = False
    for value in source.values():
        recognised = recognised or _is_record(value.value)
        agent = ""
        if isinstance(value.value, dict) and value.value.get("isSidechain") is True:
            agent = text_of(value.value, "agentId") or "side"
        if value.problem and not threads:
            waiting.append(value)
            continue
        if agent not in threads:
            first = value.value if isinstance(value.value, dict) else {}
            threads[agent] = _Session(first, f"agent-{agent}" if agent else "")
            for earlier in waiting:
                threads[agent].feed(earlier)
            waiting.clear()
        threads[agent].feed(value)
    if not recognised:
        raise DataError(
            f"{source.path}: expected records of Qwen Code with uuid, sessionId and a message in "
            "parts, found none"
        )
    for thread in threads.values():
        yield thread.finish()


FORMAT = Format(
    name="qwen-code", title="Qwen Code chat recordings (JSONL)", recognise=_recognise, read=_read
)
