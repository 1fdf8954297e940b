"""Gemini CLI sessions: one JSON document, or, in newer versions, a record per line.

Records that come again under the same id replace the earlier one. A rewind removes what follows;
a rewritten message list is what the agent went on with after it compressed its history. Content
stands in parts, and calls hold their own results.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.account import Line
from compression_eval.conversations.drafts import Content, Conversation, Draft, DraftCall, Image
from compression_eval.conversations.fields import (
    as_text,
    identifier,
    label,
    list_of,
    mapping_of,
    origin,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.base import (
    Entry,
    KnownDrafts,
    Reader,
    leave_out_thinking,
    nowhere,
    with_replaced,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.fixtures.errors import DataError

_SPEAKERS = ("user", "gemini")
_FOR_THE_SCREEN = ("info", "warning", "error")


@dataclass(eq=False)
class _Slot:
    """A message of the session, with every line that wrote it."""

    record: Entry
    lines: list[Line]
    undone: bool = False
    drafts: list[Draft] = field(default_factory=list)


@dataclass(eq=False)
class _Rewrite:
    """A new message list, put in the place of the one before."""

    line: Line
    before: list[_Slot]
    records: list[Entry]
    shortened: bool


class _Session(Reader):
    """A session that is being read."""

    format = "gemini-cli"

    def __init__(self) -> None:
        super().__init__("Gemini CLI session")
        self.header: Entry = {}
        self._history: list[_Slot] = []
        self._current: dict[str, _Slot | None] = {}
        """What the agent holds, by id, in order; None for messages that a compression made."""
        self._rewrites: list[_Rewrite] = []

    def name_of(self, entry: Any) -> str:
        """Return the type, or what else the line is."""
        if named := next((key for key in ("$rewindTo", "$set") if key in mapping_of(entry)), ""):
            return named
        return label(text_of(entry, "type")) if text_of(entry, "type") else "header"

    def take(self, line: Line, entry: Any) -> None:
        if not isinstance(entry, dict):
            line.is_unknown("expected a JSON object")
        elif "$rewindTo" in entry:
            self._rewind(identifier(entry, "$rewindTo"))
            line.skip("a rewind of the user, which was followed")
        elif "$set" in entry:
            self._set(mapping_of(entry, "$set"), line)
        elif "type" not in entry and "sessionId" in entry:
            self.header = self.header or entry
            line.skip("the header of the session")
        else:
            self.message(entry, line)

    def message(self, record: Entry, line: Line) -> None:
        """Put a message in its place: at the end, or where it stood before."""
        name = identifier(record, "id") or f"{line.place}\0"
        if name not in self._current:
            self._history.append(_Slot(record, [line]))
            self._current[name] = self._history[-1]
        elif (slot := self._current[name]) is None:
            line.skip("repeats a message that a compression made")
        else:
            slot.record = record
            slot.lines.append(line)

    def _rewind(self, name: str) -> None:
        """Undo everything from a message on; from an unknown one on, as the agent has it, all."""
        names = list(self._current)
        for gone in names[names.index(name) if name in names else 0 :]:
            slot = self._current.pop(gone)
            if slot is not None:
                slot.undone = True

    def _set(self, changes: Entry, line: Line) -> None:
        records = [item for item in list_of(changes, "messages") if isinstance(item, dict)]
        if not records:
            line.skip("data about the session, not of the conversation")
            return
        names = {identifier(record, "id") for record in records}
        shortened = any(
            slot is not None and name not in names and text_of(slot.record, "type") in _SPEAKERS
            for name, slot in self._current.items()
        )
        before = [slot for slot in self._history if not slot.undone]
        if shortened:
            known = self._current
            kept = [name for record in records if (name := identifier(record, "id"))]
            self._current = {name: known.get(name) for name in kept}
        else:
            for record in records:
                if identifier(record, "id") not in self._current and _says(record):
                    self.message(record, line)
        self._rewrites.append(_Rewrite(line, before, records, shortened))

    def finish(self) -> Conversation:
        conversation = self.conversation
        conversation.session = text_of(self.header, "sessionId")
        if text_of(self.header, "kind") == "subagent":
            conversation.part = "subagent"
        for slot in self._history:
            self._settle(slot)
        for rewrite in self._rewrites:
            self._compact(rewrite)
        return super().finish()

    def _settle(self, slot: _Slot) -> None:
        """Make a message of a slot's last record and settle the lines that wrote it."""
        *earlier, last = slot.lines
        if slot.undone:
            for line in slot.lines:
                line.skip("undone by a rewind of the user")
            return
        slot.drafts = _drafts(slot.record, last)
        self.conversation.say(last, *slot.drafts)
        self.models[origin(text_of(slot.record, "model"))] += bool(slot.drafts)
        for line in earlier:
            if slot.drafts:
                line.merge(slot.drafts[0])
            else:
                line.skip("written anew by a later line")

    def _compact(self, rewrite: _Rewrite) -> None:
        """Take what a rewritten list tells of a compression, unless it only repeats."""
        known = [draft for slot in rewrite.before for draft in slot.drafts]
        repeated = KnownDrafts(known)
        state: list[Draft] = []
        made: list[Draft] = []
        answered: set[str | None] = set()
        for draft in (draft for record in rewrite.records for draft in _drafts(record, nowhere())):
            # Newer sessions repeat a call's result as a message of its own.
            if draft.role != "tool" or draft.call_id not in answered:
                same = repeated.match(draft)
                state.append(same or draft)
                made.extend([] if same else [draft])
            answered.add(draft.call_id if draft.role == "tool" else None)
        if not rewrite.shortened and rewrite.line.drafts:
            return
        if not rewrite.shortened and not made:
            rewrite.line.skip("repeats the messages")
            return
        rewrite.line.skip("a compression of the history, recorded beside the messages")
        users = (draft.text for draft in made if draft.role == "user")
        summary = next(users, "") if rewrite.shortened else ""
        self.conversation.compact(
            after=known[-1] if known else None,
            kind="summary" if summary else "clear",
            summary=summary,
            state=state,
        )


def _says(record: Entry) -> bool:
    return any(draft.role != "tool" and draft.text for draft in _drafts(record, nowhere()))


def _drafts(record: Entry, line: Line) -> list[Draft]:
    """Return the messages of a record: a turn, and the results of its calls.

    Args:
        record: One message of the file.
        line: Settled if there is no message.
    """
    kind = text_of(record, "type")
    if kind in _FOR_THE_SCREEN:
        line.skip("a notice on the screen, which the model does not see")
        return []
    if kind not in _SPEAKERS:
        line.is_unknown("expected a message of type user, gemini, info, warning or error")
        return []
    if record.get("displayContent") is not None:
        line.leave_out("displayContent", "the screen showed it; the model got the content")
    parts = parts_of(record.get("content"), line)
    content = list(content_of(parts, line))
    if kind == "gemini":
        return _turn(record, content, parts, line)
    results = [response_of(part) for part in parts if "functionResponse" in part]
    return results + ([Draft("user", content)] if content or not results else [])


def _turn(record: Entry, content: Content, parts: list[Entry], line: Line) -> list[Draft]:
    if list_of(record, "thoughts"):
        leave_out_thinking(line)
    turn, results = Draft("assistant", content), list[Draft]()
    calls = [call for call in list_of(record, "toolCalls") if isinstance(call, dict)]
    if len(calls) < len(list_of(record, "toolCalls")):
        line.leave_out("tool call", "expected an object")
    # Newer sessions repeat the calls as parts of the content; without records these are all.
    calls = calls or [call for part in parts if (call := mapping_of(part, "functionCall"))]
    for number, call in enumerate(calls, 1):
        call_id = identifier(call, "id") or f"{identifier(record, 'id')}-{number}"
        turn.calls.append(DraftCall(call_id, text_of(call, "name"), as_text(call.get("args"))))
        if call.get("result"):
            results.append(Draft("tool", list(_result(call, call_id, line)), call_id=call_id))
        if call.get("resultDisplay"):
            line.leave_out("resultDisplay", "what the screen showed of a result")
    return [turn, *results]


def parts_of(value: Any, line: Line) -> list[Entry]:
    """Return the parts of a content, which may be a text, a part, or a list of both."""
    found: list[Entry] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str):
            found.append({"text": part})
        elif isinstance(part, dict):
            found.append(part)
        elif part is not None:
            line.is_unknown("expected content that is a text or parts")
    return found


def content_of(parts: list[Entry], line: Line) -> Iterator[str | Image]:
    """Yield the texts and images of parts."""
    for part in parts:
        if part.get("thought"):
            leave_out_thinking(line)
        elif isinstance(part.get("text"), str):
            if part["text"]:
                yield part["text"]
        elif (image := _media(part)) is not None:
            yield image
        elif not {"functionCall", "functionResponse"} & part.keys():
            line.leave_out(f"part {label(next(iter(part), ''))}", "unknown kind of content")


def _media(part: Any) -> Image | None:
    data, file = mapping_of(part, "inlineData"), mapping_of(part, "fileData")
    if data:
        media_type = text_of(data, "mimeType")
        return Image(media_type, f"data:{media_type};base64,{text_of(data, 'data')}")
    return Image(text_of(file, "mimeType"), text_of(file, "fileUri")) if file else None


def response_of(part: Entry) -> Draft:
    """Return the result that a part holds."""
    response = mapping_of(part, "functionResponse")
    return Draft("tool", list(_answer(response)), call_id=identifier(response, "id"))


def _result(call: Entry, call_id: str, line: Line) -> Iterator[str | Image]:
    for part in parts_of(call.get("result"), line):
        response = mapping_of(part, "functionResponse")
        if not response:
            yield from content_of([part], line)
        elif identifier(response, "id") in ("", call_id):
            yield from _answer(response)


def _answer(response: Entry) -> Iterator[str | Image]:
    fields = mapping_of(response, "response")
    said = [fields[key] for key in ("output", "error") if fields.get(key) not in (None, "")]
    if len(said) == len(fields) == 1 and isinstance(said[0], str):
        yield said[0]
    elif said or fields.keys() - {"output", "error"}:
        yield as_text(fields)
    yield from filter(None, map(_media, list_of(response, "parts")))


def _recognise(source: SourceFile) -> str | None:
    document = mapping_of(source.document)
    records = list_of(document, "messages") or source.head[1:]
    kinds = {text_of(record, "type") for record in records} - {""}
    if "gemini" not in kinds and kinds - {*_SPEAKERS, *_FOR_THE_SCREEN}:
        return None  # of a descendant of Gemini CLI, whose agent has another name
    own = {"sessionId", "projectHash"}
    if own <= document.keys() and isinstance(document.get("messages"), list):
        return "a JSON object with sessionId, projectHash and messages"
    if source.head and own <= mapping_of(source.head[0]).keys():
        return "a first line with sessionId and projectHash, then a record per line"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    session = _Session()
    document = source.document
    whole = isinstance(document, dict) and isinstance(document.get("messages"), list)
    if whole:
        session.header = document
        for number, record in enumerate(document["messages"], 1):
            line = session.conversation.ledger.enter(f"message {number}", session.name_of(record))
            if isinstance(record, dict):
                session.message(record, line)
            else:
                line.is_unknown("expected a JSON object")
    else:
        for value in source.values():
            session.feed(value)
    if not {"sessionId", "projectHash"} & session.header.keys():
        raise DataError(
            f"{source.path}: expected a Gemini CLI session with sessionId, projectHash and "
            "messages, found none"
        )
    conversation = session.finish()
    if "messages" in session.header:
        conversation.caveats.append(
            "had the agent compressed this session, the earlier messages would be missing unmarked"
        )
    yield with_replaced(conversation, source)


FORMAT = Format("gemini-cli", "Gemini CLI sessions (JSON or JSONL)", _recognise, _read)
