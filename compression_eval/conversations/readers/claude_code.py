"""Sessions of Claude Code: lines in ``projects/…/<session>.jsonl``, and those of its subagents.

`claude_code_tree` tells which lines of the file are a thread, and which of them the user undid;
`claude_code_context` follows what compactions made of it. Here every line becomes what it is.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compression_eval.conversations.account import REPLACED_BYTES, Line
from compression_eval.conversations.drafts import (
    Content,
    Conversation,
    Draft,
    Image,
    inline_image,
)
from compression_eval.conversations.fields import Json, as_text, entries
from compression_eval.conversations.formats import Format
from compression_eval.conversations.readers.anthropic import AssistantTurn, content_of, user_drafts
from compression_eval.conversations.readers.base import marks_of
from compression_eval.conversations.readers.claude_code_context import Context
from compression_eval.conversations.readers.claude_code_tree import (
    LINKED,
    SPEAKS,
    Record,
    ThreadRecords,
    Tree,
    preserved,
    split_threads,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.errors import DataError

_UNDONE = "on a branch that the user left (a rewind or a retry)"
_SEEN = "lines with sessionId, uuid, parentUuid and a type such as user or assistant"
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,20}", re.ASCII)
_ARGUMENTS = re.compile(r"<command-args>\s*(?!\s|</command-args>)")
_INNER = ("file", "content", "text")


class ThreadReader:
    """Reads the lines of one thread in their order."""

    def __init__(self, thread: ThreadRecords) -> None:
        self._records = thread.records
        self._tree = Tree(self._records)
        versions = [item.version for item in thread.records if _VERSION.fullmatch(item.version)]
        self._conversation = Conversation(
            FORMAT.name,
            " ".join(["Claude Code", *versions[-1:]]),
            thread.session,
            part=thread.part,
            caveats=["the system prompt and the tools are not in the file"],
        )
        # A subagent's first line may name one of the thread that called it.
        self._context = Context(self._conversation, self._tree.cut_off and not thread.part)
        self._queue = _Queue(self._records, self._tree.followed)
        self._restarted = False
        """Whether the context was cleared to carry out a plan that has yet to come."""
        self._turns: dict[str, AssistantTurn] = defaultdict(AssistantTurn)
        self._drafts: dict[int, list[Draft]] = {}
        """What the lines became or were merged into, by their indices."""
        self._notes: dict[str, list[Draft]] = {}
        """Messages that attachments became, by the uuids of their lines."""
        self._models: Counter[str] = Counter()
        self._undone = 0

    def read(self) -> Conversation:
        """Return the conversation; the lines are given free while it is made."""
        conversation = self._conversation
        for index, item in enumerate(self._records):
            line = conversation.ledger.enter(item.place, item.kind)
            if item.replaced:
                line.leave_out("bytes", REPLACED_BYTES)
            try:
                self._take(index, item, line)
            except RecursionError:
                line.is_unknown("nested too deeply")
            item.value = Json()
        self._say(left := self._queue.left())
        if left:
            conversation.caveat(f"{len(left)} prompts still waited when the recording ended")
        if self._undone:
            conversation.caveat(
                f"{self._undone} lines on branches that the user left were left out"
            )
        if self._tree.guessed:
            conversation.caveat(
                f"{self._tree.guessed} lines follow one that is not in the file; "
                "the line before them was taken for it"
            )
        self._context.finish()
        if self._models:
            conversation.model = self._models.most_common(1)[0][0]
        return conversation

    def _take(self, index: int, item: Record, line: Line) -> None:
        others = marks_of("claude_code")["other_lines"]
        self._restarted = self._restarted or item.restart
        if item.problem:
            line.skip(item.problem)
        elif item.foreign:
            line.is_unknown("expected a JSON object")
        elif item.type == "queue-operation":
            self._say(self._queue.operate(index, line))
        elif item.type in others:
            line.skip(others[item.type])
        elif item.type not in LINKED:
            line.is_unknown("a line of a kind that is not known")
        elif not item.uuid:
            line.is_unknown("expected the field uuid as text")
        else:
            self._take_linked(index, item, line)
            self._queue.spoken(index, self._drafts.get(index, ()), line.reason or "")

    def _take_linked(self, index: int, item: Record, line: Line) -> None:
        repeats = self._tree.repeats(index)
        if repeats is not None:
            why = "repeats an earlier line that is left out"
            line.merge_or_skip(self._drafts.get(repeats, ()), why)
        elif index not in self._tree.followed:
            line.skip(_UNDONE)
            self._undone += 1
        elif item.type == "system":
            self._system(item, line)
        elif item.type == "attachment":
            note = _note(item, line)
            queued = item.subtype == "queued_command"
            if note is not None and (queued or not self._context.restored(note, line)):
                self._drafts[index] = self._notes[item.uuid] = [line.became(note)]
                self._say([note])
        elif not isinstance(item.value.at("message", "content"), str | list):
            line.is_unknown("expected the field message.content as text or blocks")
        elif item.type == "assistant":
            self._assistant(index, item, line)
        else:
            self._user(index, item, line)

    def _say(self, drafts: list[Draft]) -> None:
        self._conversation.drafts.extend(drafts)
        if drafts:
            self._context.said(drafts)

    def _system(self, item: Record, line: Line) -> None:
        known = marks_of("claude_code")["system_lines"]
        if item.boundary:
            self._context.compacted(item, line, self._kept(item))
        elif item.subtype == "microcompact_boundary":
            self._context.cleared(item, line, self._notes)
        elif item.subtype in known:
            line.skip(known[item.subtype])
        else:
            line.is_unknown("a system line of a kind that is not known")

    def _kept(self, boundary: Record) -> list[Draft] | None:
        """Return the messages that a compaction kept; None if one of them is not in the file."""
        named = preserved(boundary)
        indices = [self._tree.first.get(uuid, -1) for uuid in named.uuids]
        if any(index < 0 for index in indices):
            return None
        if named.ends_only:
            indices = list(range(indices[0], indices[1] + 1))
        found = (draft for index in indices for draft in self._drafts.get(index, ()))
        return list(dict.fromkeys(found))

    def _assistant(self, index: int, item: Record, line: Line) -> None:
        message = item.value.entry("message")
        model = message.text("model")
        if model == "<synthetic>" or item.value.at("isApiErrorMessage") is True:
            line.skip("written by the client, not by the model")
            return
        self._models[model] += 1
        turn = self._turns[message.text("id") or item.uuid]
        self._context.measured(message)
        repeats = self._context.repeats_expected
        opened = turn.add(message["content"], line, repeats=repeats)
        self._drafts[index] = [*line.drafts, *line.merged_into]
        self._say(opened)

    def _user(self, index: int, item: Record, line: Line) -> None:
        if item.display_copy:
            line.leave_out("toolUseResult", "a second form of the result, for the display")
        marks, said = marks_of("claude_code"), item.said
        if item.summary or (item.plan and self._restarted):
            self._handed_on(index, item, line)
        elif item.value.at("isVisibleInTranscriptOnly") is True:
            line.skip("shown to the user only")
        elif said.startswith(marks["local_caveat"]):
            line.skip("the client's words around a command to itself")
        elif said.startswith(marks["local_output"]):
            line.skip("output of a command to the client")
        elif said.startswith(marks["command"]) and self._is_local(index, said):
            line.skip("a command to the client, not to the model")
        else:
            self._message(index, item, line)

    def _handed_on(self, index: int, item: Record, line: Line) -> None:
        """Take what a compaction left: a summary, or the plan for which the context was cleared."""
        draft = user_drafts(item.value.at("message", "content"), line)[-1]
        draft.injected = True
        if item.summary:
            recorded = self._context.summarised(draft, line)
        else:
            self._restarted, recorded = False, True
            self._context.planned(draft, item.value.text("planContent"), line)
        if not recorded:
            self._drafts[index] = [line.became(draft)]
            self._say([draft])

    def _message(self, index: int, item: Record, line: Line) -> None:
        new: list[Draft] = []
        self._drafts[index] = []
        for draft in user_drafts(item.value.at("message", "content"), line):
            if draft.role == "user":
                draft.injected = item.injected or item.plan
                self._context.begun = self._context.begun or not item.injected
            repeated = self._context.repeated(draft)
            if repeated is not None:
                line.merge(repeated)
            else:
                new.append(line.became(draft))
            self._drafts[index].append(repeated or draft)
        self._say(new)

    def _is_local(self, index: int, said: str) -> bool:
        """Return whether a command without arguments was answered by the client itself."""
        if _ARGUMENTS.search(said):
            return False
        behind = (self._records[place] for place in range(index + 1, len(self._records)))
        answer = next((item for item in behind if item.speaks), None)
        output = marks_of("claude_code")["local_output"]
        return answer is not None and answer.said.startswith(output)


def _note(item: Record, line: Line) -> Draft | None:
    """Return the message that an attachment was to the model, or settle the line without one.

    What the user typed while the agent worked is a message like any other; what the client added
    is marked as a reminder, so that nobody takes it for the user's words.
    """
    marks, attachment = marks_of("claude_code"), item.value.entry("attachment")
    event = attachment.text("hookEvent")
    if item.subtype == "queued_command":
        prompt, mode = attachment.at("prompt"), attachment.text("commandMode")
        if isinstance(prompt, str | list):
            return Draft("user", content_of(prompt, line), injected=mode not in ("", "prompt"))
        line.is_unknown("expected the field prompt as text or blocks")
    elif item.subtype in marks["unseen_attachments"]:
        line.skip(marks["unseen_attachments"][item.subtype])
    elif item.subtype not in marks["notes"]:
        line.is_unknown("an attachment of a kind that is not known")
    elif item.subtype == "hook_success" and event and event not in marks["hook_events"]:
        line.skip("output of a hook that is not handed to the model")
    else:
        fields = marks["notes"][item.subtype]
        pieces = [piece for field in fields for piece in _pieces(attachment.get(field))]
        if pieces:
            texts = [piece for piece in pieces if isinstance(piece, str)]
            reminder: str = marks["reminder"].replace("{text}", "\n".join(texts))
            images = [piece for piece in pieces if isinstance(piece, Image)]
            return Draft("user", [reminder, *images], injected=True)
        line.skip("a note that is worded only when it is sent: the file holds no text of it")
    return None


def _pieces(value: Any) -> Content:
    """Return the texts of a field, which may be a list or an object around them."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list):
        return [piece for item in value for piece in _pieces(item)]
    fields = Json.of(value)
    if not fields:
        return []
    if fields.text("type") == "image":
        image = inline_image(fields.text("file", "type"), fields.text("file", "base64"))
        return [replace(image, size=fields.count("file", "originalSize"))]
    if set(fields) <= {*_INNER, "type"} or isinstance(fields.at("file"), dict):
        return _pieces(next((fields[key] for key in _INNER if key in fields), None))
    return [as_text(value)]


@dataclass(eq=False)
class _Waiting:
    index: int
    line: Line
    draft: Draft

    @property
    def text(self) -> str:
        return self.draft.text.strip()


class _Queue:
    """Prompts that a user typed while the agent worked, as queue operations record them.

    Such a prompt may stand in a user line or an attachment as well, once it was handed over, or
    nowhere else; or it was taken back for editing.
    """

    def __init__(self, records: Sequence[Record], followed: set[int]) -> None:
        self._records = records
        self._followed = followed
        self._waiting: list[_Waiting] = []
        self._claimed: set[int] = set()
        """Lines that are a prompt of the queue: each is one prompt only."""
        self._claims: dict[int, list[Line]] = defaultdict(list)
        """Operations on prompts that stand in a later line, by its index."""
        self._outcomes: dict[int, tuple[Sequence[Draft], str]] = {}
        spoken = ((index, item.said) for index, item in enumerate(records) if not item.summary)
        self._spoken = [(index, said) for index, said in spoken if said]

    def operate(self, index: int, line: Line) -> list[Draft]:
        """Take one operation and return the prompts that it handed over and no line repeats."""
        operation, content = self._records[index].subtype, self._records[index].value.at("content")
        if operation in ("dequeue", "remove"):
            return self._hand_over(index, content, line)
        if operation == "popAll":
            for waiting in self._waiting:
                waiting.line.skip("taken back by the user for editing")
            self._waiting.clear()
            line.skip("the user took the waiting prompts back for editing")
        elif operation != "enqueue":
            line.is_unknown("a queue operation of a kind that is not known")
        elif isinstance(content, str | list):
            self._waiting.append(_Waiting(index, line, Draft("user", content_of(content, line))))
        else:
            line.is_unknown("expected the field content as text or blocks")
        return []

    def spoken(self, index: int, drafts: Sequence[Draft], reason: str) -> None:
        """Take what became of a line that may hold queued prompts, or why nothing did."""
        if self._records[index].said:
            self._outcomes[index] = drafts, reason
            for line in self._claims.pop(index, ()):
                line.merge_or_skip(drafts, reason)

    def left(self) -> list[Draft]:
        """Return the prompts that still wait at the end and stand in no other line."""
        found: list[Draft] = []
        for waiting in self._waiting:
            place = self._exactly(waiting)
            if place is None:
                found.append(waiting.line.became(waiting.draft))
            else:
                self._claim(place, waiting.line)
        for line in (line for lines in self._claims.values() for line in lines):
            line.skip("the same words stand in a line that could not be read")
        return found

    def _hand_over(self, index: int, content: Any, line: Line) -> list[Draft]:
        wanted = content.strip() if isinstance(content, str) else None
        named = [waiting for waiting in self._waiting if wanted in (None, waiting.text)]
        found = next(iter(named or self._waiting), None)
        if found is None:
            line.skip("no prompt of this file was waiting")
            return []
        self._waiting.remove(found)
        place = self._exactly(found)
        if place is None:
            place = self._within_next(index, found.text)
        if place is not None:
            self._claim(place, found.line)
            self._claim(place, line)
            return []
        if self._undone(index):
            found.line.skip(_UNDONE)
            line.skip(_UNDONE)
            return []
        line.merge(found.draft)
        return [found.line.became(found.draft)]

    def _exactly(self, waiting: _Waiting) -> int | None:
        """Return the later line that is this prompt."""
        text, marks = waiting.text, marks_of("claude_code")["command"]
        name = text.split(maxsplit=1)[0] if text.startswith("/") else ""
        command = f"<command-name>{name}</command-name>"
        for index, said in self._spoken:
            if index < waiting.index or index in self._claimed or not text:
                continue
            if said == text or (name and said.startswith(marks) and command in said):
                self._claimed.add(index)
                return index
        return None

    def _within_next(self, index: int, text: str) -> int | None:
        """Return the next thing said, if the prompt is a part of it.

        Prompts that waited together are handed over as one.
        """
        place, said = next((item for item in self._spoken if item[0] > index), (-1, text))
        if not text or said == text or f"\n{text}\n" not in f"\n{said}\n":
            return None
        return place

    def _claim(self, index: int, line: Line) -> None:
        if index in self._outcomes:
            line.merge_or_skip(*self._outcomes[index])
        else:
            self._claims[index].append(line)

    def _undone(self, index: int) -> bool:
        """Return whether the messages around a line are on a branch that was left."""
        sides = (range(index - 1, -1, -1), range(index + 1, len(self._records)))
        records = self._records
        messages = ((i for i in side if records[i].linked and records[i].speaks) for side in sides)
        known = {place for side in messages if (place := next(side, None)) is not None}
        return bool(known) and not known & self._followed


def _recognise(source: SourceFile) -> str | None:
    """Claim a file by a line of the tree, unless a message is not in Anthropic's form.

    Other agents took over the names of the links, with messages of their own form.
    """
    claimed = False
    for value in entries(source.head):
        kind, message = value.text("type"), value.entry("message")
        linked = value.text("uuid") and value.text("sessionId") and "parentUuid" in value
        if not linked or kind not in LINKED:
            continue
        if kind in SPEAKS and (message.text("role") != kind or "content" not in message):
            return None
        claimed = claimed or kind in SPEAKS or "isSidechain" in value
    return _SEEN if claimed else None


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the threads of a file: the session, and the subagents and side chains within it."""
    records = [Record.of(item) for item in source.values()]
    threads = split_threads(records)
    if not any(item.linked and item.speaks for item in records):
        raise DataError(f"{source.path}: expected Claude Code {_SEEN}; found no message")
    del records
    while threads:
        yield ThreadReader(threads.pop(0)).read()


FORMAT = Format("claude-code", "Claude Code", _recognise, _read)
