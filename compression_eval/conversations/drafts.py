"""A conversation as a reader hands it over: not yet a fixture, with an account of every line.

Readers only say what a file holds. What every fixture needs whatever it came from (results right
behind their calls, no empty turns, images described) is done once, in `building`.

A reader enters each line or event before it looks inside, so that none can be forgotten; one that
is not settled at the end is a defect of the reader and is shown as such.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from compression_eval.conversations.fields import Json, as_text, json_object, tool_definitions
from compression_eval.conversations.sources import Value
from compression_eval.fixtures.models import NO_PROMPT, ToolDefinition

Role = Literal["system", "user", "assistant", "tool"]
CompactionKind = Literal["summary", "clear", "opaque"]
Fate = Literal["message", "merged", "skipped", "unknown", "unaccounted"]

NO_THINKING = "thinking is left out"
REPLACED_BYTES = "bytes that are not UTF-8 were replaced"
NO_SYSTEM_PROMPT = "the file does not hold the system prompt"
NO_TOOLS = "the file does not hold the definitions of the tools"
RECORDED = "a compaction, recorded beside the messages"
ENTERED_APART = "are entered one by one"
"""Ends the reason for an entry that only holds others."""
NO_FORM = "of no known form"
NO_CALL = "a result whose call is not in the file"
_SPEAKERS = frozenset({"user", "assistant", "tool", "message"})
SUMMARY_STANDS_IN = "earlier messages are not in the file: a summary stands in their place"


@dataclass(frozen=True)
class Image:
    """An image in a message."""

    media_type: str = ""
    """As ``image/png``; empty if the file does not say."""
    url: str = ""
    """A ``data:`` or web address; empty if the image itself is not in the file."""
    size: int | None = None
    """In bytes, if known."""


Content = list[str | Image]
"""Texts and images of a message in their order."""


def image_at(url: str) -> Image:
    """Return the image at an address; its type is known if the address holds it."""
    data = url.startswith("data:")
    return Image(url[len("data:") : 100].partition(",")[0].partition(";")[0] if data else "", url)


def looks_like_message(entry: Json) -> bool:
    """Return whether an object, or what it holds, says that it is a message."""
    inner = (entry, entry.entry("message"), entry.entry("payload"))
    return any({each.text("role"), each.text("type")} & _SPEAKERS for each in inner)


def inline_image(media_type: str, data: str) -> Image:
    """Return an image that stands in the file as Base64; without data only its type is known."""
    return Image(media_type, f"data:{media_type};base64,{data}" if data else "")


@dataclass(frozen=True)
class DraftCall:
    """A tool call."""

    id: str
    name: str
    arguments: str
    """As the file has them: as a rule a JSON object as text; may be invalid or empty."""


@dataclass(eq=False)
class Draft:
    """One message to be. Two drafts are the same only if they are the same object."""

    role: Role
    content: Content = field(default_factory=list)
    """Empty strings are dropped later."""
    calls: list[DraftCall] = field(default_factory=list)
    call_id: str | None = None
    """Of a tool message: the call that it answers."""
    injected: bool = False
    """Of a user message: whether the agent's client put it in, as the file says."""

    def call(self, call_id: str, name: str, arguments: Any) -> None:
        """Add a call; arguments that are no text are written as JSON."""
        self.calls.append(DraftCall(call_id, name, as_text(arguments)))

    @property
    def text(self) -> str:
        """The texts, joined by line breaks."""
        return "\n".join(part for part in self.content if isinstance(part, str) and part)

    @property
    def said(self) -> Hashable:
        """Everything that is carried over: equal for messages that say the same."""
        return self.role, tuple(self.content), tuple(self.calls), self.call_id


@dataclass(frozen=True)
class Entry:
    """What became of one line or event."""

    place: str
    """Where it stands, as ``line 12`` or ``event 5``."""
    kind: str
    """What the format calls it, as ``attachment:queued_command``."""
    fate: Fate
    messages: tuple[int, ...] = ()
    """Indices of the fixture's messages that it became or was merged into."""
    reason: str = ""
    """Why it was skipped, or what is not known about it."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Parts of it that were not carried over: kind and reason."""

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.messages))
        outcome = {
            "message": f"became message {numbers}",
            "merged": f"merged into message {numbers}",
            "skipped": f"skipped: {self.reason}",
            "unknown": f"unknown: {self.reason}",
            "unaccounted": "not accounted for (please report this)",
        }[self.fate]
        parts = "".join(f"; without {kind}: {reason}" for kind, reason in self.left_out)
        return f"{self.place} ({self.kind}): {outcome}{parts}"


@dataclass(frozen=True)
class Account:
    """What became of the input of one fixture."""

    entries: tuple[Entry, ...]
    added: tuple[tuple[int, str], ...]
    """Messages that no line stands for, with the reason."""

    def unsettled(self) -> list[Entry]:
        """Return the entries that are unknown or not accounted for."""
        return [entry for entry in self.entries if entry.fate in ("unknown", "unaccounted")]


@dataclass(eq=False)
class Line:
    """One line or event of the input, until it is settled.

    One that was never entered is of no account: it is for what is read a second time.
    """

    place: str = ""
    kind: str = ""
    speaks: bool = False
    """Whether it looks like a message."""
    lost: bool = False
    """Whether a message that it held may be missing: it is damaged, or on a branch that is left."""
    drafts: list[Draft] = field(default_factory=list)
    merged_into: list[Draft] = field(default_factory=list)
    reason: str | None = None
    unknown: bool = False
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def became(self, draft: Draft) -> Draft:
        """Say that this line is the origin of a message; may be said of several messages."""
        self.drafts.append(draft)
        return draft

    def merge(self, *drafts: Draft) -> None:
        """Say that this line added to, or repeats, messages that have their origin elsewhere."""
        self.merged_into.extend(drafts)

    def merge_or_skip(self, drafts: Iterable[Draft], reason: str) -> None:
        """Say what this line repeats, or, if there is nothing, why it is skipped."""
        self.merge(*drafts)
        if not self.merged_into:
            self.skip(reason)

    def skip(self, reason: str) -> None:
        """Say why nothing of this line is in the fixture; the reason holds no content."""
        self.reason = reason

    def leave(self, reason: str) -> None:
        """Say why a message of this line is left out, by links that may themselves be wrong."""
        self.skip(reason)
        self.lost = True

    def is_unknown(self, what: str) -> None:
        """Say that this line is of a kind that the reader does not know."""
        self.unknown, self.reason = True, what

    def leave_out(self, part: str, reason: str) -> None:
        """Say that a part of this line was not carried over."""
        self.left_out.append((part, reason))

    def leave_out_thinking(self) -> None:
        """Say, once, that the thinking of this line was not carried over."""
        if ("thinking", NO_THINKING) not in self.left_out:
            self.leave_out("thinking", NO_THINKING)

    def objects(self, values: Iterable[Any], part: str, reason: str) -> Iterator[Json]:
        """Yield the values that are objects; of every other one it is said that it is left out."""
        for value in values:
            if isinstance(value, dict):
                yield Json(value)
            else:
                self.leave_out(part, reason)


@dataclass
class Ledger:
    """All lines of one conversation, and what was done to its messages afterwards."""

    lines: list[Line] = field(default_factory=list)
    dropped: dict[Draft, str] = field(default_factory=dict)
    """Messages that no fixture can hold, with the reason."""
    added: dict[Draft, str] = field(default_factory=dict)
    """Messages that no line stands for, with the reason."""

    def enter(self, place: str, kind: str) -> Line:
        """Enter a line or event; it has to be settled by one of its methods."""
        line = Line(place, kind)
        self.lines.append(line)
        return line

    def enter_value(self, value: Value, kind: str) -> Line:
        """Enter a value of a file; the line of one that cannot be read is settled."""
        line = self.enter(value.place, "unreadable" if value.problem else kind)
        if value.problem:
            line.skip(value.problem)
            line.lost = value.problem != NO_FORM
        if value.replaced:
            line.leave_out("bytes", REPLACED_BYTES)
        return line

    def missing(self, numbers: Mapping[Draft, int]) -> str:
        """Return how many messages are left out though they may belong to the conversation.

        Returns:
            A text that counts them by reason; empty if they are at most a third of all.
        """
        kept, lost = 0, Counter[str]()
        for line in self.lines:
            said = [*line.drafts, *line.merged_into]
            if any(draft in numbers for draft in said):
                kept += 1
            elif line.lost or (line.unknown and line.speaks):
                lost[(line.reason or "").partition(" (")[0]] += 1
            elif any(self.dropped.get(draft) == NO_CALL for draft in said):
                lost[NO_CALL] += 1
        if lost.total() * 3 <= kept + lost.total():
            return ""
        reasons = "; ".join(f"{count} x {why}" for why, count in lost.most_common(3))
        return f"{lost.total()} of {kept + lost.total()} messages are left out ({reasons})"

    def entries(self, numbers: Mapping[Draft, int]) -> Iterator[Entry]:
        """Yield what became of every line, in order.

        Args:
            numbers: Index in the fixture of every message that is in it.
        """
        for line in self.lines:
            became = tuple(numbers[draft] for draft in line.drafts if draft in numbers)
            merged = tuple(numbers[draft] for draft in line.merged_into if draft in numbers)
            said = [*line.drafts, *line.merged_into]
            gone = (self.dropped[draft] for draft in said if draft in self.dropped)
            fate: Fate = "unaccounted"
            reason = line.reason or next(gone, None)
            if became or merged:
                fate, reason = "message" if became else "merged", ""
            elif line.unknown:
                fate, reason = "unknown", line.reason
            elif reason:
                fate = "skipped"
            parts = tuple(line.left_out)
            yield Entry(line.place, line.kind, fate, became or merged, reason or "", parts)


@dataclass(eq=False)
class Compaction:
    """A compaction that the agent carried out while it was recorded."""

    after: Draft | None
    """The last message before it; none if there was nothing before."""
    kind: CompactionKind = "summary"
    """As in `fixtures.models.RecordedCompaction`."""
    trigger: str = ""
    summary: str | None = None
    """As the agent wrote it; None if it cannot be read."""
    tokens_before: int | None = None
    tokens_after: int | None = None
    state: list[Draft] | None = None
    """What the agent went on with, beside the system prompt.

    Drafts that also stand in the conversation were kept as they are; others were made by the
    compaction. None if the file does not tell.
    """


@dataclass(eq=False)
class Conversation:
    """One thread between a user and an agent; sub-agents and side chains are their own."""

    format: str
    """Name of the format that it was read from."""
    origin: str = ""
    """What recorded it, for people, as ``Claude Code 2.1.36``."""
    session: str = ""
    """The session's id in the file; empty if there is none."""
    ledger: Ledger = field(default_factory=Ledger)
    drafts: list[Draft] = field(default_factory=list)
    """The whole true history, in order; never a summary that stands in for earlier messages."""
    compactions: list[Compaction] = field(default_factory=list)
    part: str = ""
    """Which thread of the session, as ``agent-3f2a`` or ``epoch-2``; empty for the main one."""
    model: str = ""
    context_length: int | None = None
    tools: list[ToolDefinition] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    """What the file lacks or what could not be carried over, in words without content."""
    notes: list[str] = field(default_factory=list)
    """The caveats that an import prints."""

    @property
    def last(self) -> Draft | None:
        """The last message so far."""
        return self.drafts[-1] if self.drafts else None

    @property
    def system(self) -> Draft | None:
        """The first system prompt."""
        return next((draft for draft in self.drafts if draft.role == "system"), None)

    @property
    def is_subagent(self) -> bool:
        """Whether another agent speaks in the user's name, by the part that it is."""
        return self.part.partition("-")[0] in ("agent", "side", "subagent")

    @property
    def called(self) -> bool:
        """Whether there is any tool call."""
        return any(draft.calls for draft in self.drafts)

    def say(self, line: Line, *drafts: Draft) -> None:
        """Add the messages that a line became."""
        self.drafts.extend(line.became(draft) for draft in drafts)

    def caveat(self, *texts: str) -> None:
        """Say what the file lacks or what could not be carried over, in words without content."""
        self.caveats.extend(texts)

    def note(self, text: str) -> None:
        """Add a caveat that an import prints, for it is about how the file was read."""
        self.caveats.append(text)
        self.notes.append(text)

    def say_system(
        self,
        line: Line,
        draft: Draft,
        otherwise: str = "its system prompt took the place of an earlier one",
    ) -> None:
        """Take a system prompt: the first one opens the conversation.

        Args:
            line: Its line; one that repeats the first is merged into it.
            draft: The prompt.
            otherwise: Why one that says something else is left out.
        """
        first = self.system
        if first is None:
            self.drafts.insert(0, line.became(draft))
        elif first.content == draft.content:
            line.merge(first)
        else:
            line.skip(otherwise)

    def compact(
        self,
        summary: str | None = None,
        state: list[Draft] | None = None,
        kind: CompactionKind | None = None,
        **more: Any,
    ) -> Compaction:
        """Record a compaction behind the last message.

        Args:
            summary: As the agent wrote it.
            state: What the agent went on with.
            kind: Unless given, a compaction without a summary cannot be read, nor what it left.
            more: Further fields of `Compaction`.
        """
        fields: dict[str, Any] = {
            "after": self.last,
            "kind": kind or ("summary" if summary else "opaque"),
            "summary": summary or None,
            "state": state if summary or kind else None,
        }
        self.compactions.append(Compaction(**{**fields, **more}))
        return self.compactions[-1]

    def open_or_compact(
        self, line: Line, made: Draft, summary: str, state: list[Draft] | None
    ) -> None:
        """Record a compaction, or open with its summary, where what it stands for is not there.

        Args:
            line: Its line.
            made: The message that carries the summary.
            summary: As the agent wrote it.
            state: What the agent went on with.
        """
        if summary and not self.drafts:
            self.caveat(SUMMARY_STANDS_IN)
            self.say(line, made)
        else:
            line.skip(RECORDED)
            self.compact(summary, state)

    def undo(self, start: int) -> None:
        """Drop the messages from a place on, and the compactions behind them."""
        for draft in self.drafts[start:]:
            self.ledger.dropped[draft] = "undone by the user"
        del self.drafts[start:]
        kept = {None, *self.drafts}
        self.compactions = [item for item in self.compactions if item.after in kept]

    def take_tools(self, values: Iterable[Any]) -> None:
        """Take the definitions of tools, and say of how many there is no schema."""
        self.tools, without = tool_definitions(values)
        if without:
            self.caveat(f"{without} tools are named without a schema")

    def take_task(self, arguments: str = "") -> None:
        """Open a conversation whose file does not hold the prompt, if it has no user message.

        Args:
            arguments: Of the call that started a sub-agent: its prompt is the task.
        """
        if not self.drafts or any(draft.role == "user" for draft in self.drafts):
            return
        given = Json.of(json_object(arguments) if arguments else None)
        prompt = given.first("prompt", "task")
        if not prompt:
            self.caveat(
                "the file does not hold the prompt; a note stands in its place as the user's "
                "message"
            )
        opening = Draft("user", [prompt or NO_PROMPT])
        why = "the task that the caller gave" if prompt else "the file holds no prompt"
        self.ledger.added[opening] = why
        self.drafts.insert(sum(draft.role == "system" for draft in self.drafts[:1]), opening)

    def name_subagent(self, thread: str = "thread") -> None:
        """Say that another agent speaks in the user's name."""
        self.part = "subagent"
        self.caveat(f"a sub-agent's {thread}: its user is another agent")

    def name_injected(self, writer: str) -> None:
        """Say how many messages in the user's name another one wrote, if there are any."""
        if count := sum(draft.injected for draft in self.drafts):
            self.caveat(
                f"{count} messages in the user's name were written by {writer}, not by the user"
            )

    def name_missing(self, *, tools: bool = True) -> None:
        """Say of the system prompt and the tools that they are missing, if they are."""
        if self.system is None:
            self.caveat(NO_SYSTEM_PROMPT)
        if tools and not self.tools:
            self.caveat(NO_TOOLS)
