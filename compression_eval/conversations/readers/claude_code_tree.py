"""The tree of a Claude Code session: its lines, its threads, and what of each was not undone.

Every line names the line before it. A rewind or retry leaves a branch behind; only the branch
that ends in the last message counts. Some lines hang beside it without being undone: parallel
calls and their results, what hooks reported, and a boundary whose kept tail was linked past it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compression_eval.conversations.fields import Json, entries
from compression_eval.conversations.readers.base import marks_of, with_subtype
from compression_eval.conversations.sources import Value

SPEAKS = ("user", "assistant")
LINKED = (*SPEAKS, "system", "attachment", "progress")
"""Types of lines that form the tree of a session."""

_KEPT = {
    "user": (
        "message",
        "origin",
        "planContent",
        "isMeta",
        "isCompactSummary",
        "isVisibleInTranscriptOnly",
    ),
    "assistant": ("message", "isApiErrorMessage"),
    "attachment": ("attachment",),
    "system": ("compactMetadata", "microcompactMetadata"),
    "queue-operation": ("content",),
}
"""Other fields are not held while a file is read: they repeat results for the display."""

_SUBTYPES = {
    "system": ("subtype",),
    "queue-operation": ("operation",),
    "attachment": ("attachment", "type"),
    "progress": ("data", "type"),
}
"""Where a line says of which sort it is."""

_NONE = -1


@dataclass(eq=False)
class Record:
    """One line."""

    place: str
    kind: str
    """As it is entered in the account: ``attachment:queued_command``."""
    type: str = ""
    subtype: str = ""
    uuid: str = ""
    parent: str = ""
    """The line before it in its branch; empty at a root."""
    session: str = ""
    agent: str = ""
    """Id of the subagent, if its lines carry one."""
    sidechain: bool = False
    version: str = ""
    value: Json = field(default_factory=Json)
    """The fields that are looked into later."""
    problem: str = ""
    foreign: bool = False
    """Whether the line is JSON, but no object."""
    hook: str = ""
    """Name of the hook that the line reports on."""
    restart: bool = False
    """Whether the context was cleared before this line, so as to carry out a plan."""
    replaced: bool = False
    display_copy: bool = False
    """Whether a second form of a tool's result stood beside it."""

    @classmethod
    def of(cls, item: Value) -> "Record":
        """Return a line as a record."""
        if item.problem:
            return cls(item.place, "unreadable", problem=item.problem)
        if not isinstance(item.value, dict):
            return cls(item.place, "no object", foreign=True)
        value = Json(item.value)
        kind = value.text("type")
        subtype = value.text(*_SUBTYPES[kind]) if kind in _SUBTYPES else ""
        return cls(
            place=item.place,
            kind=with_subtype(kind, subtype),
            type=kind,
            subtype=subtype,
            uuid=value.text("uuid"),
            parent=value.first("parentUuid", "logicalParentUuid"),
            session=value.text("sessionId"),
            agent=value.text("agentId"),
            sidechain=value.at("isSidechain") is True,
            hook=value.text("data", "hookName") or value.text("attachment", "hookName"),
            version=value.text("version"),
            value=Json({key: value[key] for key in _KEPT.get(kind, ()) if key in value}),
            replaced=item.replaced,
            display_copy="toolUseResult" in value,
        )

    @property
    def linked(self) -> bool:
        """Whether the line is part of the tree."""
        return bool(self.uuid) and self.type in LINKED

    @property
    def speaks(self) -> bool:
        """Whether the line is of a message."""
        return self.type in SPEAKS

    @property
    def boundary(self) -> bool:
        """Whether the context was compacted here."""
        return self.kind == "system:compact_boundary"

    @property
    def summary(self) -> bool:
        """Whether this is the user message that hands a summary on."""
        return self.type == "user" and self.value.at("isCompactSummary") is True

    @property
    def plan(self) -> bool:
        """Whether this is the user message that hands a plan on to a cleared context."""
        start = marks_of("claude_code")["plan_start"]
        planned = bool(self.value.text("planContent")) or self.said.startswith(start)
        return self.type == "user" and planned

    @property
    def injected(self) -> bool:
        """Whether a user line says of itself that no person wrote it."""
        kind = self.value.text("origin", "kind")
        return self.value.at("isMeta") is True or kind not in ("", "human")

    def blocks(self, kind: str) -> list[Json]:
        """Return the content blocks of a kind."""
        blocks = self.value.entries("message", "content")
        return [block for block in blocks if block.text("type") == kind]

    @property
    def said(self) -> str:
        """What the user typed, trimmed; empty for lines of any other sort."""
        prompt: Any = None
        if self.kind == "attachment:queued_command":
            prompt = self.value.at("attachment", "prompt")
        elif self.type == "user":
            prompt = self.value.at("message", "content")
        if isinstance(prompt, list):
            prompt = "\n".join(block.text("text") for block in entries(prompt))
        return prompt.strip() if isinstance(prompt, str) else ""


_Key = tuple[str, str, int]
"""What sort of thread it is, whose, and which one of a session that was cleared, from 1."""


@dataclass
class ThreadRecords:
    """The lines of one thread, in the order of the file."""

    session: str
    part: str
    records: list[Record] = field(default_factory=list)


def split_threads(records: Sequence[Record]) -> list[ThreadRecords]:
    """Return the threads of a file: each session, each subagent and each side chain its own."""
    threads: dict[_Key, ThreadRecords] = {}
    owner: dict[str, _Key] = {}
    placed: list[_Key | None] = []
    side: _Key | None = None
    current: dict[str, _Key] = {}
    """The thread that the lines of a session outside the tree belong to."""
    spoken: set[_Key] = set()
    for index, item in enumerate(records):
        if not item.linked:
            placed.append(current.get(item.session))
            continue
        above = owner.get(item.parent)
        part = ""
        if not item.sidechain:
            key = current.get(item.session, ("main", item.session, 1))
            if above and above[0] == "main":
                key = above
            elif key in spoken and _opens_thread(records, index):
                number = 2 + sum(known[0] == "main" for known in threads if known != key)
                key = ("main", item.session, number)
            current[item.session] = key
            spoken.update([key] if item.speaks else [])
            part = f"clear-{key[2]}" if key[2] > 1 else ""
        elif item.agent:
            key, part = ("agent", item.agent, 1), f"agent-{item.agent}"
        else:
            if above and above[0] == "side":
                key = above
            else:
                key = side if side and item.parent and not above else ("side", item.uuid, 1)
                side = key
            part = f"side-{1 + sum(known[0] == 'side' for known in threads)}"
        owner.setdefault(item.uuid, key)
        placed.append(key)
        if key not in threads:
            threads[key] = ThreadRecords(item.session, part)
    first = next((key for key in threads if key[0] == "main"), next(iter(threads), None))
    for item, found in zip(records, placed, strict=True):
        own: _Key = ("main", item.session, 1)
        key_of_line = found or (own if own in threads else first)
        if key_of_line is not None:
            threads[key_of_line].records.append(item)
    return list(threads.values())


def _opens_thread(records: Sequence[Record], index: int) -> bool:
    """Return whether a line that names none before it begins a conversation of its own.

    It does so behind a ``/clear``. A context that was cleared to carry out a plan goes on with the
    plan: that is a compaction, and its line is marked as a restart. All else is a rewind.
    """
    root = records[index]
    if root.parent or root.boundary or root.summary:
        return False
    later = (item for item in records[index:] if item.session == root.session)
    first = next((item for item in later if item.speaks and not item.sidechain), None)
    marks = marks_of("claude_code")
    by_hook = root.hook == marks["clear_hook"]
    root.restart = first is not None and first.plan and (by_hook or root is first)
    return not root.restart and (by_hook or marks["clear_command"] in root.said)


@dataclass(frozen=True)
class Preserved:
    """The messages that a compaction kept as they were; falsy if it kept none."""

    uuids: tuple[str, ...] = ()
    """All of them, or with `ends_only` the first and the last."""
    ends_only: bool = False
    before_summary: bool = False
    """Whether they stand before the summary and not behind it."""

    def __bool__(self) -> bool:
        return bool(self.uuids)


def preserved(boundary: Record) -> Preserved:
    """Return what a boundary says was kept as it is."""
    metadata = boundary.value.entry("compactMetadata")
    segment, kept = metadata.entry("preservedSegment"), metadata.at("preservedMessages")
    ends = (segment.text("headUuid"), segment.text("tailUuid"))
    if all(ends):
        return Preserved(ends, True, segment.text("anchorUuid") == boundary.uuid)
    items = Json.of(kept).listed("uuids") or (kept if isinstance(kept, list) else [])
    names = (item if isinstance(item, str) else Json.of(item).text("uuid") for item in items)
    before = Json.of(kept).text("anchorUuid") == boundary.uuid
    return Preserved(tuple(filter(None, names)), before_summary=before)


class Tree:
    """The lines of one thread and how they hang together. Indices are those of ``records``."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self.first: dict[str, int] = {}
        """Index of the first line with an uuid; further ones repeat it."""
        self.guessed = 0
        """Lines whose predecessor is not in the file; the line before them was taken."""
        self.cut_off = False
        """Whether the first line names one before it that is not in the file."""
        self._parents = self._linked()
        self._path: set[int] = set()
        self.followed = self._followed()
        """Indices of the lines that were not undone."""

    def repeats(self, index: int) -> int | None:
        """Return the index of the line that this one repeats; None if it is the first."""
        item = self._records[index]
        first = self.first.get(item.uuid, index) if item.linked else index
        return None if first == index else first

    def _linked(self) -> list[int]:
        """Return the index of every line's predecessor."""
        for index, item in enumerate(self._records):
            if item.linked:
                self.first.setdefault(item.uuid, index)
        parents: list[int] = []
        previous = _NONE
        for index, item in enumerate(self._records):
            found = _NONE
            if item.linked:
                found = self.first.get(item.parent, _NONE) if item.parent else _NONE
                goes_on = bool(item.parent) or item.boundary or item.summary or item.restart
                if found == _NONE and goes_on and previous != _NONE:
                    found = previous
                    self.guessed += not item.restart
                elif found == _NONE and previous == _NONE:
                    self.cut_off = self.cut_off or bool(item.parent)
                if self.first[item.uuid] == index and item.type != "progress":
                    previous = index
            parents.append(found)
        return parents

    def _followed(self) -> set[int]:
        """Return the path to the last message, with what hangs beside it."""
        ends = (
            index
            for index in reversed(range(len(self._records)))
            if (item := self._records[index]).linked and (item.speaks or item.boundary)
            if self.repeats(index) is None
        )
        index = next(ends, _NONE)
        while index != _NONE and index not in self._path:
            self._path.add(index)
            index = self._parents[index]
        return self._with_companions(self._path | self._boundaries_linked_past())

    def _boundaries_linked_past(self) -> set[int]:
        """Return boundaries beside the path whose kept tail is on it, and their summaries.

        What follows such a compaction names the last kept message as its predecessor.
        """
        found: set[int] = set()
        for index, item in enumerate(self._records):
            if not item.boundary or index in self._path:
                continue
            kept = preserved(item)
            tail = self.first.get(kept.uuids[-1], _NONE) if kept else _NONE
            between = self._path & set(range(tail + 1, index))
            if tail in self._path and not any(self._records[place].speaks for place in between):
                found.add(index)
        summaries = (index for index, item in enumerate(self._records) if item.summary)
        return found | {index for index in summaries if self._parents[index] in found}

    def _with_companions(self, kept: set[int]) -> set[int]:
        """Add the parallel calls, results and reports that belong to what is kept."""
        same_message: dict[str, list[int]] = defaultdict(list)
        answers: dict[str, list[int]] = defaultdict(list)
        below: dict[int, list[int]] = defaultdict(list)
        speaking: set[int] = set()
        """Lines beside the path that have a message further down."""
        for index, item in enumerate(self._records):
            above = self._parents[index] if item.speaks else _NONE
            while above != _NONE and above not in speaking:
                speaking.add(above)
                above = self._parents[above]
            if not item.linked or self.repeats(index) is not None:
                continue
            if item.type == "assistant" and (name := item.value.text("message", "id")):
                same_message[name].append(index)
            for block in item.blocks("tool_result") if item.type == "user" else ():
                answers[block.text("tool_use_id")].append(index)
            if not item.speaks:
                below[self._parents[index]].append(index)
        result = set(kept)
        waiting = sorted(kept, reverse=True)
        while waiting:
            index = waiting.pop()
            item = self._records[index]
            near = [child for child in below[index] if child not in speaking]
            if item.type == "assistant":
                near += same_message[item.value.text("message", "id")]
                for block in item.blocks("tool_use"):
                    candidates = answers[block.text("id")]
                    if not any(candidate in result for candidate in candidates):
                        near += candidates[:1]
            fresh = [other for other in near if other not in result]
            result.update(fresh)
            waiting.extend(fresh)
        return result
