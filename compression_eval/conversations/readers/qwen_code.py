"""Chat recordings of Qwen Code: lines in the frame of Claude Code's, messages in Gemini's form.

What the model saw is the path from the first record to the last one in the file; records beside it
were taken back. A compression is recorded with the whole history that the model went on with.
"""

from collections import defaultdict
from collections.abc import Iterator

from compression_eval.conversations.drafts import Conversation, Draft, Line
from compression_eval.conversations.fields import Json, origin
from compression_eval.conversations.readers.base import (
    LEFT_BRANCH,
    Format,
    Node,
    Reader,
    feed_threads,
    sign,
    with_originals,
)
from compression_eval.conversations.readers.gemini_cli import content_of, parts_of, response_of
from compression_eval.conversations.sources import SourceFile, Value

_SPEAKS = ("user", "assistant", "tool_result")
_TYPED = ("", "mid_turn_user_message")
"""Subtypes of user records that the user wrote; others are notices of the client."""
_CONVERTED = 1
"""``compressionStatus`` of a compression that worked; newer versions write a word."""


class _Session(Reader):
    """One thread: the session, or a sub-agent."""

    format = "qwen-code"
    subtype = ("subtype",)

    def __init__(self, first: Json, part: str) -> None:
        product = origin("Qwen Code", first.text("version"))
        super().__init__(product, first.text("sessionId"), part)
        self._by_id: dict[str, Node] = {}
        self._records: list[Node] = []
        self._open: dict[str, list[str]] = defaultdict(list)
        """Ids of calls without a result, by the tool's name: old recordings name none."""

    def take(self, line: Line, entry: Json) -> None:
        """Put a line into the tree; it is settled once the path is known."""
        name = entry.text("parentUuid")
        parent = self._by_id.get(name)
        if parent is None and name and self._records:
            parent = self._records[-1]
            self.caveat(
                "a line follows one that is not in the file; the line before it was taken for it"
            )
        self._records.append(Node(line, entry, parent))
        if name := entry.text("uuid"):
            self._by_id.setdefault(name, self._records[-1])

    def finish(self) -> Conversation:
        """Return the conversation on the path to the last record."""
        path = set(self._records[-1].path if self._records else [])
        for record in self._records:
            kind, line = record.entry.text("type"), record.line
            compresses = (kind, record.entry.text("subtype")) == ("system", "chat_compression")
            if kind in _SPEAKS and record in path:
                self._said(line, record.entry)
            elif kind in _SPEAKS:
                line.leave(LEFT_BRANCH)
            elif compresses and record in path:
                self._compressed(line, record.entry)
            elif kind == "system":
                reason = "a record of the client, which the model does not see"
                line.skip(LEFT_BRANCH if compresses else reason)
            else:
                line.is_unknown("unknown kind")
        self.name_injected("Qwen Code (notices)")
        return super().finish()

    def _said(self, line: Line, entry: Json) -> None:
        kind = entry.text("type")
        drafts = self._drafts(entry.entry("message"), line)
        injected = kind == "user" and entry.text("subtype") not in _TYPED
        for draft in drafts:
            draft.injected = injected and draft.role == "user"
        self.say(line, *drafts)
        self.models[origin(entry.text("model"))] += kind == "assistant"
        self.context_length = entry.count("contextWindowSize") or self.context_length
        if "toolCallResult" in entry:
            line.leave_out("toolCallResult", "what the screen showed of a result")

    def _drafts(self, message: Json, line: Line) -> list[Draft]:
        """Return the messages of a content: results first, then what was said or called."""
        parts = parts_of(message.at("parts"), line)
        said = list(content_of(parts, line))
        drafts: list[Draft] = []
        for part in parts:
            if isinstance(part.at("functionResponse"), dict):
                result = response_of(part)
                waiting = self._open[part.text("functionResponse", "name")]
                if result.call_id in waiting:
                    waiting.remove(result.call_id or "")
                elif not result.call_id and waiting:
                    result.call_id = waiting.pop(0)
                drafts.append(result)
        if message.text("role") == "model":
            drafts.append(turn := Draft("assistant", said))
            for part in parts:
                if isinstance(part.at("functionCall"), dict):
                    call, name = part.entry("functionCall"), part.text("functionCall", "name")
                    call_id = call.name("id") or f"{name}-{line.place}-{len(turn.calls)}"
                    turn.call(call_id, name, call.at("args"))
                    self._open[name].append(call_id)
        elif said or not drafts:
            drafts.append(Draft("user", said))
        return drafts

    def _compressed(self, line: Line, entry: Json) -> None:
        info = entry.entry("systemPayload", "info")
        status = info.get("compressionStatus", _CONVERTED)
        if isinstance(status, int) and status != _CONVERTED:
            line.skip("a compression that failed")
            return
        drafts: list[Draft] = []
        waiting, self._open = self._open, defaultdict(list)
        history = entry.listed("systemPayload", "compressedHistory")
        for content in line.objects(history, "content of the kept history"):
            drafts += self._drafts(content, line)
        self._open = waiting
        state = with_originals(drafts, self.drafts)
        made = [draft for draft in state if draft not in set(self.drafts)]
        for draft in made:
            draft.injected = draft.role == "user"
        self.compact(
            next((draft.text for draft in made if draft.text), ""),
            state or None,
            trigger=info.text("triggerReason"),
            tokens_before=info.count("originalTokenCount"),
            tokens_after=info.count("newTokenCount"),
        )


def _is_record(value: Json) -> bool:
    named = value.text("sessionId") and value.text("uuid")
    speaks = value.text("type") in _SPEAKS
    return bool(speaks and named) and isinstance(value.at("message", "parts"), list)


def _recognise(source: SourceFile) -> str | None:
    return sign(source.head, _is_record, "lines with uuid, sessionId and a message in parts")


def _read(source: SourceFile) -> Iterator[Conversation]:
    sessions: dict[str, _Session] = {}
    recognised = False

    def thread_of(value: Value) -> _Session:
        nonlocal recognised
        entry = Json.of(value.value)
        recognised = recognised or _is_record(entry)
        side = entry.at("isSidechain") is True
        agent = (entry.text("agentId") or "side") if side else ""
        if agent not in sessions:
            sessions[agent] = _Session(entry, f"agent-{agent}" if agent else "")
        return sessions[agent]

    feed_threads(source.values(), thread_of)
    for session in sessions.values() if recognised else ():
        yield session.finish()


FORMAT = Format("qwen-code", _recognise, _read, "records of Qwen Code with a message in parts")
