"""A conversation as a reader hands it over, not yet a fixture, and what it leaves out.

Readers only say what a file contains. What every fixture needs whatever it came from (results right
behind their calls, no empty turns, images described) is done once, in `building`.

A reader has a `Line` for each line or event of its input, and says of a line only why it, or a
part of it, is left out. `Conversation.left_out` counts that by reason, with the first few places.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from compression_eval.conversations.fields import Json, as_text, json_object, tool_definitions
from compression_eval.conversations.sources import Value
from compression_eval.fixtures.models import NO_PROMPT, ToolDefinition

Role = Literal["system", "user", "assistant", "tool"]
CompactionKind = Literal["summary", "clear", "opaque"]

NO_THINKING = "thinking is left out"
REPLACED_BYTES = "bytes that are not UTF-8 were replaced"
NO_SYSTEM_PROMPT = "the file does not contain the system prompt"
NO_TOOLS = "the file does not contain the definitions of the tools"
RECORDED = "a compaction, recorded apart from the messages"
NO_FORM = "of no known form"
NO_CALL = "a result whose call is not in the file"
_MOST_PLACES = 5
_SPEAKERS = frozenset({"user", "assistant", "tool", "message"})
SUMMARY_STANDS_IN = "earlier messages are not in the file: a summary replaces them"


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
    """Return the image at an address; its type is known if the address contains it."""
    data = url.startswith("data:")
    return Image(url[len("data:") : 100].partition(",")[0].partition(";")[0] if data else "", url)


def looks_like_message(entry: Json) -> bool:
    """Return whether an object, or what it contains, says that it is a message."""
    inner = (entry, entry.entry("message"), entry.entry("payload"))
    return any({each.text("role"), each.text("type")} & _SPEAKERS for each in inner)


def inline_image(media_type: str, data: str) -> Image:
    """Return an image that is in the file as Base64; without data only its type is known."""
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
    failed: bool = False
    """Of a tool message: whether the file marks it as an error."""
    usage: dict[str, int | None] | None = None
    """Of the model's: tokens, as in `fixtures.metadata.checked`."""
    line: "Line | None" = None
    """Where it comes from; None if no line stands for it."""

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
class Omitted:
    """What is in no fixture for one reason, and where the first of it is."""

    what: str
    """What the format calls a line, as ``attachment:queued_command``, or a part of one."""
    reason: str
    known: bool
    """Whether a rule leaves it out; otherwise it is damaged, or of a kind that no rule knows."""
    whole: bool
    """Whether whole lines are left out, or parts of lines that became messages."""
    count: int
    first: tuple[str, ...]
    """The first few places, as ``line 12`` or ``event 5``."""


@dataclass(eq=False)
class Line:
    """One line or event of the input; unless something is said of it, it has been read."""

    place: str = ""
    kind: str = ""
    speaks: bool = False
    """Whether it looks like a message, or became one."""
    lost: bool = False
    """Whether a message that it held may be missing: it is damaged, or on a branch that is left."""
    time: str = ""
    """When it was written, as the file says."""
    reason: str | None = None
    unknown: bool = False
    parts: list[tuple[str, str]] = field(default_factory=list)
    """What is left out of it, with the reason."""

    def became(self, draft: Draft) -> Draft:
        """Say that this line is the origin of a message; may be said of several messages."""
        self.speaks, draft.line = True, self
        return draft

    def skip(self, reason: str) -> None:
        """Say why nothing of this line is in the fixture; the reason contains no content."""
        self.reason = reason

    def leave(self, reason: str) -> None:
        """Say why a message of this line is left out, by links that may themselves be wrong."""
        self.reason, self.lost = reason, True

    def is_unknown(self, what: str) -> None:
        """Say that this line is of a kind that the reader does not know."""
        self.unknown, self.reason = True, what

    def leave_out(self, part: str, reason: str) -> None:
        """Say that a part of this line was not carried over."""
        self.parts.append((part, reason))

    def leave_out_thinking(self) -> None:
        """Say, once, that the thinking of this line was not carried over."""
        if ("thinking", NO_THINKING) not in self.parts:
            self.leave_out("thinking", NO_THINKING)

    def objects(self, values: Iterable[Any], part: str) -> Iterator[Json]:
        """Yield the values that are objects; every other one is left out."""
        for value in values:
            if isinstance(value, dict):
                yield Json(value)
            else:
                self.leave_out(part, "expected an object")


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
    """What the agent continued with, besides the system prompt.

    Drafts that also are in the conversation were kept as they are; others were made by the
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
    lines: list[Line] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    """The whole true history, in order; never a summary that is in for earlier messages."""
    dropped: dict[Draft, str] = field(default_factory=dict)
    """Messages that no fixture can hold, with the reason."""
    added: set[Draft] = field(default_factory=set)
    """Messages that no line stands for."""
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

    def enter(self, place: str, kind: str) -> Line:
        """Return the line of a place, which is in nothing but counts."""
        self.lines.append(Line(place, kind))
        return self.lines[-1]

    def enter_value(self, value: Value, kind: str) -> Line:
        """Return the line of a value of a file; of one that cannot be read it says why."""
        line = self.enter(value.place, "unreadable" if value.problem else kind)
        if value.problem:
            line.skip(value.problem)
            line.lost = value.problem != NO_FORM
        if value.replaced:
            line.leave_out("bytes", REPLACED_BYTES)
        return line

    def left_out(self, kept: Collection[Draft]) -> list[Omitted]:
        """Return what is left out, by reason, given the messages that a fixture contains."""
        found: dict[tuple[str, str, bool, bool], list[str]] = defaultdict(list)
        origins = {draft.line for draft in kept}
        for line in self.lines:
            if line.reason is not None and line not in origins:
                known = not (line.unknown or line.kind == "unreadable")
                found[line.kind, line.reason, known, True].append(line.place)
            for part, reason in line.parts:
                found[part, reason, True, False].append(line.place)
        return [Omitted(*key, len(at), tuple(at[:_MOST_PLACES])) for key, at in found.items()]

    def missing(self, kept: Collection[Draft]) -> str:
        """Return how many messages are left out though they may belong to the conversation.

        Returns:
            A text that counts them by reason; empty if they are at most a third of all.
        """
        origins = {draft.line for draft in kept}
        there, lost = 0, Counter[str]()
        for line in self.lines:
            if line in origins or (line.speaks and line.reason is None):
                there += 1
            elif line.lost or (line.unknown and line.speaks):
                lost[(line.reason or "").partition(" (")[0]] += 1
        if lost.total() * 3 <= there + lost.total():
            return ""
        reasons = "; ".join(f"{count} x {why}" for why, count in lost.most_common(3))
        return f"{lost.total()} of {there + lost.total()} messages are left out ({reasons})"

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

    def say_system(self, line: Line, draft: Draft) -> None:
        """Take a system prompt: the first one opens the conversation."""
        first = self.system
        if first is None:
            self.drafts.insert(0, line.became(draft))
        elif first.content != draft.content:
            line.skip("its system prompt took the place of an earlier one")

    def compact(
        self,
        summary: str | None = None,
        state: list[Draft] | None = None,
        kind: CompactionKind | None = None,
        **more: Any,
    ) -> Compaction:
        """Record a compaction behind the last message.

        Unless its kind is given, one without a summary cannot be read, nor what it left.
        """
        compaction = Compaction(
            more.pop("after", self.last),
            kind=kind or ("summary" if summary else "opaque"),
            summary=summary or None,
            state=state if summary or kind else None,
            **more,
        )
        self.compactions.append(compaction)
        return compaction

    def open_or_compact(
        self, line: Line, made: Draft, summary: str, state: list[Draft] | None
    ) -> None:
        """Record a compaction, or open with its summary, where what it stands for is not there."""
        if summary and not self.drafts:
            self.caveat(SUMMARY_STANDS_IN)
            self.say(line, made)
        else:
            line.skip(RECORDED)
            self.compact(summary, state)

    def undo(self, start: int) -> None:
        """Drop the messages from a place on, and the compactions behind them."""
        for draft in self.drafts[start:]:
            self.dropped[draft] = "undone by the user"
        del self.drafts[start:]
        kept = {None, *self.drafts}
        self.compactions = [item for item in self.compactions if item.after in kept]

    def take_tools(self, values: Iterable[Any]) -> None:
        """Add the definitions of tools, and say of how many there is no schema."""
        found, without = tool_definitions(values)
        self.tools = list({tool.function.name: tool for tool in [*self.tools, *found]}.values())
        if without:
            self.caveat(f"{without} tools have no schema")

    def take_task(self, arguments: str = "") -> None:
        """Open a conversation whose file does not contain the prompt, if it has no user message.

        A sub-agent's task is the prompt among the arguments of the call that started it.
        """
        if not self.drafts or any(draft.role == "user" for draft in self.drafts):
            return
        given = Json.of(json_object(arguments) if arguments else None)
        self.open_with(given.first("prompt", "task"))

    def open_with(self, prompt: str) -> None:
        """Put the user's first message before all others, or a note if it is not in the file."""
        if not prompt:
            self.caveat(
                "the file does not contain the prompt; a note replaces it as the user's message"
            )
        opening = Draft("user", [prompt or NO_PROMPT])
        self.added.add(opening)
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
