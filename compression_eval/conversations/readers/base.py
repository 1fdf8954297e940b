"""What every reader of a format stands on.

A format is one module with a ``FORMAT``, named in `formats`. Its reader takes a file value by
value: each is entered in the account first, then a table says by its kind who takes it, or why it
is skipped; what no table knows is named as unknown. So no line can be forgotten.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import yaml
from pydantic import ValidationError

from compression_eval.conversations.account import Ledger, Line
from compression_eval.conversations.drafts import (
    NO_SYSTEM_PROMPT,
    NO_TOOLS,
    Content,
    Conversation,
    Draft,
    Image,
)
from compression_eval.conversations.fields import (
    as_text,
    clean,
    from_json,
    json_object,
    label,
    list_of,
    mapping_of,
    text_of,
)
from compression_eval.conversations.formats import Format
from compression_eval.conversations.sources import SourceFile, Value
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.markers import NO_PROMPT
from compression_eval.fixtures.models import ToolDefinition

TEXT_ACTIONS = (
    "the agent's actions are part of its text, not tool calls: files that it touched are not "
    "known from calls"
)
"""Calls made of such text would need ids that nobody gave, and would not be what the agent saw."""

SUMMARY_STANDS_IN = "earlier messages are not in the file: a summary stands in their place"
REPLACED_BYTES = "bytes that are not UTF-8 were replaced"
NO_THINKING = "thinking is left out"
LEFT_BRANCH = "on a branch that the user left"

_THINKING_TAGS = ("think", "thinking")

Entry = dict[str, Any]
Handler = Callable[[Any, Line, Entry], None]
Table = Mapping[str, str | Handler]
"""For each kind of value the method that takes it, or the reason why it is skipped."""


class Reader:
    """A conversation that is being read, value by value. A format's reader is a subclass.

    What the values of a file are is a table, and so is what becomes of them.
    """

    format: ClassVar[str]
    """The format's name."""
    kinds: ClassVar[Table] = {}
    unknown: ClassVar[str] = ""
    """What is said of a value of any other kind."""
    expected: ClassVar[str] = ""
    """What the file was expected to hold, for the error where it holds nothing of the kind."""
    key: ClassVar[str] = "type"
    """The field that says of which kind a value is."""
    lacks: ClassVar[tuple[str, ...]] = (NO_SYSTEM_PROMPT, NO_TOOLS)
    """What no file of the format holds."""

    def __init__(self, product: str = "", session: str = "", part: str = "") -> None:
        self.conversation = Conversation(
            self.format, product, session, part=part, caveats=list(self.lacks)
        )
        self.models: Counter[str] = Counter()
        """How often each model answered."""
        self.recognised = False
        """Whether anything was of this format."""

    def kind_of(self, entry: Any) -> str:
        """Return the kind of a value, by which the table knows it."""
        return text_of(entry, self.key)

    def name_of(self, entry: Any) -> str:
        """Return what to call a value in the account."""
        return label(self.kind_of(entry))

    def feed(self, value: Value) -> None:
        """Enter a value of the file and take what it holds."""
        line = entered(self.conversation.ledger, value, self.name_of(value.value))
        if not value.problem:
            self.take(line, value.value)

    def take(self, line: Line, entry: Any) -> None:
        """Settle the line of a value."""
        found = self.kinds.get(self.kind_of(entry))
        if isinstance(found, str):
            line.skip(found)
        elif found is None:
            line.is_unknown(self.unknown)
        else:
            try:
                found(self, line, entry)
            except RecursionError:
                line.is_unknown("nested too deeply")
            self.recognised = self.recognised or bool(line.drafts) or not line.unknown

    def finish(self) -> Conversation:
        """Return the conversation; nothing is fed after it."""
        self.models.pop("", None)
        if self.models:
            self.conversation.model = self.models.most_common(1)[0][0]
        return self.conversation


def read_lines(source: SourceFile, reader: Reader) -> Iterator[Conversation]:
    """Yield the one conversation of a file with a value on each line.

    Raises:
        DataError: No value is of the reader's format.
    """
    for value in source.values():
        reader.feed(value)
    if not reader.recognised:
        raise DataError(f"{source.path}: {reader.expected}")
    yield reader.finish()


def line_format(
    reader: type[Reader], title: str, recognise: Callable[[SourceFile], str | None]
) -> Format:
    """Return a format whose files hold one conversation, with a value on each line."""
    return Format(reader.format, title, recognise, lambda source: read_lines(source, reader()))


def document_of(source: SourceFile, expected: str, fits: Callable[[Any], bool]) -> Any:
    """Return a file's JSON document.

    Raises:
        DataError: It is none, or not what was expected.
    """
    if source.document is None:
        raise DataError(f"{source.path}: expected {expected}, found no complete JSON document")
    if not fits(source.document):
        raise DataError(f"{source.path}: expected {expected}, found none")
    return source.document


def with_replaced(conversation: Conversation, source: SourceFile) -> Conversation:
    """Return the conversation of a document, saying whether bytes of it were replaced."""
    if source.document_replaced:
        conversation.caveats.append(REPLACED_BYTES)
    return conversation


def entered(ledger: Ledger, value: Value, kind: str) -> Line:
    """Enter a value of a file; the line of one that cannot be read is settled."""
    line = ledger.enter(value.place, "unreadable" if value.problem else kind)
    if value.problem:
        line.skip(value.problem)
    if value.replaced:
        line.leave_out("bytes", REPLACED_BYTES)
    return line


def nowhere() -> Line:
    """Return a line of no account, for what is read a second time."""
    return Line("", "")


def with_subtype(kind: str, subtype: str) -> str:
    """Return what to call a line that may be of a certain sort of its kind."""
    return f"{label(kind)}:{label(subtype)}" if subtype else label(kind)


def message_name(entry: Any) -> str:
    """Return what to call a line that may be a message: its type, of a message with the role."""
    kind = label(text_of(entry, "type"))
    return f"message:{label(text_of(entry, 'message', 'role'))}" if kind == "message" else kind


Place = Literal["opens", "belongs", "foreign"]
"""Whether a value opens a thread, belongs to the open one, or is of no known form."""


class Thread(Protocol):
    """A conversation that is being read."""

    def feed(self, value: Value) -> None:
        """Enter a value into the account and take what it holds."""

    def finish(self) -> Conversation:
        """Return the conversation; nothing is fed after it."""


T = TypeVar("T", bound=Thread)


def records(source: SourceFile) -> Iterator[Value]:
    """Yield every JSON value of a file, which may be one document over many lines."""
    if not source.head and source.document is not None:
        yield Value("document", source.document, replaced=source.document_replaced)
    else:
        yield from source.values()


def threads(
    source: SourceFile,
    *,
    expected: str,
    place: Callable[[Any, T | None], Place],
    new: Callable[[], T],
) -> Iterator[Conversation]:
    """Yield the conversations of a file, one at a time, each value in exactly one account.

    Args:
        source: The file.
        expected: What the file should hold, for the error.
        place: Where a value belongs, given the open thread.
        new: Opens a thread.

    Raises:
        DataError: No value opens a thread.
    """
    thread: T | None = None
    waiting: list[Value] = []
    for value in records(source):
        where: Place = "foreign" if value.problem else place(value.value, thread)
        if where == "opens":
            if thread is not None:
                yield thread.finish()
            thread = new()
            for earlier in waiting:
                thread.feed(earlier)
            waiting.clear()
        if thread is None:
            # It is named in the account of the first thread; what it holds is not needed.
            waiting.append(Value(value.place, problem=value.problem or "of no known form"))
        else:
            thread.feed(value)
    if thread is None:
        raise DataError(f"{source.path}: expected {expected}, found none")
    yield thread.finish()


def image_at(url: str) -> Image:
    """Return the image at an address; its type is known if the address holds it."""
    media_type = ""
    if url.startswith("data:"):
        media_type = url[len("data:") : 100].partition(",")[0].partition(";")[0]
    return Image(media_type=media_type, url=url)


def inline_image(media_type: str, data: str) -> Image:
    """Return an image that stands in the file as Base64; without data only its type is known."""
    return Image(media_type, f"data:{media_type};base64,{data}" if data else "")


def mcp_content(
    value: Any,
    line: Line,
    ignored: Sequence[str] = (),
    other: str = "block",
    why: str = "unknown kind of content",
) -> Content:
    """Return texts and images of content in the form of MCP, which several agents took over.

    Args:
        value: A text, or a list of blocks.
        line: Where what is not carried over is entered.
        ignored: Types of blocks that are taken elsewhere.
        other: What to call blocks of any other type.
        why: Why these are left out.
    """
    if isinstance(value, str):
        return [value]
    if value is not None and not isinstance(value, list):
        line.is_unknown("expected content that is a text or a list of blocks")
    found: Content = []
    for block in value if isinstance(value, list) else []:
        match text_of(block, "type"):
            case "text":
                found.append(text_of(block, "text"))
            case "image":
                found.append(inline_image(text_of(block, "mimeType"), text_of(block, "data")))
            case "thinking" | "redactedThinking":
                leave_out_thinking(line)
            case kind if kind not in ignored:
                line.leave_out(f"{other} {label(kind)}", why)
    return found


def leave_out_thinking(line: Line) -> None:
    """Say, once for a line, that its thinking was not carried over."""
    part = ("thinking", NO_THINKING)
    if part not in line.left_out:
        line.leave_out(*part)


def without_thinking(content: Iterable[str | Image], line: Line) -> Content:
    """Leave out the thinking that some models write before their answer, between tags."""
    return [without_tags(part, line) if isinstance(part, str) else part for part in content]


def without_tags(text: str, line: Line) -> str:
    """Leave out the thinking at the start of a text."""
    stripped = text.lstrip()
    for tag in _THINKING_TAGS:
        end = stripped.find(f"</{tag}>") if stripped.startswith(f"<{tag}>") else -1
        if end >= 0:
            leave_out_thinking(line)
            return stripped[end + len(tag) + 3 :].lstrip()
    return text


@cache
def marks_of(agent: str) -> dict[str, Any]:
    """Return the texts by which an agent's own lines are known, from ``AGENT_marks.yaml``.

    Lists are tuples, as `str.startswith` wants them.
    """
    text = (files(__package__) / f"{agent}_marks.yaml").read_text(encoding="utf-8")
    loaded = yaml.safe_load(text)
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in loaded.items()
    }


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


def is_subagent(conversation: Conversation, thread: str = "thread") -> None:
    """Say that another agent speaks in the user's name."""
    conversation.part = "subagent"
    conversation.caveats.append(f"a sub-agent's {thread}: its user is another agent")


def say_injected(conversation: Conversation, writer: str) -> None:
    """Say how many messages in the user's name another one wrote; none if there is none."""
    if count := sum(draft.injected for draft in conversation.drafts):
        conversation.caveats.append(
            f"{count} messages in the user's name were written by {writer}, not by the user"
        )


def give_task(conversation: Conversation, arguments: str = "") -> None:
    """Open a conversation whose file does not hold the prompt, if it has no user message.

    Args:
        conversation: Its account says that no line stands for the message.
        arguments: Of the call that started a sub-agent: its prompt is the task.
    """
    drafts = conversation.drafts
    if not drafts or any(draft.role == "user" for draft in drafts):
        return
    fields = json_object(arguments) if arguments else {}
    prompt = text_of(fields, "prompt") or text_of(fields, "task")
    if not prompt:
        conversation.caveats.append(
            "the file does not hold the prompt; a note stands in its place as the user's message"
        )
    opening = Draft("user", [prompt or NO_PROMPT])
    conversation.ledger.added[opening] = (
        "the task that the caller gave" if prompt else "the file holds no prompt"
    )
    drafts.insert(sum(draft.role == "system" for draft in drafts[:1]), opening)


def call_arguments(conversations: Iterable[Conversation]) -> dict[str, str]:
    """Return the arguments of every call, by the call's id."""
    drafts = (draft for conversation in conversations for draft in conversation.drafts)
    return {call.id: call.arguments for draft in drafts for call in draft.calls}


class KnownDrafts:
    """Messages of a conversation, to tell whether another one repeats one of them."""

    def __init__(self, drafts: Iterable[Draft]) -> None:
        self._waiting: dict[Hashable, deque[Draft]] = defaultdict(deque)
        for draft in drafts:
            self._waiting[draft.said].append(draft)

    def match(self, draft: Draft) -> Draft | None:
        """Return a message that says the same, each once; None if there is none left."""
        waiting = self._waiting[draft.said]
        return waiting.popleft() if waiting else None


def with_originals(replayed: Sequence[Draft], conversation: Conversation) -> list[Draft]:
    """Put the conversation's own messages in the place of their copies.

    Of several that are the same, the last ones are taken, as a kept tail has them.
    """

    def key(draft: Draft) -> Hashable:
        return draft.role, draft.text, tuple(call.id for call in draft.calls), draft.call_id

    originals: dict[Hashable, list[Draft]] = defaultdict(list)
    for draft in conversation.drafts:
        originals[key(draft)].append(draft)
    found: list[Draft] = []
    block: list[Draft] = []
    for draft in reversed(replayed):
        block.append(draft)
        if draft.role != "tool":
            # Calls and their results are kept together or made anew together.
            same = [originals[key(part)].pop() for part in block if originals[key(part)]]
            found.extend(same if len(same) == len(block) else block)
            block = []
    return [*reversed(block), *reversed(found)]


_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""Parameters of a tool that takes one text; calls of such are recorded as ``{"input": …}``."""
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "schema")


def tool_definitions(values: Iterable[Any]) -> tuple[list[ToolDefinition], int]:
    """Return the tools that a file defines, and how many it names without a schema.

    Args:
        values: Of the OpenAI chat form (``{"type": "function", "function": {…}}``), of the flat
            forms (``name`` with ``parameters``, ``input_schema`` or ``inputSchema``), custom tools
            with one free text, and groups of such under ``tools``.
    """
    found: dict[str, ToolDefinition] = {}
    without = 0
    for value in (item for group in values for item in list_of(group, "tools") or [group]):
        definition = _definition(value)
        if definition is None:
            without += 1
        else:
            found[definition.function.name] = definition
    return list(found.values()), without


def take_tools(conversation: Conversation, values: Iterable[Any]) -> None:
    """Give a conversation its tools, and say of how many there is no schema."""
    conversation.tools, without = tool_definitions(values)
    if without:
        conversation.caveats.append(f"{without} tools are named without a schema")


def _definition(value: Any) -> ToolDefinition | None:
    inner = mapping_of(value, "function") or mapping_of(value)
    kind = text_of(value, "type")
    known = {"custom": _FREE_TEXT, "function": {}}.get(kind)
    schema = next((inner[key] for key in _SCHEMAS if isinstance(inner.get(key), dict)), known)
    if schema is None:
        return None
    function = {
        "name": text_of(inner, "name"),
        "description": text_of(inner, "description"),
        "parameters": schema,
    }
    try:
        cleaned = from_json(clean(as_text(function)))
        return ToolDefinition.model_validate({"type": "function", "function": cleaned})
    except ValidationError:
        return None
