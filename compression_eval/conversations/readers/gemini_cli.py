"""Gemini CLI sessions: one JSON document, or, in newer versions, a record per line.

Records that come again under the same id replace the earlier one. A rewind removes what follows;
a rewritten message list is what the agent went on with after it compressed its history.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import label, list_of, mapping_of, text_of
from compression_eval.conversations.formats import Format
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.gemini_messages import KINDS, SPEAKERS, drafts_of
from compression_eval.conversations.readers.values import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    KnownDrafts,
    entered,
    identifier,
    origin,
)
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError

_EXPECTED = "a Gemini CLI session with sessionId, projectHash and messages"
_UNDONE = "undone by a rewind of the user"
_NO_MARKS = "had the agent compressed this session, the earlier messages would be missing unmarked"


@dataclass(eq=False)
class _Slot:
    """A message of the session, with every line that wrote it."""

    record: dict[str, Any]
    lines: list[Line]
    undone: bool = False
    drafts: list[Draft] = field(default_factory=list)


@dataclass(eq=False)
class _Rewrite:
    """A new message list, put in the place of the one before."""

    line: Line
    before: list[_Slot]
    records: list[dict[str, Any]]
    shortened: bool


@dataclass
class _Session:
    """A session that is being read."""

    ledger: Ledger = field(default_factory=Ledger)
    header: dict[str, Any] = field(default_factory=dict)
    history: list[_Slot] = field(default_factory=list)
    current: dict[str, _Slot | None] = field(default_factory=dict)
    """What the agent holds, by id, in order; None for messages that a compression made."""
    slots: dict[str, _Slot] = field(default_factory=dict)
    rewrites: list[_Rewrite] = field(default_factory=list)

    def feed(self, value: Value) -> None:
        """Enter a line of a session that has a record per line."""
        record = value.value
        line = entered(self.ledger, value, _kind(record))
        if value.problem:
            return
        if not isinstance(record, dict):
            line.is_unknown("expected a JSON object")
        elif "$rewindTo" in record:
            self._rewind(identifier(record, "$rewindTo"))
            line.skip("a rewind of the user, which was followed")
        elif "$set" in record:
            self._set(mapping_of(record, "$set"), line)
        elif "type" not in record and "sessionId" in record:
            self.header = self.header or record
            line.skip("the header of the session")
        else:
            self.take(record, line)

    def take(self, record: dict[str, Any], line: Line) -> None:
        """Put a message in its place: at the end, or where it stood before."""
        name = identifier(record, "id") or f"{line.place}\0"
        if name in self.current:
            slot = self.current[name]
            if slot is None:
                line.skip("repeats a message that a compression made")
            else:
                slot.record = record
                slot.lines.append(line)
            return
        slot = _Slot(record, [line])
        self.history.append(slot)
        self.current[name] = self.slots[name] = slot

    def _rewind(self, name: str) -> None:
        """Undo everything from a message on; from an unknown one on, as the agent has it, all."""
        names = list(self.current)
        start = names.index(name) if name in self.current else 0
        for gone in names[start:]:
            slot = self.current.pop(gone)
            if slot is not None:
                slot.undone = True

    def _set(self, changes: dict[str, Any], line: Line) -> None:
        records = [item for item in list_of(changes, "messages") if isinstance(item, dict)]
        if not records:
            line.skip("data about the session, not of the conversation")
            return
        names = {identifier(record, "id") for record in records}
        shortened = any(
            slot is not None and name not in names and text_of(slot.record, "type") in SPEAKERS
            for name, slot in self.current.items()
        )
        before = [slot for slot in self.history if not slot.undone]
        if shortened:
            known = self.current
            self.current = {
                name: known.get(name) for record in records if (name := identifier(record, "id"))
            }
        else:
            for record in records:
                if identifier(record, "id") not in self.current and _says(record):
                    self.take(record, line)
        self.rewrites.append(_Rewrite(line, before, records, shortened))

    def finish(self) -> Conversation:
        """Return the conversation."""
        models: Counter[str] = Counter()
        kind = text_of(self.header, "kind")
        conversation = Conversation(
            "gemini-cli",
            "Gemini CLI session",
            text_of(self.header, "sessionId"),
            self.ledger,
            part="subagent" if kind == "subagent" else "",
            caveats=[NO_SYSTEM_PROMPT, NO_TOOLS],
        )
        for slot in self.history:
            _settle(slot)
            conversation.drafts.extend(slot.drafts)
            models[origin(text_of(slot.record, "model"))] += bool(slot.drafts)
        for rewrite in self.rewrites:
            compaction = _compaction(rewrite)
            if compaction is not None:
                conversation.compactions.append(compaction)
        conversation.model = next((model for model, _ in models.most_common() if model), "")
        return conversation


def _settle(slot: _Slot) -> None:
    """Make a message of a slot's last record and settle the lines that wrote it."""
    if slot.undone:
        for line in slot.lines:
            line.skip(_UNDONE)
        return
    *earlier, last = slot.lines
    slot.drafts = [last.became(draft) for draft in drafts_of(slot.record, last)]
    for line in earlier:
        if slot.drafts:
            line.merge(slot.drafts[0])
        else:
            line.skip("written anew by a later line")


def _compaction(rewrite: _Rewrite) -> Compaction | None:
    """Return what a rewritten list tells of a compression; None if it only repeats."""
    known = [draft for slot in rewrite.before for draft in slot.drafts]
    repeated = KnownDrafts(known)
    scratch = Line("", "")
    state: list[Draft] = []
    made: list[Draft] = []
    answered: set[str | None] = set()
    for record in rewrite.records:
        for draft in drafts_of(record, scratch):
            # Newer sessions repeat a call's result as a message of its own.
            if draft.role != "tool" or draft.call_id not in answered:
                same = repeated.match(draft)
                state.append(same or draft)
                made.extend([] if same else [draft])
            answered.add(draft.call_id if draft.role == "tool" else None)
    if not rewrite.shortened and (not made or rewrite.line.drafts):
        if not rewrite.line.drafts:
            rewrite.line.skip("repeats the messages")
        return None
    rewrite.line.skip("a compression of the history, recorded beside the messages")
    summary = next((draft.text for draft in made if draft.role == "user"), "")
    return Compaction(
        after=known[-1] if known else None,
        kind="summary" if rewrite.shortened and summary else "clear",
        summary=summary or None if rewrite.shortened else None,
        state=state,
    )


def _says(record: dict[str, Any]) -> bool:
    return any(draft.role != "tool" and draft.text for draft in drafts_of(record, Line("", "")))


def _kind(record: Any) -> str:
    for key in ("$rewindTo", "$set"):
        if isinstance(record, dict) and key in record:
            return key
    return label(text_of(record, "type")) if text_of(record, "type") else "header"


def _recognise(source: SourceFile) -> str | None:
    document = source.document
    records = list_of(document, "messages") or source.head[1:]
    kinds = {text_of(record, "type") for record in records} - {""}
    if "gemini" not in kinds and kinds - {*KINDS}:
        return None  # of a descendant of Gemini CLI, whose agent has another name
    if (
        {"sessionId", "projectHash"} <= set(document if isinstance(document, dict) else ())
    ) and isinstance(document.get("messages"), list):
        return "a JSON object with sessionId, projectHash and messages"
    first = source.head[0] if source.head else None
    if isinstance(first, dict) and {"sessionId", "projectHash"} <= set(first):
        return "a first line with sessionId and projectHash, then a record per line"
    return None


def _read(source: SourceFile) -> Iterator[Conversation]:
    session = _Session()
    document = source.document
    if isinstance(document, dict) and isinstance(document.get("messages"), list):
        session.header = document
        for number, record in enumerate(document["messages"], 1):
            line = session.ledger.enter(f"message {number}", _kind(record))
            if isinstance(record, dict):
                session.take(record, line)
            else:
                line.is_unknown("expected a JSON object")
    else:
        for value in source.values():
            session.feed(value)
    if not {"sessionId", "projectHash"} & session.header.keys():
        raise DataError(f"{source.path}: expected {_EXPECTED}, found none")
    conversation = session.finish()
    if "messages" in session.header:
        conversation.caveats.append(_NO_MARKS)
    if source.document_replaced:
        conversation.caveats.append(REPLACED_BYTES)
    yield conversation


FORMAT = Format(
    name="gemini-cli",
    title="Gemini CLI sessions (JSON or JSONL)",
    recognise=_recognise,
    read=_read,
)
