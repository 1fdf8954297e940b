"""Sessions of Claude Code: lines in ``projects/…/<session>.jsonl``, and those of its subagents.

A file is parsed into records and split into threads; a thread's records are linked to a tree, of
which the branch that was not undone is followed, and queued prompts are matched with the lines
that repeat them (`claude_code_tree`). Then every line becomes what it is, and the context is
followed through its compactions (`claude_code_context`).
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from compression_eval.conversations.drafts import (
    Content,
    Conversation,
    Draft,
    Image,
    Line,
    inline_image,
)
from compression_eval.conversations.fields import Json, as_text, entries
from compression_eval.conversations.readers.anthropic import AssistantTurn, content_of, user_drafts
from compression_eval.conversations.readers.base import (
    Format,
    Reader,
    Table,
    marks_of,
    prevails,
)
from compression_eval.conversations.readers.claude_code_context import Context
from compression_eval.conversations.readers.claude_code_tree import (
    LINKED,
    SPEAKS,
    UNDONE,
    Links,
    Record,
    Thread,
    follow,
    link_in_order,
    match_prompts,
    preserved,
    split,
)
from compression_eval.conversations.sources import SourceFile
from compression_eval.errors import DataError

_SEEN = "lines with sessionId, uuid, parentUuid and a type such as user or assistant"
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,20}", re.ASCII)
_ARGUMENTS = re.compile(r"<command-args>\s*(?!\s|</command-args>)")
_INNER = ("file", "content", "text")


class _Session(Reader):
    """One thread: every line becomes what it is."""

    format = "claude-code"
    subtype = "subtype"
    unknown = "a line of a kind that is not known"
    no_object = "expected a JSON object"
    lacks = ("the system prompt and the tools are not in the file",)

    def __init__(self, thread: Thread) -> None:
        records = thread.records
        versions = [item.version for item in records if _VERSION.fullmatch(item.version)]
        super().__init__(" ".join(["Claude Code", *versions[-1:]]), thread.session, thread.part)
        self._thread = thread
        self._links = Links(thread)
        self._followed = follow(records, self._links)
        self._queue = match_prompts(records, self._followed)
        self._at = 0
        """Index of the line that is read."""
        self._drafts: dict[int, list[Draft]] = {}
        """What the lines became or were merged into, by their indices."""
        self._turns: dict[str, AssistantTurn] = defaultdict(AssistantTurn)
        self._undone = 0
        self._awaits_plan = False
        """Whether the context was cleared to carry out a plan that has yet to come."""
        # A subagent's first line may name one of the thread that called it.
        self._context = Context(self, self._links.cut_off and not thread.part)

    def read(self) -> Conversation:
        for index, record in enumerate(self._thread.records):
            self._at = index
            self._awaits_plan = self._awaits_plan or index in self._thread.restarts
            self.feed(record.value)
        return self.finish()

    @property
    def _record(self) -> Record:
        return self._thread.records[self._at]

    def name_of(self, entry: Json) -> str:
        return super().name_of(entry) if entry else "no object"

    def take(self, line: Line, entry: Json) -> None:
        kind, outside = self.kind_of(entry), marks_of("claude_code")["other_lines"]
        content = entry.at("message", "content")
        if kind in outside:
            line.skip(outside[kind])
        elif kind not in LINKED:
            super().take(line, entry)
        elif not self._record.uuid:
            line.is_unknown("expected the field uuid as text")
        elif self._at in self._links.repeats:
            first = self._drafts.get(self._links.repeats[self._at], ())
            line.merge_or_skip(first, "repeats an earlier line that is left out")
        elif self._at not in self._followed:
            if self._record.speaks:
                line.leave(UNDONE)
            else:
                line.skip(UNDONE)
            self._undone += 1
        elif kind in SPEAKS and not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
        else:
            super().take(line, entry)

    def finish(self) -> Conversation:
        lines = self.ledger.lines
        left = [self._unqueue(index) for index in self._queue.waiting if index in self._drafts]
        self._context.say(left)
        for index, outcome in self._queue.outcomes.items():
            if outcome.stands_in >= 0:
                drafts, line = self._drafts.get(outcome.stands_in, ()), lines[outcome.stands_in]
                unread = "the same words stand in a line that could not be read"
                lines[index].merge_or_skip(drafts, unread if line.unknown else line.reason or "")
        if left:
            self.caveat(f"{len(left)} prompts still waited when the recording ended")
        if self._undone:
            self.caveat(f"{self._undone} lines on branches that the user left were left out")
        if guessed := self._links.guessed:
            self.caveat(
                f"{guessed} lines follow one that is not in the file; "
                "the line before them was taken for it"
            )
        self._context.finish()
        del self._context  # it refers to the conversation, which would outlive its use
        return super().finish()

    def operation(self, line: Line, entry: Json) -> None:
        """Take an operation of the queue; one whose prompt stands in a line is settled later."""
        content, outcome = entry.at("content"), self._queue.outcomes.get(self._at)
        enqueues = entry.text("subtype") == "enqueue"
        if enqueues and isinstance(content, str | list):
            self._drafts[self._at] = [Draft("user", content_of(content, line))]
        elif enqueues:
            line.is_unknown("expected the field content as text or blocks")
        elif outcome is None:
            line.is_unknown("a queue operation of a kind that is not known")
        if outcome and outcome.hands_over in self._drafts:
            draft = self._unqueue(outcome.hands_over)
            line.merge(draft)
            self._context.say([draft])
        elif outcome and outcome.stands_in < 0:
            line.skip(outcome.reason)

    def _unqueue(self, index: int) -> Draft:
        """Make a message of the prompt of an operation, which stands in no line."""
        return self.ledger.lines[index].became(self._drafts[index][0])

    def system_line(self, line: Line, entry: Json) -> None:
        """Take a line that the client does not show to the model."""
        known, record = marks_of("claude_code")["system_lines"], self._record
        if record.boundary:
            named = preserved(record)
            indices = [self._links.first.get(uuid, -1) for uuid in named.uuids]
            whole = min(indices, default=0) >= 0
            if whole and named.ends_only:
                indices = list(range(indices[0], indices[1] + 1))
            self._context.announce(record, line, self._became(indices) if whole else None)
        elif record.subtype == "microcompact_boundary":
            names = entry.entry("microcompactMetadata").listed("clearedAttachmentUUIDs")
            indices = [self._links.first.get(n, -1) for n in names if isinstance(n, str)]
            notes = [i for i in indices if self._thread.records[i].type == "attachment"]
            self._context.clear(record, line, self._became(notes))
        elif record.subtype in known:
            line.skip(known[record.subtype])
        else:
            line.is_unknown("a system line of a kind that is not known")

    def _became(self, indices: list[int]) -> list[Draft]:
        found = (draft for index in indices for draft in self._drafts.get(index, ()))
        return list(dict.fromkeys(found))

    def attachment(self, line: Line, entry: Json) -> None:
        """Take what the client added, or a prompt that the user typed while the agent worked."""
        note = _note(entry.entry("attachment"), line)
        queued = entry.text("subtype") == "queued_command"
        if note is not None and (queued or not self._context.restore(note, line)):
            self._drafts[self._at] = [line.became(note)]
            self._context.say([note])

    def assistant(self, line: Line, entry: Json) -> None:
        """Take a part of what the model said."""
        message = entry.entry("message")
        model = message.text("model")
        if model == "<synthetic>" or entry.at("isApiErrorMessage") is True:
            line.skip("written by the client, not by the model")
            return
        self.models[model] += 1
        turn = self._turns[message.text("id") or self._record.uuid]
        self._context.measure(message)
        repeats = self._context.repeats_expected
        opened = turn.add(message["content"], line, repeats=repeats)
        self._drafts[self._at] = [*line.drafts, *line.merged_into]
        self._context.say(opened)

    def user(self, line: Line, entry: Json) -> None:
        """Take what stands in the user's name: prompts, results, and the client's own words."""
        record, marks = self._record, marks_of("claude_code")
        prompt = record.prompt
        if record.display_copy:
            line.leave_out("toolUseResult", "a second form of the result, for the display")
        if record.summary or (record.plan and self._awaits_plan):
            self._handed_on(line, entry)
        elif entry.at("isVisibleInTranscriptOnly") is True:
            line.skip("shown to the user only")
        elif prompt.startswith(marks["local_caveat"]):
            line.skip("the client's words around a command to itself")
        elif prompt.startswith(marks["local_output"]):
            line.skip("output of a command to the client")
        elif prompt.startswith(marks["command"]) and self._is_local(prompt):
            line.skip("a command to the client, not to the model")
        else:
            self._message(line, entry)

    def _handed_on(self, line: Line, entry: Json) -> None:
        """Take what a compaction left: a summary, or the plan for which the context was cleared."""
        draft = user_drafts(entry.at("message", "content"), line)[-1]
        draft.injected = True
        if not self._record.summary:
            self._awaits_plan = False
            self._context.restart(draft, entry.text("planContent"), line)
        elif not self._context.summarise(draft, line):
            self._drafts[self._at] = [line.became(draft)]
            self._context.say([draft])

    def _message(self, line: Line, entry: Json) -> None:
        written = entry.text("origin", "kind") in ("", "human") and entry.at("isMeta") is not True
        new: list[Draft] = []
        drafts = self._drafts[self._at] = []
        by_user = False
        for draft in user_drafts(entry.at("message", "content"), line):
            if draft.role == "user":
                draft.injected = not written or self._record.plan
                by_user = written
            repeated = self._context.take_repeated(draft)
            if repeated is not None:
                line.merge(repeated)
            else:
                new.append(line.became(draft))
            drafts.append(repeated or draft)
        self._context.say(new, by_user=by_user)

    def _is_local(self, command: str) -> bool:
        """Return whether a command without arguments was answered by the client itself."""
        behind = (item for item in self._thread.records[self._at + 1 :] if item.speaks)
        answer = next(behind, None)
        output = marks_of("claude_code")["local_output"]
        without = not _ARGUMENTS.search(command)
        return without and answer is not None and answer.prompt.startswith(output)

    kinds: ClassVar[Table] = {
        "user": user,
        "assistant": assistant,
        "attachment": attachment,
        "system": system_line,
        "queue-operation": operation,
    }


def _note(attachment: Json, line: Line) -> Draft | None:
    """Return the message that an attachment was to the model, or settle the line without one.

    What the user typed while the agent worked is a message like any other; what the client added
    is marked as a reminder, so that nobody takes it for the user's words.
    """
    marks, kind = marks_of("claude_code"), attachment.text("type")
    event = attachment.text("hookEvent")
    if kind == "queued_command":
        prompt, mode = attachment.at("prompt"), attachment.text("commandMode")
        if isinstance(prompt, str | list):
            return Draft("user", content_of(prompt, line), injected=mode not in ("", "prompt"))
        line.is_unknown("expected the field prompt as text or blocks")
    elif kind in marks["unseen_attachments"]:
        line.skip(marks["unseen_attachments"][kind])
    elif kind not in marks["notes"]:
        line.is_unknown("an attachment of a kind that is not known")
    elif kind == "hook_success" and event and event not in marks["hook_events"]:
        line.skip("output of a hook that is not handed to the model")
    else:
        fields = marks["notes"][kind]
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


def _recognise(source: SourceFile) -> str | None:
    """Claim a file by lines of the tree, unless the messages are not in Anthropic's form.

    Other agents took over the names of the links, with messages of their own form.
    """
    linked = [
        value
        for value in entries(source.head)
        if value.text("type") in LINKED and value.text("uuid") and value.text("sessionId")
        if "parentUuid" in value or "isSidechain" in value
    ]
    said = [value for value in linked if value.text("type") in SPEAKS]
    claimed = prevails(said, lambda value: value.text("type"), _is_message)
    claimed = claimed or (not said and any("isSidechain" in value for value in linked))
    return _SEEN if claimed else None


def _is_message(value: Json) -> bool:
    role, content = value.text("message", "role"), value.at("message", "content")
    return role == value.text("type") and isinstance(content, str | list)


def read_thread(thread: Thread) -> Conversation:
    """Return the conversation of one thread."""
    return _Session(thread).read()


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the threads of a file: the session, and the subagents and side chains within it."""
    records = [Record(value) for value in source.values()]
    if not any(record.linked and record.speaks for record in records):
        raise DataError(f"{source.path}: expected Claude Code {_SEEN}; found no message")
    in_order = link_in_order(records)
    for conversation in map(read_thread, split(records)):
        if in_order:
            conversation.note(
                "no line names the one before it; the lines are read in the order of the file"
            )
        yield conversation


FORMAT = Format(_Session.format, "Claude Code", _recognise, _read)
