"""Sessions of Gemini CLI and of Qwen Code, which descends from it: content is in parts.

Gemini CLI writes one JSON document, or, in newer versions, a record per line. Records that come
again under the same id replace the earlier one. A rewind removes what follows; a rewritten message
list is what the agent continued with after it compressed its history. Calls contain their own
results.

Qwen Code writes lines in the frame of Claude Code's. What the model saw is the path from the first
record to the last one in the file; records next to it were taken back. A compression is recorded
with the whole history that the model continued with.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.drafts import (
    Content,
    Conversation,
    Draft,
    Image,
    Line,
    inline_image,
)
from compression_eval.conversations.fields import Json, as_text, entries, label, origin
from compression_eval.conversations.readers.base import (
    LEFT_BRANCH,
    Format,
    Node,
    Reader,
    feed_threads,
    sign,
    with_originals,
)
from compression_eval.conversations.sources import SourceFile, Value

_SPEAKERS = ("user", "gemini")
_FOR_THE_SCREEN = ("info", "warning", "error")
_OWN_FIELDS = {"sessionId", "projectHash"}
_QWEN_SPEAKS = ("user", "assistant", "tool_result")
_TYPED = ("", "mid_turn_user_message")
"""Subtypes of user records that the user wrote; others are notices of the client."""
_CONVERTED = 1
"""``compressionStatus`` of a compression that worked; newer versions write a word."""


@dataclass(eq=False)
class _Slot:
    """A message of the session, with every line that wrote it."""

    record: Json
    lines: list[Line]
    undone: bool = False
    drafts: list[Draft] = field(default_factory=list)


class _Session(Reader):
    format = "gemini-cli"

    def __init__(self, header: Json) -> None:
        super().__init__("Gemini CLI session")
        self.header = header
        self._history: list[_Slot] = []
        self._current: dict[str, _Slot | None] = {}
        """What the agent has, by id, in order; None for messages that a compression made."""
        self._rewrites: list[tuple[Line, list[_Slot], list[Json], bool]] = []
        """New message lists: the line of each, what the agent held before, and whether that was
        shortened."""

    def name_of(self, entry: Json) -> str:
        own = next((key for key in ("$rewindTo", "$set") if key in entry), "")
        return own or (label(entry.text("type")) if entry.text("type") else "header")

    def take(self, line: Line, entry: Json) -> None:
        if "$rewindTo" in entry:
            # From an unknown message on, as the agent has it, all is undone.
            name, names = entry.name("$rewindTo"), list(self._current)
            for gone in names[names.index(name) if name in names else 0 :]:
                if (slot := self._current.pop(gone)) is not None:
                    slot.undone = True
        elif "$set" in entry:
            self._set(entry.entry("$set"), line)
        elif "type" not in entry and "sessionId" in entry:
            self.header = self.header or entry
        else:
            self._message(entry, line)

    def _message(self, record: Json, line: Line) -> None:
        """Put a message in its place: at the end, or where it was before."""
        name = record.name("id") or f"{line.place}\0"
        if name not in self._current:
            self._history.append(_Slot(record, [line]))
            self._current[name] = self._history[-1]
        elif (slot := self._current[name]) is not None:
            slot.record = record
            slot.lines.append(line)

    def _set(self, changes: Json, line: Line) -> None:
        """Take a new list of messages, which is shortened or only continues."""
        records = [record for record in changes.entries("messages") if record]
        if not records:
            return
        names = [record.name("id") for record in records]
        shortened = any(
            slot is not None and name not in names and slot.record.text("type") in _SPEAKERS
            for name, slot in self._current.items()
        )
        before = [slot for slot in self._history if not slot.undone]
        if shortened:
            known = self._current
            self._current = {name: known.get(name) for name in names if name}
        else:
            for record in records:
                drafts = _drafts(record, Line()) if record.name("id") not in self._current else []
                if any(draft.role != "tool" and draft.text for draft in drafts):
                    self._message(record, line)
        self._rewrites.append((line, before, records, shortened))

    def finish(self) -> Conversation:
        self.session = self.header.text("sessionId")
        if self.header.text("kind") == "subagent":
            self.part = "subagent"
        for slot in self._history:
            self._settle(slot)
        for rewrite in self._rewrites:
            self._compact(*rewrite)
        if "messages" in self.header:
            self.caveat(
                "had the agent compressed this session, the earlier messages would be missing "
                "unmarked"
            )
        return super().finish()

    def _settle(self, slot: _Slot) -> None:
        """Make a message of a slot's last record and settle the lines that wrote it."""
        if slot.undone:
            for line in slot.lines:
                line.skip("undone by a rewind of the user")
            return
        for line in slot.lines[:-1]:
            line.skip("written again by a later line")
        slot.drafts = _drafts(slot.record, slot.lines[-1])
        self.say(slot.lines[-1], *slot.drafts)
        self.models[origin(slot.record.text("model"))] += bool(slot.drafts)

    def _compact(
        self, line: Line, before: list[_Slot], records: list[Json], shortened: bool
    ) -> None:
        """Take what a rewritten list tells of a compression, unless it only repeats."""
        known = [draft for slot in before for draft in slot.drafts]
        drafts: list[Draft] = []
        for draft in (draft for record in records for draft in _drafts(record, Line())):
            # Newer sessions repeat a call's result as a message of its own.
            if draft.role != "tool" or draft.call_id not in {each.call_id for each in drafts}:
                drafts.append(draft)
        state = with_originals(drafts, known)
        made = [draft for draft in state if draft not in known]
        said = any(draft.line is line for draft in self.drafts)
        if shortened or (made and not said):
            users = (draft.text for draft in made if draft.role == "user")
            summary = next(users, "") if shortened else ""
            after = known[-1] if known else None
            self.compact(summary, state, "summary" if summary else "clear", after=after)


def _drafts(record: Json, line: Line) -> list[Draft]:
    """Return the messages of a record, a turn and the results of its calls, or settle its line."""
    kind = record.text("type")
    if kind in _FOR_THE_SCREEN:
        line.skip("a notice on the screen, which the model does not see")
        return []
    if kind not in _SPEAKERS:
        line.is_unknown("expected a message of type user, gemini, info, warning or error")
        return []
    if record.at("displayContent") is not None:
        line.leave_out("displayContent", "the screen showed it; the model got the content")
    parts = parts_of(record.at("content"), line)
    content = list(content_of(parts, line))
    if kind == "user":
        results = [response_of(part) for part in parts if "functionResponse" in part]
        return results + ([Draft("user", content)] if content or not results else [])
    if record.listed("thoughts"):
        line.leave_out_thinking()
    turn, results = Draft("assistant", content), []
    calls = list(line.objects(record.listed("toolCalls"), "tool call"))
    # Newer sessions repeat the calls as parts of the content; without records these are all.
    calls = calls or [call for part in parts if (call := part.entry("functionCall"))]
    for number, call in enumerate(calls, 1):
        call_id = call.name("id") or f"{record.name('id')}-{number}"
        turn.call(call_id, call.text("name"), call.at("args"))
        if call.at("result"):
            results.append(Draft("tool", _result(call, call_id, line), call_id=call_id))
        if call.at("resultDisplay"):
            line.leave_out("resultDisplay", "what the screen showed of a result")
    return [turn, *results]


def parts_of(value: Any, line: Line) -> list[Json]:
    """Return the parts of a content, which may be a text, a part, or a list of both."""
    found: list[Json] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str | dict):
            found.append(Json(text=part) if isinstance(part, str) else Json(part))
        elif part is not None:
            line.is_unknown("expected content that is a text or parts")
    return found


def content_of(parts: list[Json], line: Line) -> Iterator[str | Image]:
    """Yield the texts and images of parts."""
    for part in parts:
        if part.at("thought"):
            line.leave_out_thinking()
        elif isinstance(part.at("text"), str):
            if part["text"]:
                yield part["text"]
        elif (image := _media(part)) is not None:
            yield image
        elif not {"functionCall", "functionResponse"} & part.keys():
            line.leave_out(f"part {label(next(iter(part), ''))}", "unknown kind of content")


def _media(part: Json) -> Image | None:
    data, file = part.entry("inlineData"), part.entry("fileData")
    if data:
        return inline_image(data.text("mimeType"), data.text("data"))
    return Image(file.text("mimeType"), file.text("fileUri")) if file else None


def response_of(part: Json) -> Draft:
    """Return the result that a part contains."""
    response = part.entry("functionResponse")
    return Draft("tool", list(_answer(response)), call_id=response.name("id"))


def _result(call: Json, call_id: str, line: Line) -> Content:
    found: Content = []
    for part in parts_of(call.at("result"), line):
        response = part.entry("functionResponse")
        if not response:
            found.extend(content_of([part], line))
        elif response.name("id") in ("", call_id):
            found.extend(_answer(response))
    return found


def _answer(response: Json) -> Iterator[str | Image]:
    fields = response.entry("response")
    said = [fields[key] for key in ("output", "error") if fields.at(key) not in (None, "")]
    if len(said) == len(fields) == 1 and isinstance(said[0], str):
        yield said[0]
    elif said or fields.keys() - {"output", "error"}:
        yield as_text(fields)
    yield from filter(None, map(_media, response.entries("parts")))


def _recognise(source: SourceFile) -> str | None:
    document = Json.of(source.document)
    records = document.entries("messages") or entries(source.head[1:])
    kinds = {record.text("type") for record in records} - {""}
    if "gemini" not in kinds and kinds - {*_SPEAKERS, *_FOR_THE_SCREEN}:
        return None  # of a descendant of Gemini CLI, whose agent has another name
    if document.keys() >= _OWN_FIELDS and isinstance(document.at("messages"), list):
        return "a JSON object with sessionId, projectHash and messages"
    if source.head and Json.of(source.head[0]).keys() >= _OWN_FIELDS:
        return "a first line with sessionId and projectHash, then a record per line"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    document = Json.of(source.document)
    whole = isinstance(document.at("messages"), list)
    session = _Session(document if whole else Json())
    if whole:
        session.feed_all("message", document["messages"], 1)
    else:
        for value in source.values():
            session.feed(value)
    if _OWN_FIELDS & session.header.keys():
        yield session.finish()


FORMAT = Format(
    "gemini-cli",
    _recognise,
    _read,
    "a Gemini CLI session with sessionId, projectHash and messages",
)


class _QwenSession(Reader):
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
            if kind in _QWEN_SPEAKS and record in path:
                self._said(line, record.entry)
            elif kind in _QWEN_SPEAKS:
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
        if not isinstance(entry.at("message"), dict):
            line.is_unknown("expected the field message as an object")
            return
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
    speaks = value.text("type") in _QWEN_SPEAKS
    return bool(speaks and named) and isinstance(value.at("message", "parts"), list)


def _recognise_qwen(source: SourceFile) -> str | None:
    return sign(source.head, _is_record, "lines with uuid, sessionId and a message in parts")


def _read_qwen(source: SourceFile) -> Iterator[Conversation]:
    sessions: dict[str, _QwenSession] = {}
    recognised = False

    def thread_of(value: Value) -> _QwenSession:
        nonlocal recognised
        entry = Json.of(value.value)
        recognised = recognised or _is_record(entry)
        side = entry.at("isSidechain") is True
        agent = (entry.text("agentId") or "side") if side else ""
        if agent not in sessions:
            sessions[agent] = _QwenSession(entry, f"agent-{agent}" if agent else "")
        return sessions[agent]

    feed_threads(source.values(), thread_of)
    for session in sessions.values() if recognised else ():
        yield session.finish()


QWEN_FORMAT = Format(
    "qwen-code", _recognise_qwen, _read_qwen, "records of Qwen Code with a message in parts"
)
