"""Sessions of Claude Code: lines in ``projects/…/<session>.jsonl``, and those of its subagents.

A file is parsed into records and split into threads; a thread's records are linked to a tree, of
which the branch that was not undone is followed, and queued prompts are matched with the lines
that repeat them (`claude_code_tree`). Then every line becomes what it is. Along the way the
context is followed through its compactions: what is in it after one is the recorded state.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from compression_eval.conversations.drafts import (
    Compaction,
    Content,
    Conversation,
    Draft,
    Image,
    Line,
    inline_image,
)
from compression_eval.conversations.fields import Json, as_text, entries
from compression_eval.conversations.readers.anthropic import AssistantTurn, user_drafts
from compression_eval.conversations.readers.base import (
    Format,
    Reader,
    Table,
    marks_of,
    prevails,
)
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
from compression_eval.conversations.readers.content import content_of
from compression_eval.conversations.sources import SourceFile
from compression_eval.errors import DataError

_SEEN = "lines with sessionId, uuid, parentUuid and a type such as user or assistant"
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,20}", re.ASCII)
_ARGUMENTS = re.compile(r"<command-args>\s*(?!\s|</command-args>)")
_INNER = ("file", "content", "text")


_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CHARACTERS_PER_TOKEN = 4
_MIN_MISSING = 1_000
"""Tokens that a state may lack without a word, as it may a quarter of its own: estimates err."""


class _Session(Reader):
    """One thread: every line becomes what it is."""

    format = "claude-code"
    subtype = ("subtype",)
    lacks = ("the system prompt and the tools are not in the file",)

    def __init__(self, thread: Thread) -> None:
        records = thread.records
        versions = [item.version for item in records if _VERSION.fullmatch(item.version)]
        super().__init__(" ".join(["Claude Code", *versions[-1:]]), thread.session, thread.part)
        self._thread = thread
        self._links = Links(records)
        self._followed = follow(records, self._links)
        self._queue = match_prompts(records, self._followed)
        self._at = 0
        """Index of the line that is read."""
        self._drafts: dict[int, list[Draft]] = {}
        """What the lines became or added to, by their indices."""
        self._turns: dict[str, AssistantTurn] = defaultdict(AssistantTurn)
        self._undone = 0
        self._awaits_plan = False
        """Whether the context was cleared to carry out a plan that has yet to come."""
        # A subagent's first line may name one of the thread that called it.
        self._context = _Context(self, self._links.cut_off and not thread.part)

    def read(self) -> Conversation:
        for index, record in enumerate(self._thread.records):
            self._at = index
            self._awaits_plan = self._awaits_plan or record.restarts
            self.feed(record.value)
        return self.finish()

    @property
    def _record(self) -> Record:
        return self._thread.records[self._at]

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
            line.skip("repeats an earlier line")
        elif self._at not in self._followed:
            line.skip(UNDONE)
            line.lost = self._record.speaks
            self._undone += 1
        elif kind in SPEAKS and not isinstance(content, str | list):
            line.is_unknown("expected the field message.content as text or blocks")
        else:
            super().take(line, entry)

    def finish(self) -> Conversation:
        left = [self._unqueue(index) for index in self._queue.waiting if index in self._drafts]
        self._context.say(left)
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
        """Take an operation of the queue; a line may contain the prompt as well."""
        content, sort = entry.at("content"), entry.text("subtype")
        if sort == "enqueue" and isinstance(content, str | list):
            self._drafts[self._at] = [Draft("user", content_of(content, line))]
            line.reason = self._queue.left.get(self._at)
        elif sort == "enqueue":
            line.is_unknown("expected the field content as text or blocks")
        elif sort not in ("dequeue", "remove", "popAll"):
            line.is_unknown("unknown operation of the queue")
        elif self._queue.handed_over.get(self._at) in self._drafts:
            self._context.say([self._unqueue(self._queue.handed_over[self._at])])

    def _unqueue(self, index: int) -> Draft:
        """Make a message of the prompt of an operation that no other line contains."""
        return self.lines[index].became(self._drafts[index][0])

    def system_line(self, line: Line, entry: Json) -> None:
        """Take a line that the client does not show to the model."""
        known, record = marks_of("claude_code")["system_lines"], self._record
        if record.boundary:
            named = preserved(record)
            indices = [self._links.first.get(uuid, -1) for uuid in named.uuids]
            whole = min(indices, default=0) >= 0
            if whole and named.ends_only:
                indices = list(range(indices[0], indices[1] + 1))
            self._context.announce(record, self._became(indices) if whole else None)
        elif record.subtype == "microcompact_boundary":
            names = entry.entry("microcompactMetadata").listed("clearedAttachmentUUIDs")
            indices = [self._links.first.get(n, -1) for n in names if isinstance(n, str)]
            notes = [i for i in indices if self._thread.records[i].type == "attachment"]
            self._context.clear(record, self._became(notes))
        elif record.subtype in known:
            line.skip(known[record.subtype])
        else:
            line.is_unknown("unknown kind of system line")

    def _became(self, indices: list[int]) -> list[Draft]:
        found = (draft for index in indices for draft in self._drafts.get(index, ()))
        return list(dict.fromkeys(found))

    def attachment(self, line: Line, entry: Json) -> None:
        """Take what the client added, or a prompt that the user typed while the agent worked."""
        note = _note(entry.entry("attachment"), line)
        queued = entry.text("subtype") == "queued_command"
        if note is not None and (queued or not self._context.restore(note)):
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
        repeats = bool(self._context.repeatable)
        opened = turn.add(message["content"], line, repeats=repeats)
        self._drafts[self._at] = turn.touched
        if (output := message.count("usage", "output_tokens")) is not None:
            # Each of its lines repeats it; the last one has all tokens.
            turn.drafts[0].usage = {"input_tokens": _input_tokens(message), "output_tokens": output}
        self._context.say(opened)

    def user(self, line: Line, entry: Json) -> None:
        """Take what is in the user's name: prompts, results, and the client's own words."""
        record, marks = self._record, marks_of("claude_code")
        prompt = record.prompt
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
            self._context.restart(draft, entry.text("planContent"))
        elif not self._context.summarise(draft):
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
            if repeated is None:
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


class _Context:
    """The messages that the model would be sent next, followed line by line.

    A conversation keeps its whole history; the context is what the agent's own compactions left of
    it, and the source of the states that they are recorded with.
    """

    def __init__(self, conversation: Conversation, partial: bool) -> None:
        self._conversation = conversation
        """Gets the messages and the compactions."""
        self._messages: list[Draft] = []
        self._partial = partial
        """Whether the file begins in the middle: then of a compaction only its place is recorded,
        for what it left contains more than the history does."""
        self._begun = False
        """Whether the user has said anything, or the model in a file that is whole."""
        self._compactions: list[Compaction] = []
        self._boundary: tuple[Compaction, list[Draft], bool] | None = None
        """A compaction that is announced: its summary has yet to come. With what it kept, and
        whether that is before the summary."""
        self._restoring: Compaction | None = None
        """The compaction that nothing was said behind yet: the client still puts notes back."""
        self.repeatable: list[Draft] = []
        """The messages that it kept, which lines right behind it may repeat."""
        self._unmeasured: Compaction | None = None
        """The compaction that no request has followed yet."""
        self._missing: dict[Compaction, int | None] = {}
        """Tokens that the request behind a compaction held next to its state; None if unknown."""
        self._fixed: int | None = None
        """Tokens of what every request contains: the system prompt and the tools, roughly."""

    def say(self, drafts: Sequence[Draft], *, by_user: bool = False) -> None:
        """Add messages to the conversation."""
        self._begun = self._begun or by_user
        if drafts:
            self._conversation.drafts.extend(drafts)
            self._messages.extend(drafts)
            self._restoring, self.repeatable = None, []

    def take_repeated(self, draft: Draft) -> Draft | None:
        """Take, once each, the kept message that a line right behind a compaction repeats."""
        found = next((kept for kept in self.repeatable if kept.said == draft.said), None)
        if found is not None:
            self.repeatable.remove(found)
        return found

    def announce(self, record: Record, kept: list[Draft] | None) -> None:
        """Record the compaction of a boundary; `kept` is None if not all that it kept is there."""
        metadata = record.entry.entry("compactMetadata")
        compaction = Compaction(self._conversation.last, trigger=metadata.text("trigger"))
        compaction.tokens_before = metadata.count("preTokens")
        compaction.tokens_after = metadata.count("postTokens")
        self._boundary = (compaction, kept or [], preserved(record).before_summary)
        if kept is None:
            self._conversation.caveat(
                "a compaction names messages that it kept, which are not in the file"
            )
        self._compactions.append(compaction)

    def summarise(self, draft: Draft) -> bool:
        """Record the message that hands a summary on; old versions write it without a boundary.

        Returns:
            Whether it belongs to a compaction of the conversation. Where the user has not said
            anything yet, what it summarises is not in the file: it is a message like any other.
        """
        boundary, self._boundary = self._boundary, None
        if not self._begun:
            worked = any(message.role == "assistant" for message in self._messages)
            if self._partial and worked:
                self._keep_places(boundary[0] if boundary else None)
            elif self._partial:
                self._compactions.clear()
            elif boundary:
                self._compactions.remove(boundary[0])
            self._begun, self._partial, self._messages = True, False, []
            self._conversation.caveat(
                "the file begins in the middle of a conversation, "
                + (
                    "within a turn; the summary of the first compaction is a message"
                    if worked
                    else "with a summary of what came before; the summary is the first message"
                )
            )
            return False
        if boundary is None:
            boundary = (Compaction(after=self._conversation.last), [], False)
            self._compactions.append(boundary[0])
        compaction, kept, before = boundary
        compaction.summary = draft.text
        state = [*kept, draft] if before else [draft, *kept]
        self._replace(compaction, _ordered(state), kept)
        return True

    def _keep_places(self, announced: Compaction | None) -> None:
        """Keep the places alone of the compactions in a turn whose beginning is not in the file."""
        if announced is None:
            self._compactions.append(Compaction(self._conversation.last))
        for compaction in self._compactions:
            compaction.state = None
        if not any(message.role == "user" for message in self._messages):
            self._conversation.open_with("")  # a fixture is cut behind a user message

    def restart(self, draft: Draft, plan: str) -> None:
        """Record that the context was cleared for a plan, which is all that the agent kept."""
        compaction = Compaction(self._conversation.last, trigger="plan", summary=plan or draft.text)
        self._boundary = None
        self._compactions.append(compaction)
        self._replace(compaction, [draft], [])

    def _replace(self, compaction: Compaction, state: list[Draft], kept: Sequence[Draft]) -> None:
        compaction.state = state
        self._messages = list(state)
        self._restoring, self.repeatable = compaction, list(kept)
        self._unmeasured = compaction

    def restore(self, draft: Draft) -> bool:
        """Add a note to the state of the compaction that put it back; False if none did."""
        if self._restoring is None or self._restoring.state is None:
            return False
        self._restoring.state.append(draft)
        self._messages.append(draft)
        return True

    def clear(self, record: Record, notes: Collection[Draft]) -> None:
        """Record a microcompaction: it cleared results in place, and took notes away."""
        metadata = record.entry.entry("microcompactMetadata")
        calls = {name for name in metadata.listed("compactedToolIds") if isinstance(name, str)}
        missing = calls - {draft.call_id for draft in self._messages if draft.role == "tool"}
        if missing:
            self._conversation.caveat(
                f"{len(missing)} results that a compaction cleared are not in the file"
            )
        self._messages = [
            Draft("tool", [marks_of("claude_code")["cleared_result"]], call_id=draft.call_id)
            if draft.role == "tool" and draft.call_id in calls
            else draft
            for draft in self._messages
            if draft not in notes
        ]
        compaction = Compaction(self._conversation.last, "clear", metadata.text("trigger"))
        before, saved = metadata.count("preTokens"), metadata.count("tokensSaved")
        compaction.tokens_before = before
        if before is not None and saved is not None:
            compaction.tokens_after = max(before - saved, 0)
        compaction.state = _ordered(self._messages)
        self._compactions.append(compaction)

    def measure(self, message: Json) -> None:
        """Learn from an answer of the model how large the request was that it answers.

        Beyond what every request contains, the one behind a compaction may be larger than its
        state.
        """
        # The prompt may have been an argument of the program, so that no line contains it.
        self._begun = self._begun or not self._partial
        total = _input_tokens(message)
        compaction, self._unmeasured = self._unmeasured, None
        if compaction is not None:
            self._missing[compaction] = None
            compaction.tokens_after = total or compaction.tokens_after
            if total and self._fixed is not None:
                state = _tokens(self._messages)
                missing = total - self._fixed - state
                enough = missing >= max(_MIN_MISSING, state // 4)
                self._missing[compaction] = missing if enough else 0
        elif total and self._fixed is None and not self._missing:
            self._fixed = max(0, total - _tokens(self._messages))

    def finish(self) -> None:
        """Record the compactions, with a caveat for everything that the file lacks of them."""
        caveat = self._conversation.caveat
        self._conversation.compactions.extend(self._compactions)
        if self._partial:
            caveat(
                "the file begins in the middle of a conversation: its first line follows one that "
                "is not in it"
            )
            if self._compactions:
                caveat(
                    f"{len(self._compactions)} compactions have no state: what the agent went on "
                    "with has history that is not in the file"
                )
            for compaction in self._compactions:
                compaction.summary = compaction.state = None
            return
        for number, compaction in enumerate(self._compactions, 1):
            missing = self._missing.get(compaction)
            if missing:
                caveat(
                    f"compaction {number}: the next request held about {round(missing, -3):,} "
                    "tokens more than the recorded state; what the agent's client attached again "
                    "(files, plan, tasks) is not in the file"
                )
            elif missing is None and compaction.kind == "summary" and compaction.state:
                caveat(
                    f"compaction {number}: the recorded state is what the file shows; what the "
                    "agent's client attached again (files, plan, tasks) may be missing"
                )


def _input_tokens(message: Json) -> int:
    return sum(message.count("usage", key) or 0 for key in _INPUT)


def _ordered(drafts: Sequence[Draft]) -> list[Draft]:
    """Return messages with each result behind its call, whatever was said between them."""
    owners = {call.id: draft for draft in drafts for call in draft.calls}
    results: dict[Draft, list[Draft]] = defaultdict(list)
    others: list[Draft] = []
    for draft in drafts:
        owned = draft.role == "tool" and draft.call_id in owners
        (results[owners[draft.call_id or ""]] if owned else others).append(draft)
    return [message for draft in others for message in (draft, *results[draft])]


def _tokens(drafts: Sequence[Draft]) -> int:
    """Return an estimate of the tokens of messages, the same wherever they are imported."""
    sizes = (
        len(draft.text) + sum(len(call.name) + len(call.arguments) for call in draft.calls)
        for draft in drafts
    )
    return sum(sizes) // _CHARACTERS_PER_TOKEN


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
        line.skip("a note that is worded only when it is sent: the file contains no text of it")
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


def _read(source: SourceFile) -> Iterator[Conversation]:
    """Yield the threads of a file: the session, and the subagents and side chains within it."""
    records = [Record(value) for value in source.values()]
    if not any(record.linked and record.speaks for record in records):
        raise DataError(f"{source.path}: expected Claude Code {_SEEN}; found no message")
    in_order = link_in_order(records)
    for conversation in (_Session(thread).read() for thread in split(records)):
        if in_order:
            conversation.note(
                "no line names the one before it; the lines are read in the order of the file"
            )
        yield conversation


FORMAT = Format(_Session.format, _recognise, _read)
