"""What the readers of all formats share.

A format is one module with a ``FORMAT``, listed in `formats`. Its `Reader` takes a file value by
value: a table says by a value's kind which method takes it, or why it is left out. Values of a
kind that no table has are counted as unknown, and so are values that are no objects. Most files
contain one conversation (`line_format`), others several, one after the other
(`thread_format`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal, TypeVar

import yaml

from compression_eval.conversations.drafts import (
    NO_FORM,
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    REPLACED_BYTES,
    Content,
    Conversation,
    Draft,
    Image,
    Line,
    looks_like_message,
)
from compression_eval.conversations.fields import Json, label
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.errors import DataError

TEXT_ACTIONS = (
    "the agent's actions are part of its text, not tool calls: files that it touched are not "
    "known from calls"
)
"""Calls made of such text would need ids that nobody gave, and would not be what the agent saw."""

LEFT_BRANCH = "on a branch that the user left"

Recogniser = Callable[[SourceFile], str | None]
"""Returns what was seen that marks a format, in a few words; None if a file is of another.

It must be sure: a mark that only this format has, and nothing that speaks for another one, as
blocks or fields in another agent's form. A file that nobody claims is skipped by name, which is
better than one whose calls are lost.
"""

Table = Mapping[str, str | Callable[[Any, Line, Json], None]]
"""For each kind of value the method that takes it, or the reason why it is left out."""


@dataclass(frozen=True)
class Format:
    """One format: how to know it and how to read it."""

    name: str
    """As given to ``--format``."""
    recognise: Recogniser
    conversations: Callable[[SourceFile], Iterator[Conversation]]
    """Yields the threads of a file one by one; none if the file is not of this format."""
    expected: str = "a conversation"
    """What a file of the format contains, in a few words."""

    def read(self, source: SourceFile) -> Iterator[Conversation]:
        """Yield the threads of a file one by one.

        Raises:
            DataError: The file is not of this format at all.
        """
        found = False
        for conversation in self.conversations(source):
            found = True
            if source.document is not None and source.document_replaced:
                conversation.caveat(REPLACED_BYTES)
            yield conversation
        if not found:
            raise DataError(f"{source.path}: expected {self.expected}, found none")


class Reader(Conversation):
    """A conversation that is being read, value by value. A format's reader is a subclass."""

    format: str
    kinds: ClassVar[Table] = {}
    key: ClassVar[str] = "type"
    """The field that says of which kind a value is."""
    subtype: ClassVar[tuple[str, ...]] = ()
    """The field that says of which sort of its kind it is, by the keys that lead to it."""
    lacks: ClassVar[tuple[str, ...]] = (NO_SYSTEM_PROMPT, NO_TOOLS)
    """What no file of the format contains."""

    def __init__(self, origin: str = "", session: str = "", part: str = "") -> None:
        super().__init__(self.format, origin, session, part=part, caveats=list(self.lacks))
        self.models: Counter[str] = Counter()
        """How often each model answered."""
        self.recognised = False
        """Whether anything was of this format."""
        self.number = 1
        """Which conversation of its file it is."""

    def kind_of(self, entry: Json) -> str:
        """Return the kind of a value, by which the table knows it."""
        return entry.text(self.key)

    def name_of(self, entry: Json) -> str:
        """Return what to call a value in counts."""
        kind = label(self.kind_of(entry))
        sort = entry.text(*self.subtype) if self.subtype else ""
        return f"{kind}:{label(sort)}" if sort else kind

    def feed(self, value: Value) -> None:
        """Take what a value of the file contains."""
        entry = Json.of(value.value)
        line = self.enter_value(value, self.name_of(entry))
        line.speaks = looks_like_message(entry)
        if value.problem:
            return
        if not isinstance(value.value, dict):
            line.is_unknown("expected a JSON object")
            return
        line.time = entry.text("timestamp")
        try:
            self.take(line, entry)
        except RecursionError:
            line.is_unknown("nested too deeply")

    def feed_all(self, name: str, values: Iterable[Any], first: int = 0) -> None:
        """Feed the items of a list, which are called by a name and their number."""
        for number, value in enumerate(values, first):
            self.feed(Value(f"{name} {number}", value))

    def take(self, line: Line, entry: Json) -> None:
        """Take an object by its kind."""
        found = self.kinds.get(self.kind_of(entry))
        if isinstance(found, str):
            line.skip(found)
        elif found is None:
            line.is_unknown("unknown kind")
        else:
            found(self, line, entry)
            self.recognised = self.recognised or not line.unknown

    def finish(self) -> Conversation:
        """Return the conversation; nothing is fed after it."""
        self.models.pop("", None)
        if self.models:
            self.model = self.models.most_common(1)[0][0]
        return self


T = TypeVar("T", bound=Reader)


@dataclass(eq=False)
class Node:
    """A line of a session whose lines form a tree: each follows another one."""

    line: Line
    entry: Json
    parent: "Node | None"
    draft: Draft | None = None

    @property
    def path(self) -> "list[Node]":
        """The lines from the first one to this one."""
        found: dict[Node, None] = {}
        node: Node | None = self
        while node is not None and node not in found:
            found[node] = None
            node = node.parent
        return list(found)[::-1]


def read_lines(source: SourceFile, reader: Reader) -> Iterator[Conversation]:
    """Yield the one conversation of a file with a value on each line, if any is of its format."""
    for value in source.values():
        reader.feed(value)
    if reader.recognised:
        yield reader.finish()


def feed_threads(values: Iterable[Value], thread_of: Callable[[Value], Reader]) -> None:
    """Feed every value to its thread; what cannot be read goes with the value before it."""
    thread: Reader | None = None
    waiting: list[Value] = []
    for value in values:
        waiting.append(value)
        if not value.problem:
            thread = thread_of(value)
        while waiting and thread is not None:
            thread.feed(waiting.pop(0))


def line_format(reader: type[Reader], recognise: Recogniser, expected: str) -> Format:
    """Return a format whose files contain one conversation, with a value on each line."""
    return Format(reader.format, recognise, lambda source: read_lines(source, reader()), expected)


Place = Literal["opens", "belongs", "foreign"]
"""Whether a value opens a thread, belongs to the open one, or is of no known form."""


def thread_format(
    reader: type[T],
    recognise: Recogniser,
    place: Callable[[Any, T | None], Place],
    expected: str,
) -> Format:
    """Return a format whose files contain conversations one after the other."""

    def read(source: SourceFile) -> Iterator[Conversation]:
        thread: T | None = None
        number, waiting = 0, list[Value]()
        for value in records(source):
            where: Place = "foreign" if value.problem else place(value.value, thread)
            if where == "opens":
                if thread is not None:
                    yield thread.finish()
                thread, number = reader(), number + 1
                thread.number = number
                for earlier in waiting:
                    thread.feed(earlier)
                waiting.clear()
            if thread is None:
                # The first thread counts it; what it contains is not needed.
                waiting.append(Value(value.place, problem=value.problem or NO_FORM))
            else:
                thread.feed(value)
        if thread is not None:
            yield thread.finish()

    return Format(reader.format, recognise, read, expected)


def records(source: SourceFile) -> Iterator[Value]:
    """Yield every JSON value of a file, which may be one document over many lines."""
    if not source.head and source.document is not None:
        yield Value("document", source.document)
    else:
        yield from source.values()


def with_asides(
    items: Iterable[Conversation | Value], kind: str, nothing: str, unknown: str = ""
) -> Iterator[Conversation]:
    """Yield conversations; the last one counts the values that belong to none.

    Raises:
        DataError: There is no conversation.
    """
    last: Conversation | None = None
    asides: list[Value] = []
    for item in items:
        if isinstance(item, Value):
            asides.append(item)
            continue
        if last is not None:
            yield last
        last = item
    if last is None:
        raise DataError(nothing + (f": {asides[0].problem}" if asides and not unknown else ""))
    for value in asides:
        line = last.enter_value(value, kind)
        if not value.problem:
            line.is_unknown(unknown)
    yield last


def sign(values: Iterable[Any], bears: Callable[[Json], object], words: str) -> str | None:
    """Return the words for a sign of a format if a value bears it."""
    return words if any(bears(Json.of(value)) for value in values) else None


def prevails(
    values: Iterable[Any], kind: Callable[[Json], str], fits: Callable[[Json], object]
) -> bool:
    """Return whether values are of a form, though a few of them may be damaged.

    Most of them are, and so is one of each kind that occurs more than once: where no message of
    the model is, they are another agent's.
    """
    found: dict[str, list[bool]] = defaultdict(list)
    for value in map(Json.of, values):
        found[kind(value)].append(bool(fits(value)))
    every = [fit for fits_of_kind in found.values() for fit in fits_of_kind]
    foreign = (name and len(of) > 1 and not any(of) for name, of in found.items())
    return sum(every) * 2 > len(every) and not any(foreign)


def without_thinking(content: Iterable[str | Image], line: Line) -> Content:
    """Leave out the thinking that some models write among their words, between marks."""
    from compression_eval.text.thinking import split_thinking

    found: Content = []
    for part in content:
        if not isinstance(part, str):
            found.append(part)
            continue
        split = split_thinking(part)
        found.append(split.said)
        if split.thoughts:
            line.leave_out_thinking()
    return found


@cache
def marks_of(agent: str) -> dict[str, Any]:
    """Return the texts by which an agent's own lines are known, from ``AGENT_marks.yaml``.

    Lists are tuples, as `str.startswith` wants them.
    """
    text = (files(__package__) / f"{agent}_marks.yaml").read_text(encoding="utf-8")
    marks = yaml.safe_load(text).items()
    return {key: tuple(value) if isinstance(value, list) else value for key, value in marks}


def marked(marker: str, /, **values: str) -> str:
    """Return a text of ``common_marks.yaml`` with what it stands around."""
    text: str = marks_of("common")[marker]
    return text.format(**values).rstrip()


def summary_draft(summary: str, marker: str = "conversation_summary") -> Draft:
    """Return the user message in which an agent shows a summary to the model."""
    return Draft("user", [marked(marker, text=summary)], injected=True)


def command_text(command: str, output: str, code: Any = None) -> str:
    """Return what the model was shown of a command that the user ran."""
    if isinstance(code, int) and code:
        output = f"{output}\n{marked('exit_code', code=str(code))}"
    return marked("user_command", command=command, text=output)


def with_originals(replayed: Sequence[Draft], known: Iterable[Draft]) -> list[Draft]:
    """Put the conversation's own messages in the place of their copies.

    Of several that are the same, the last ones are taken, as a kept tail has them.
    """

    def key(draft: Draft) -> Hashable:
        return draft.role, draft.text, tuple(call.id for call in draft.calls), draft.call_id

    originals: dict[Hashable, list[Draft]] = defaultdict(list)
    for draft in known:
        originals[key(draft)].append(draft)
    found: list[Draft] = []
    block: list[Draft] = []
    for draft in reversed(replayed):
        block.append(draft)
        if draft.role != "tool":
            # Calls and their results are kept together or made again together.
            same = [originals[key(part)].pop() for part in block if originals[key(part)]]
            found.extend(same if len(same) == len(block) else block)
            block = []
    return [*reversed(block), *reversed(found)]
