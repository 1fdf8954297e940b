"""The lines of a Claude Code session: parsed, split into threads, linked, and chosen from.

Every line names the line before it. A rewind or retry leaves a branch behind; only the branch
that ends in the last message counts. Some lines hang next to it without being undone: parallel
calls and their results, what hooks reported, and a boundary whose kept tail was linked past it.

A prompt that the user typed while the agent worked is in operations of a queue. It may be
in a user line or an attachment as well, once it was handed over, or nowhere else; or it was taken
back for editing.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from compression_eval.conversations.drafts import Draft, Line
from compression_eval.conversations.fields import Json, entries
from compression_eval.conversations.readers.base import marks_of
from compression_eval.conversations.readers.content import content_of
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
    "timestamp",
}
"""Other fields are not held while a file is read: they repeat results for the display."""

_SUBTYPE_FIELDS = {
    "system": ("subtype",),
    "queue-operation": ("operation",),
    "attachment": ("attachment", "type"),
    "progress": ("data", "type"),
}

_NONE = -1


class Record:
    """One line of the file; of an object only the fields that are read later are held."""

    def __init__(self, value: Value) -> None:
        entry = Json.of(value.value)
        self.type = entry.text("type")
        path = _SUBTYPE_FIELDS.get(self.type)
        self.subtype = entry.text(*path) if path else ""
        self.uuid, self.version = entry.text("uuid"), entry.text("version")
        self.parent = entry.first("parentUuid", "logicalParentUuid")
        """The uuid of the line before it in its branch; empty at a root."""
        self.session, self.agent = entry.text("sessionId"), entry.text("agentId")
        """Ids of the session, and of the subagent if its lines carry one."""
        self.sidechain = entry.at("isSidechain") is True
        self.restarts = False
        """Whether the context was cleared before it to carry out a plan."""
        self.hook = entry.text("data", "hookName") or entry.text("attachment", "hookName")
        """Name of the hook that the line reports on."""
        self.linked = bool(self.uuid) and self.type in LINKED
        """Whether the line is part of the tree."""
        self.speaks = self.type in SPEAKS
        self.boundary = (self.type, self.subtype) == ("system", "compact_boundary")
        """Whether the context was compacted here."""
        self.entry, self.value = Json(), replace(value, replaced=False)
        if isinstance(value.value, dict):
            self.entry = Json(type=self.type, subtype=self.subtype)
            self.entry.update((key, part) for key, part in entry.items() if key in _KEPT_FIELDS)
            self.value = replace(value, value=self.entry)
        self.prompt = self._prompt()
        """What the user typed, trimmed; empty for lines of any other sort."""

    @property
    def shell(self) -> bool:
        """Whether the user ran a command with ``!``, or this is what it printed."""
        return self.type == "user" and self.prompt.startswith(marks_of("claude_code")["shell"])

    @property
    def summary(self) -> bool:
        """Whether this is the user message that hands a summary on."""
        return self.type == "user" and self.entry.at("isCompactSummary") is True

    @property
    def root(self) -> bool:
        """Whether nothing needs to be before the line."""
        follows = self.type == "assistant" or bool(self.blocks("tool_result"))
        return not (self.parent or self.boundary or self.summary or follows)

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

    def _prompt(self) -> str:
        prompt: Any = None
        if (self.type, self.subtype) == ("attachment", "queued_command"):
            prompt = self.entry.at("attachment", "prompt")
        elif self.type == "user":
            prompt = self.entry.at("message", "content")
        if isinstance(prompt, list):
            prompt = "\n".join(block.text("text") for block in entries(prompt))
        return prompt.strip() if isinstance(prompt, str) else ""


@dataclass
class Thread:
    """The lines of one thread, in the order of the file."""

    session: str
    part: str
    """As in `Conversation.part`."""
    records: list[Record] = field(default_factory=list)
    spoken: bool = False
    """Whether anybody has said anything in it."""


def link_in_order(records: Sequence[Record]) -> bool:
    """Link every line to the one before it in its thread, if no message names any.

    Returns:
        Whether that was so.
    """
    said = [record for record in records if record.linked and record.speaks]
    if any(record.parent for record in said) or len(said) < 2:
        return False
    if all(record.type == "user" and not record.blocks("tool_result") for record in said):
        return False  # each the first message of a session, written again
    last: dict[tuple[str, str, bool], str] = {}
    seen: set[str] = set()
    for record in records:
        if record.linked and record.uuid not in seen:
            thread = (record.session, record.agent, record.sidechain)
            record.parent = record.parent or last.get(thread, "")
            last[thread] = record.uuid
            seen.add(record.uuid)
    return True


_Key = tuple[Literal["main", "agent", "side"], str, int]
"""Of a thread: the id of the session, of the agent, or of a side chain's first line, and a number
that grows with every ``/clear``."""


def split(records: Sequence[Record]) -> list[Thread]:
    """Return the threads of a file: each session, each subagent and each side chain its own.

    A line outside the tree belongs to the thread that its session is in.
    """
    threads: dict[_Key, Thread] = {}
    keys: list[_Key | None] = []
    owners: dict[str, _Key] = {}
    """By the uuid of a line."""
    current: dict[str, _Key] = {}
    """The main thread that a session is in."""
    side: _Key | None = None
    for index, record in enumerate(records):
        above = owners.get(record.parent)
        key = current.get(record.session)
        part = ""
        if record.linked and not record.sidechain:
            key = above if above and above[0] == "main" else key or ("main", record.session, 1)
            beginning = key in threads and threads[key].spoken and _beginning(records, index)
            if beginning == "clear":
                number = sum(known[0] == "main" for known in threads) + 1
                key, part = ("main", record.session, number), f"clear-{number}"
            record.restarts = beginning == "plan"
            current[record.session] = key
        elif record.linked and record.agent:
            key, part = ("agent", record.agent, 1), f"agent-{record.agent}"
        elif record.linked:
            goes_on = side if record.parent and not above else None
            beside = above if above and above[0] == "side" else goes_on
            key = side = beside or ("side", record.uuid, 1)
            part = f"side-{sum(known[0] == 'side' for known in threads) + 1}"
        if record.linked and key:
            owners.setdefault(record.uuid, key)
            thread = threads.setdefault(key, Thread(record.session, part))
            thread.spoken = thread.spoken or record.speaks
        keys.append(key)
    first = next((key for key in threads if key[0] == "main"), next(iter(threads), None))
    for record, key in zip(records, keys, strict=True):
        own: _Key = ("main", record.session, 1)
        if place := key or (own if own in threads else first):
            threads[place].records.append(record)
    return list(threads.values())


def _beginning(records: Sequence[Record], index: int) -> Literal["clear", "plan"] | None:
    """Return what begins with a line: a conversation behind a ``/clear``, or work on a plan.

    A context that was cleared to carry out a plan continues with the plan: that is a compaction. A
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
    """Whether they are before the summary and not behind it."""


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


class Links:
    """How the lines of a thread hang together, by their indices."""

    def __init__(self, records: Sequence[Record]) -> None:
        """Find the predecessor of every line."""
        self.first: dict[str, int] = {}
        """The line with an uuid: the first, or the last one that says something else."""
        self.repeats: set[int] = set()
        """Lines with the uuid of an earlier one, which they repeat."""
        self.parents = [_NONE] * len(records)
        """Every line's predecessor, or -1."""
        self.guessed = 0
        """How many predecessors are not in the file; the line before was taken."""
        self.cut_off = False
        """Whether the first line names one before it that is not in the file."""
        for index, record in enumerate(records):
            earlier = self.first.get(record.uuid, _NONE) if record.linked else _NONE
            if earlier != _NONE and _says_the_same(record, records[earlier]):
                self.repeats.add(index)
            elif record.linked:
                self.first[record.uuid] = index
                self.parents[index] = earlier
        previous = _NONE
        behind: dict[int, int] = {}
        shells, shared = set[int](), set[int]()
        for index, record in enumerate(records):
            if not record.linked:
                continue
            parent = self.first.get(record.parent, _NONE)
            reported = parent != _NONE and records[parent].type == "progress"
            if reported and record.type != "progress" and previous != _NONE:
                # A report hangs at its call, though the work went on before the next line named
                # it. Where a second line names the same report, the user has gone back there.
                parent = behind.setdefault(parent, previous)
            if parent in shared or (record.shell and parent in shells):
                # Old versions go on naming the message before the first of the user's commands.
                shared.add(parent)
                parent = previous
            elif record.shell:
                shells.add(parent)
            if self.parents[index] != _NONE:  # it follows the line whose uuid it has
                parent = self.parents[index]
            elif parent == _NONE and previous == _NONE:
                self.cut_off = self.cut_off or bool(record.parent)
            elif parent == _NONE and (record.restarts or not record.root):
                parent = previous
                self.guessed += not record.restarts
            self.parents[index] = parent
            if index not in self.repeats and record.type != "progress":
                previous = index


def _says_the_same(record: Record, other: Record) -> bool:
    said, known = (each.entry.at("message", "content") for each in (record, other))
    return record.type == other.type and bool(said == known)


def follow(records: Sequence[Record], links: Links) -> set[int]:
    """Return the lines that were not undone: the path to the last message, and its side lines."""
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
    """Return boundaries whose kept tail is on the path, and their summaries.

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


class Queue(NamedTuple):
    """What became of the prompts that operations hold; those that a line contains are not here."""

    handed_over: dict[int, int]
    """For an operation that hands a prompt over: the operation that contains it."""
    left: dict[int, str]
    """Operations whose prompt was never sent, with the reason."""
    waiting: list[int]
    """Operations whose prompts still wait at the end."""


def match_prompts(records: Sequence[Record], followed: set[int]) -> Queue:
    """Find out for every operation of the queue where its prompt is."""
    prompts = {i: item.prompt for i, item in enumerate(records) if item.prompt and not item.summary}
    free = dict(prompts)
    """Those that are no prompt of the queue yet: each is one only."""
    queue = Queue({}, {}, [])
    waiting: dict[int, str] = {}
    operations = ((i, item) for i, item in enumerate(records) if item.type == "queue-operation")
    for index, record in operations:
        content = record.entry.at("content")
        if record.subtype == "enqueue":
            waiting.update({index: text} if (text := _text_of(content)) is not None else {})
        elif record.subtype == "popAll":
            queue.left.update(dict.fromkeys(waiting, "taken back by the user for editing"))
            waiting.clear()
        elif record.subtype in ("dequeue", "remove") and waiting:
            wanted = content.strip() if isinstance(content, str) else None
            named = (at for at, text in waiting.items() if wanted in (None, text))
            found = next(named, next(iter(waiting)))
            text = waiting.pop(found)
            place = _same(free, found, text)
            free.pop(place, None)
            if place != _NONE or _within_next(prompts, index, text):
                continue
            if _undone(records, followed, index):
                queue.left[found] = UNDONE
            else:
                queue.handed_over[index] = found
    for index, text in waiting.items():
        if not free.pop(_same(free, index, text), None):
            queue.waiting.append(index)
    return queue


def _text_of(content: Any) -> str | None:
    """Return a prompt's text; None if it is none, or nested too deeply."""
    if not isinstance(content, str | list):
        return None
    try:
        return Draft("user", content_of(content, Line())).text.strip()
    except RecursionError:
        return None


def _same(prompts: dict[int, str], index: int, text: str) -> int:
    """Return the first line behind an operation that is its prompt."""
    command = text.split(maxsplit=1)[0] if text.startswith("/") else ""
    named, starts = f"<command-name>{command}</command-name>", marks_of("claude_code")["command"]
    for place, prompt in prompts.items() if text else ():
        as_command = command and prompt.startswith(starts) and named in prompt
        if place >= index and (prompt == text or as_command):
            return place
    return _NONE


def _within_next(prompts: dict[int, str], index: int, text: str) -> bool:
    """Return whether the next line with a prompt contains this one and others that waited."""
    prompt = next((prompt for place, prompt in prompts.items() if place > index), text)
    return bool(text) and prompt != text and f"\n{text}\n" in f"\n{prompt}\n"


def _undone(records: Sequence[Record], followed: set[int], index: int) -> bool:
    """Return whether the messages around a line are on a branch that was left."""
    sides = (range(index - 1, -1, -1), range(index + 1, len(records)))
    messages = ((i for i in side if records[i].linked and records[i].speaks) for side in sides)
    around = {place for side in messages if (place := next(side, None)) is not None}
    return bool(around) and not around & followed
