"""A plain view of a conversation: its messages, their lines, and its file changes.

The source is Inspect messages or JSON Lines.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, ContentText

Kind = Literal["said", "called", "returned"]
Action = Literal["created", "modified", "read", "deleted", "renamed"]

_ROLES = ("system", "user", "assistant", "tool")

MAX_SEGMENT = 320
"""Characters of a segment; longer lines are cut at sentence ends, else between words."""
_MAX_SEGMENTS = 4_000
"""Segments kept of one message, from both ends, to bound the work for huge outputs."""
_MAX_HEADER = 240
_MAX_ARGUMENT = 120
_LINE_NUMBER = re.compile(r"^\s*\d+(?:\u2192|\t)")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_HAS_CONTENT = re.compile(r"\w")
_PARTED = re.compile(r"[A-Za-z0-9_]{2}")
_SPACES = re.compile(r"\s+")

_PATH_KEYS = ("file_path", "path", "filename", "file", "target_file", "filepath", "notebook_path")
_NEW_KEYS = ("new_string", "new_str", "new", "replacement", "insert_text", "newText", "content")
_COMMAND_KEYS = ("command", "cmd", "script", "input", "patch")
_TOOLS: tuple[tuple[re.Pattern[str], Action], ...] = (
    (re.compile(r"edit|replace|patch|insert|modify|update", re.IGNORECASE), "modified"),
    (re.compile(r"write|create", re.IGNORECASE), "created"),
    (re.compile(r"read|view|open|cat", re.IGNORECASE), "read"),
    (re.compile(r"delete|remove", re.IGNORECASE), "deleted"),
)
_PATCH = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCH_ACTIONS: dict[str, Action] = {"Add": "created", "Update": "modified", "Delete": "deleted"}
_MOVE = re.compile(r"\b(?:git )?mv(?: -\w+)* (\S+) (\S+)")
_COMMANDS: tuple[tuple[re.Pattern[str], Action], ...] = (
    (re.compile(r"\b(?:git )?rm(?: -\w+)* ([^\s;&|-][^\s;&|]*)"), "deleted"),
    (re.compile(r"(?<![\d&>])>{1,2} ?(?!/dev/)([\w./-]+\.\w+)"), "created"),
    (re.compile(r"\bsed -i\S* .*?([\w./-]+\.\w+)\s*(?:$|[;&|])", re.MULTILINE), "modified"),
    (re.compile(r"\bcp(?: -\w+)* \S+ ([\w./-]+\.\w+)"), "created"),
)
_PRINT = re.compile(r"(?:^|[;&|(]\s*)(?:cat|head|tail|nl|less|sed -n|grep)\b([^|;&<>\n]*)")
_PATH = re.compile(r"(?<![\w./'\"-])[\w./-]*\w\.[A-Za-z]\w{0,5}(?![\w/])")
_NAMED = re.compile(r"\b(?:def|class|func|fn|function|const|struct|type|interface) +(\w+)")
_MAX_PATH = 200
_MAX_DETAIL = 90


@dataclass(frozen=True)
class Call:
    """A tool call: the tool's name and its decoded arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Utterance:
    """One message: its number in the conversation, role, text and tool calls."""

    index: int
    role: str
    text: str
    calls: tuple[Call, ...] = ()


def from_messages(messages: Iterable[ChatMessage]) -> list[Utterance]:
    """Return one utterance per message, numbered from 0; reasoning and media are left out."""
    result = []
    for index, message in enumerate(messages):
        calls = (message.tool_calls or []) if isinstance(message, ChatMessageAssistant) else []
        text = message.text
        if message.role == "tool" and message.error is not None and not text.strip():
            text = message.error.message
        own = tuple(Call(call.function, dict(call.arguments)) for call in calls)
        result.append(Utterance(index, message.role, text, own))
    return result


def from_records(records: Iterable[dict[str, Any]]) -> list[Utterance]:
    """Return the utterances among decoded JSON Lines: objects that have ``role`` and ``text``.

    Values of other types are left out; they are data from a conversation, and a summary of the rest
    is better than an error.
    """
    result = []
    for at, record in enumerate(records):
        role, text, index = record.get("role"), record.get("text"), record.get("index")
        if role not in _ROLES or not isinstance(text, str | None):
            continue
        number = index if isinstance(index, int) else at
        result.append(Utterance(number, str(role), text or "", tuple(_calls(record.get("calls")))))
    return result


def _calls(items: object) -> Iterator[Call]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            arguments = item.get("arguments")
            if isinstance(arguments, str):
                arguments = _decoded(arguments)
            yield Call(item["name"], arguments if isinstance(arguments, dict) else {})


def _decoded(line: str) -> dict[str, Any] | None:
    """Return the JSON object that a line holds, or None if it holds none."""
    line = line.strip()
    if not (line.startswith("{") and line.endswith("}")):
        return None
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_lines(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that fill a line of a text, in order.

    Only a line feed ends a line: JSON may contain other separators unescaped.
    """
    return [value for line in text.split("\n") if (value := _decoded(line)) is not None]


def user_records(messages: Iterable[ChatMessage]) -> list[list[dict[str, Any]]]:
    """Return the JSON objects of each user message that has any, by part of its content."""
    users = (message for message in messages if isinstance(message, ChatMessageUser))
    by_message = (
        [record for part in text_parts(user) for record in json_lines(part)] for user in users
    )
    return [records for records in by_message if records]


def text_parts(message: ChatMessageUser) -> list[str]:
    """Return the texts of a message's content."""
    if isinstance(message.content, str):
        return [message.content]
    return [part.text for part in message.content if isinstance(part, ContentText)]


def leaves(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield (key, text) for every scalar of nested JSON, with the nearest key above it."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)
    elif value is not None:
        yield key, str(value)


@dataclass(frozen=True)
class Segment:
    """One line of a conversation, and its place."""

    message: int
    """Position of the message among the cut ones."""
    role: str
    kind: Kind
    text: str
    """At most `MAX_SEGMENT` characters, white space collapsed, line numbers of listings removed."""
    line: int
    """Number of the segment within its message, from 0."""
    title: str = ""
    """The Markdown heading above the line, if there is one."""


@dataclass(frozen=True)
class Conversation:
    """The segments of a conversation and, for each message, its context."""

    segments: tuple[Segment, ...]
    headers: tuple[str, ...]
    """Per message: the assistant's text and calls before it, shortened."""
    calls: tuple[str, ...]
    """Per message: the signature of its call, or of the call it results from; empty if none."""


def cut(utterances: list[Utterance]) -> Conversation:
    """Cut a conversation into segments; results are matched to earlier calls in order."""
    segments: list[Segment] = []
    headers: list[str] = []
    signatures: list[str] = []
    last_said, waiting = "", list[str]()
    for position, utterance in enumerate(utterances):
        own_segments = list(_segments(position, utterance))
        if len(own_segments) > _MAX_SEGMENTS:
            half = _MAX_SEGMENTS // 2
            own_segments = own_segments[:half] + own_segments[-half:]
        segments.extend(own_segments)
        if utterance.role == "tool":
            signature = waiting.pop(0) if waiting else ""
            headers.append(f"{last_said} {signature}"[: 2 * _MAX_HEADER])
            signatures.append(signature)
            continue
        own = [_signature(call) for call in utterance.calls]
        if utterance.role != "assistant":
            last_said, waiting = "", []
        elif utterance.text.strip():
            last_said = _short(utterance.text)
        waiting.extend(own)
        headers.append(" ".join([last_said, *own])[: 4 * _MAX_HEADER])
        signatures.append(own[0] if own else "")
    return Conversation(tuple(segments), tuple(headers), tuple(signatures))


def _signature(call: Call) -> str:
    """Return a call as one short line: its name, then its short argument values."""
    values = [value for _, value in leaves(call.arguments)]
    short = [value for value in values if len(value) <= _MAX_ARGUMENT and "\n" not in value]
    return _short(" ".join([call.name, *short]))


def _short(text: str) -> str:
    return beginning(_SPACES.sub(" ", text).strip(), _MAX_HEADER).strip()


def _segments(position: int, utterance: Utterance) -> Iterator[Segment]:
    kind: Kind = "returned" if utterance.role == "tool" else "said"
    texts = [(kind, *each) for each in _lines(utterance.text, prose=kind == "said")]
    for call in utterance.calls:
        signature = _signature(call)
        texts.append(("called", signature, ""))
        for key, value in leaves(call.arguments):
            if value not in signature:
                texts.extend(("called", text, key) for text, _ in _lines(value, prose=False))
    for line, (kind, text, title) in enumerate(texts):
        yield Segment(position, utterance.role, kind, text, line, title)


def _lines(text: str, *, prose: bool) -> Iterator[tuple[str, str]]:
    """Yield (line, heading above it), long lines in pieces, lines without a word left out."""
    title = ""
    for raw in text.splitlines():
        line = _SPACES.sub(" ", _LINE_NUMBER.sub("", raw, count=1)).strip()
        if prose and line.startswith("#"):
            title = line.lstrip("# ")
        if _HAS_CONTENT.search(line):
            for piece in _pieces(line, prose=prose):
                yield piece, title


def _pieces(line: str, *, prose: bool) -> Iterator[str]:
    """Split prose into sentences, and anything into pieces of bounded length."""
    for part in _SENTENCE_END.split(line) if prose or len(line) > MAX_SEGMENT else [line]:
        at = 0
        while at < len(part):
            piece = beginning(part[at : at + MAX_SEGMENT + 1], MAX_SEGMENT)
            at += len(piece)
            if _HAS_CONTENT.search(piece):
                yield piece.strip()


def beginning(text: str, length: int) -> str:
    """Return the start of a text, cut after a space or else between two words.

    A cut identifier would read as another one. A run without a boundary in its second half is cut
    anywhere.
    """
    if len(text) <= length:
        return text
    least = length // 2
    space = text.rfind(" ", least, length)
    if space > 0:
        return text[: space + 1]
    between = (at for at in range(length, least, -1) if not _PARTED.match(text, at - 1))
    return text[: next(between, length)]


@dataclass(frozen=True)
class FileAction:
    """One file operation: its message, kind, path and change."""

    message: int
    action: Action
    path: str
    detail: str = ""
    """Names that the new text defines, or its first informative line; a rename's new path."""


def file_actions(utterances: list[Utterance]) -> list[FileAction]:
    """Return the file operations of a conversation in order.

    A file that is written after it was read, changed or written before counts as modified.
    """
    known: set[str] = set()
    result = []
    for utterance in utterances:
        for call in utterance.calls:
            for item in _of_call(utterance.index, call):
                again = item.action == "created" and item.path in known
                result.append(replace(item, action="modified") if again else item)
                known.add(item.detail if item.action == "renamed" else item.path)
    return result


def _of_call(message: int, call: Call) -> Iterator[FileAction]:
    texts = {key: value for key, value in call.arguments.items() if isinstance(value, str)}
    for key in _COMMAND_KEYS:
        yield from _of_command(message, texts.get(key, ""))
    path = next((texts[key] for key in _PATH_KEYS if texts.get(key)), "")
    if not path or len(path) > _MAX_PATH or "\n" in path:
        return
    action = next((action for pattern, action in _TOOLS if pattern.search(call.name)), None)
    if action:
        new = next((texts[key] for key in _NEW_KEYS if texts.get(key)), "")
        yield FileAction(message, action, path, "" if action == "read" else _detail(new))


def _of_command(message: int, command: str) -> Iterator[FileAction]:
    for kind, path in _PATCH.findall(command):
        yield FileAction(message, _PATCH_ACTIONS[kind], path.strip())
    head = command.split("<<", 1)[0]
    for old, new in _MOVE.findall(head):
        yield FileAction(message, "renamed", old, new)
    for pattern, action in _COMMANDS:
        for path in pattern.findall(head):
            yield FileAction(message, action, path)
    for operands in _PRINT.findall(head):
        for path in _PATH.findall(operands):
            yield FileAction(message, "read", path)


def _detail(text: str) -> str:
    """Describe a new piece of a file: the names it defines, else its first line."""
    if names := list(dict.fromkeys(_NAMED.findall(text))):
        return beginning(", ".join(names[:6]), _MAX_DETAIL)
    lines = (line.strip() for line in text.splitlines())
    return beginning(next((line for line in lines if len(line) > 3), ""), _MAX_DETAIL)


def by_action(actions: list[FileAction]) -> dict[Action, list[str]]:
    """Return the distinct paths per kind of operation; changed files do not count as read."""
    result: dict[Action, list[str]] = {}
    for item in actions:
        paths = result.setdefault(item.action, [])
        shown = f"{item.path} -> {item.detail}" if item.action == "renamed" else item.path
        if shown not in paths:
            paths.append(shown)
    changed = {*result.get("created", []), *result.get("modified", [])}
    if "read" in result:
        result["read"] = [path for path in result["read"] if path not in changed]
    return {action: paths for action, paths in result.items() if paths}
