"""The lines of a Claude Code session: parsed, split into threads, linked, and chosen from.

Every line names the line before it. A rewind or retry leaves a branch behind; only the branch
that ends in the last message counts. Some lines hang beside it without being undone: parallel
calls and their results, what hooks reported, and a boundary whose kept tail was linked past it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from compression_eval.conversations.fields import Json, entries
from compression_eval.conversations.readers.base import marks_of
from compression_eval.conversations.sources import Value

SPEAKS = ("user", "assistant")
LINKED = (*SPEAKS, "system", "attachment", "progress")
"""Types of lines that form the tree of a session."""

UNDONE = "on a branch that the user left (a rewind or a retry)"

_KEPT_FIELDS = {
    "attachment",
    "compactMetadata",
    "content",
    "isApiErrorMessage",
    "isCompactSummary",
    "isMeta",
    "isVisibleInTranscriptOnly",
    "message",
    "microcompactMetadata",
    "origin",
    "planContent",
}
"""Other fields are not held while a file is read: they repeat results for the display."""

_SUBTYPE_FIELDS = {
    "system": ("subtype",),
    "queue-operation": ("operation",),
    "attachment": ("attachment", "type"),
    "progress": ("data", "type"),
}

_NONE = -1


@dataclass(frozen=True, eq=False)
class Record:
    """One line of the file."""

    value: Value
    """What stands there; of an object only the fields that are read later."""
    type: str = ""
    subtype: str = ""
    uuid: str = ""
    parent: str = ""
    """The uuid of the line before it in its branch; empty at a root."""
    session: str = ""
    agent: str = ""
    """Id of the subagent, if its lines carry one."""
    sidechain: bool = False
    version: str = ""
    hook: str = ""
    """Name of the hook that the line reports on."""
    display_copy: bool = False
    """Whether a second form of a tool's result stood beside it."""

    @property
    def entry(self) -> Json:
        """The fields that are read later."""
        return Json.of(self.value.value)

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
        return (self.type, self.subtype) == ("system", "compact_boundary")

    @property
    def summary(self) -> bool:
        """Whether this is the user message that hands a summary on."""
        return self.type == "user" and self.entry.at("isCompactSummary") is True

    @property
    def root(self) -> bool:
        """Whether nothing needs to stand before the line."""
        return not (self.parent or self.boundary or self.summary)

    @property
    def plan(self) -> bool:
        """Whether this is the user message that hands a plan on to a cleared context."""
        start = marks_of("claude_code")["plan_start"]
        planned = bool(self.entry.text("planContent")) or self.prompt.startswith(start)
        return self.type == "user" and planned

    def blocks(self, kind: str) -> list[Json]:
        """Return the content blocks of a kind."""
        blocks = self.entry.entries("message", "content")
        return [block for block in blocks if block.text("type") == kind]

    @property
    def prompt(self) -> str:
        """What the user typed, trimmed; empty for lines of any other sort."""
        prompt: Any = None
        if (self.type, self.subtype) == ("attachment", "queued_command"):
            prompt = self.entry.at("attachment", "prompt")
        elif self.type == "user":
            prompt = self.entry.at("message", "content")
        if isinstance(prompt, list):
            prompt = "\n".join(block.text("text") for block in entries(prompt))
        return prompt.strip() if isinstance(prompt, str) else ""


def parse(value: Value) -> Record:
    """Return a line as a record."""
    if value.problem or not isinstance(value.value, dict):
        return Record(replace(value, replaced=False))
    entry = Json(value.value)
    kind = entry.text("type")
    subtype = entry.text(*_SUBTYPE_FIELDS[kind]) if kind in _SUBTYPE_FIELDS else ""
    kept = {key: part for key, part in entry.items() if key in _KEPT_FIELDS}
    return Record(
        replace(value, value={"type": kind, "subtype": subtype, **kept}),
        kind,
        subtype,
        uuid=entry.text("uuid"),
        parent=entry.first("parentUuid", "logicalParentUuid"),
        session=entry.text("sessionId"),
        agent=entry.text("agentId"),
        sidechain=entry.at("isSidechain") is True,
        version=entry.text("version"),
        hook=entry.text("data", "hookName") or entry.text("attachment", "hookName"),
        display_copy="toolUseResult" in entry,
    )


@dataclass
class Thread:
    """The lines of one thread, in the order of the file."""

    session: str
    part: str
    """As in `Conversation.part`."""
    records: list[Record] = field(default_factory=list)
    restarts: set[int] = field(default_factory=set)
    """Indices of records before which the context was cleared to carry out a plan."""


class _Key(NamedTuple):
    sort: Literal["main", "agent", "side"]
    name: str
    """Of the session, of the agent, or of a side chain's first line."""
    number: int = 1
    """Grows with every ``/clear``."""


def split(records: Sequence[Record]) -> list[Thread]:
    """Return the threads of a file: each session, each subagent and each side chain its own."""
    keys, restarts = _thread_keys(records)
    threads: dict[_Key, Thread] = {}
    for record, key in zip(records, keys, strict=True):
        if record.linked and key and key not in threads:
            sides = sum(known.sort == "side" for known in threads)
            clear = f"clear-{key.number}" if key.number > 1 else ""
            parts = {"main": clear, "agent": f"agent-{key.name}", "side": f"side-{sides + 1}"}
            threads[key] = Thread(record.session, parts[key.sort])
    first = next((key for key in threads if key.sort == "main"), next(iter(threads), None))
    for index, (record, key) in enumerate(zip(records, keys, strict=True)):
        own = _Key("main", record.session)
        place = key or (own if own in threads else first)
        if place:
            thread = threads[place]
            thread.restarts.update([len(thread.records)] if index in restarts else [])
            thread.records.append(record)
    return list(threads.values())


def _thread_keys(records: Sequence[Record]) -> tuple[list[_Key | None], set[int]]:
    """Return the thread of every line, and the indices of those where one restarts with a plan.

    A line outside the tree belongs to the thread that its session is in; None before the first.
    """
    keys: list[_Key | None] = []
    restarts: set[int] = set()
    owners: dict[str, _Key] = {}
    """By the uuid of a line."""
    current: dict[str, _Key] = {}
    """The main thread that a session is in."""
    spoken: dict[_Key, bool] = {}
    """The main threads, and whether anybody has said anything in them."""
    side: _Key | None = None
    for index, record in enumerate(records):
        above = owners.get(record.parent)
        key = current.get(record.session)
        if record.linked and not record.sidechain:
            key = above if above and above.sort == "main" else key or _Key("main", record.session)
            beginning = _beginning(records, index) if spoken.get(key) else None
            if beginning == "clear":
                key = _Key("main", record.session, len(spoken) + 1)
            elif beginning == "plan":
                restarts.add(index)
            current[record.session] = key
            spoken[key] = spoken.get(key, False) or record.speaks
        elif record.linked and record.agent:
            key = _Key("agent", record.agent)
        elif record.linked:
            goes_on = side if record.parent and not above else None
            beside = above if above and above.sort == "side" else goes_on
            key = side = beside or _Key("side", record.uuid)
        if record.linked and key:
            owners.setdefault(record.uuid, key)
        keys.append(key)
    return keys, restarts


def _beginning(records: Sequence[Record], index: int) -> Literal["clear", "plan"] | None:
    """Return what begins with a line: a conversation behind a ``/clear``, or work on a plan.

    A context that was cleared to carry out a plan goes on with the plan: that is a compaction. A
    root that is neither is a rewind.
    """
    record, marks = records[index], marks_of("claude_code")
    if not record.root:
        return None
    later = (item for item in records[index:] if item.session == record.session)
    first = next((item for item in later if item.speaks and not item.sidechain), None)
    by_hook = record.hook == marks["clear_hook"]
    if first and first.plan and (by_hook or record is first):
        return "plan"
    return "clear" if by_hook or marks["clear_command"] in record.prompt else None


class Preserved(NamedTuple):
    """The messages that a compaction kept as they were."""

    uuids: tuple[str, ...] = ()
    """All of them, or with `ends_only` the first and the last."""
    ends_only: bool = False
    before_summary: bool = False
    """Whether they stand before the summary and not behind it."""


def preserved(boundary: Record) -> Preserved:
    """Return what a boundary says was kept as it is."""
    metadata = boundary.entry.entry("compactMetadata")
    segment, kept = metadata.entry("preservedSegment"), metadata.at("preservedMessages")
    ends = (segment.text("headUuid"), segment.text("tailUuid"))
    if all(ends):
        return Preserved(ends, True, segment.text("anchorUuid") == boundary.uuid)
    items = Json.of(kept).listed("uuids") or (kept if isinstance(kept, list) else [])
    names = (item if isinstance(item, str) else Json.of(item).text("uuid") for item in items)
    before = Json.of(kept).text("anchorUuid") == boundary.uuid
    return Preserved(tuple(filter(None, names)), before_summary=before)


@dataclass(frozen=True)
class Links:
    """How the lines of a thread hang together, by their indices."""

    first: dict[str, int]
    """The first line with an uuid."""
    repeats: dict[int, int]
    """Lines with the uuid of an earlier one, which they repeat."""
    parents: list[int]
    """Every line's predecessor, or -1."""
    guessed: int
    """How many predecessors are not in the file; the line before was taken."""
    cut_off: bool
    """Whether the first line names one before it that is not in the file."""


def link(thread: Thread) -> Links:
    """Find the predecessor of every line."""
    first: dict[str, int] = {}
    repeats: dict[int, int] = {}
    for index, record in enumerate(thread.records):
        if record.linked and first.setdefault(record.uuid, index) != index:
            repeats[index] = first[record.uuid]
    parents = [_NONE] * len(thread.records)
    previous, guessed, cut_off = _NONE, 0, False
    for index, record in enumerate(thread.records):
        if not record.linked:
            continue
        restarts = index in thread.restarts
        parents[index] = first.get(record.parent, _NONE)
        if parents[index] == _NONE and previous == _NONE:
            cut_off = cut_off or bool(record.parent)
        elif parents[index] == _NONE and (restarts or not record.root):
            parents[index] = previous
            guessed += not restarts
        if index not in repeats and record.type != "progress":
            previous = index
    return Links(first, repeats, parents, guessed, cut_off)


def follow(records: Sequence[Record], links: Links) -> set[int]:
    """Return the lines that were not undone: the path to the last message, and what is beside."""
    ends = (
        index
        for index in reversed(range(len(records)))
        if records[index].linked and (records[index].speaks or records[index].boundary)
        if index not in links.repeats
    )
    path: set[int] = set()
    index = next(ends, _NONE)
    while index != _NONE and index not in path:
        path.add(index)
        index = links.parents[index]
    return _with_companions(records, links, path | _boundaries_beside(records, links, path))


def _boundaries_beside(records: Sequence[Record], links: Links, path: set[int]) -> set[int]:
    """Return boundaries beside the path whose kept tail is on it, and their summaries.

    What follows such a compaction names the last kept message as its predecessor.
    """
    found: set[int] = set()
    for index, record in enumerate(records):
        if not record.boundary or index in path:
            continue
        kept = preserved(record).uuids
        tail = links.first.get(kept[-1], _NONE) if kept else _NONE
        between = path & set(range(tail + 1, index))
        if tail in path and not any(records[place].speaks for place in between):
            found.add(index)
    summaries = (index for index, record in enumerate(records) if record.summary)
    return found | {index for index in summaries if links.parents[index] in found}


def _with_companions(records: Sequence[Record], links: Links, kept: set[int]) -> set[int]:
    """Add the parallel calls, results and reports that belong to what is kept."""
    same_message: dict[str, list[int]] = defaultdict(list)
    answers: dict[str, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    speaking: set[int] = set()
    """Lines with a message further down."""
    for index, record in enumerate(records):
        above = links.parents[index] if record.speaks else _NONE
        while above != _NONE and above not in speaking:
            speaking.add(above)
            above = links.parents[above]
        if not record.linked or index in links.repeats:
            continue
        if record.type == "assistant" and (name := record.entry.text("message", "id")):
            same_message[name].append(index)
        for block in record.blocks("tool_result") if record.type == "user" else ():
            answers[block.text("tool_use_id")].append(index)
        if not record.speaks:
            below[links.parents[index]].append(index)
    result = set(kept)
    waiting = sorted(kept, reverse=True)
    while waiting:
        index = waiting.pop()
        record = records[index]
        near = [child for child in below[index] if child not in speaking]
        if record.type == "assistant":
            near += same_message[record.entry.text("message", "id")]
            for block in record.blocks("tool_use"):
                candidates = answers[block.text("id")]
                if not any(candidate in result for candidate in candidates):
                    near += candidates[:1]
        fresh = [other for other in near if other not in result]
        result.update(fresh)
        waiting.extend(fresh)
    return result
