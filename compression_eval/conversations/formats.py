"""The formats of recorded conversations, and telling them apart by what a file contains.

Only the readers are loaded whose fields are among those of a file's first values.
"""

from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import entries
from compression_eval.conversations.readers.base import Format
from compression_eval.conversations.sources import ListedFile, SourceFile
from compression_eval.errors import DataError, shorten

_READERS: dict[str, tuple[str, set[str]]] = {
    "claude-code": ("claude_code", {"sessionId"}),
    "codex": ("codex", {"payload"}),
    "inspect": ("inspect_log", {"PK", "eval"}),
    "goose": ("goose", {"SQ", "role", "working_dir"}),
    "hermes-db": ("hermes:DATABASE_FORMAT", {"SQ"}),
    "opencode": ("opencode", {"SQ", "info"}),
    "cursor": ("cursor", {"SQ", "role"}),
    "copilot-cli": ("copilot_cli", {"data"}),
    "atif": ("atif", {"schema_version"}),
    "qwen-code": ("gemini_cli:QWEN_FORMAT", {"sessionId"}),
    "droid": ("droid", {"type"}),
    "pi": ("pi", {"type"}),
    "hermes-jsonl": ("hermes", {"role", "messages"}),
    "gemini-cli": ("gemini_cli", {"projectHash"}),
    "openhands-events": ("openhands_events", {"kind"}),
    "swe-agent": ("swe_agent", {"trajectory"}),
    "mini-swe-agent": ("swe_agent:MINI_FORMAT", {"role", "messages", "info"}),
    "cline": ("cline", {"role"}),
    "amp": ("amp", {"messages"}),
    "openai-responses": ("responses", {"type", "role", "input", "output"}),
    "anthropic": ("anthropic", {"messages", "role", "request", "params", "body"}),
    "openai-chat": ("openai", {"messages", "role"}),
}
"""For each format the module of its reader, and fields of which a file of it has at least one.

They are tried in this order. ``PK`` and ``SQ`` stand for archives and databases.
"""

NAMES = tuple(_READERS)

_MAX_TRIED_BYTES = 16 * 2**20
"""Size of a JSON document up to which every reader is tried where none recognises it."""

_MAX_HINTS = 3
_CONVERT = "convert it to ATIF or chat messages; docs/importing.md"


@cache
def format_named(name: str) -> Format:
    """Return the format of a name."""
    module, _, attribute = _READERS[name][0].partition(":")
    found: Format = getattr(import_module(f"{__package__}.readers.{module}"), attribute or "FORMAT")
    return found


def check_name(name: str) -> None:
    """Refuse the name of a format that there is not.

    Raises:
        DataError: It is unknown.
    """
    if name not in _READERS:
        raise DataError(
            f"--format: unknown format {shorten(name)}, expected auto or one of {', '.join(NAMES)}"
        )


class Found(NamedTuple):
    """The format of a file."""

    format: Format
    seen: str
    """What was seen that marks it, in a few words."""
    source: SourceFile
    """The file as the format reads it: a list of lines by its items."""


def format_of(source: SourceFile, name: str = "auto") -> Found:
    """Return the format of a file and what was seen of it.

    Raises:
        DataError: The name is unknown, or the content is of no known format; the text names those
            whose readers find a conversation in it.
    """
    document = source.document if not source.head or isinstance(source.head[0], list) else None
    forms = [source]
    if isinstance(document, list) and any(isinstance(item, dict) for item in document):
        forms.append(ListedFile(source.path, document, source.document_replaced))
    if name != "auto":
        check_name(name)
        known = format_named(name)
        named = (form for form in forms if known.recognise(form))
        return Found(known, "named by --format", next(named, source))
    for form in forms:
        there = _fields(form)
        for tried, (_, fields) in _READERS.items():
            if fields & there and (seen := format_named(tried).recognise(form)):
                return Found(format_named(tried), seen, form)
    if agent := unread_agent(source):
        raise DataError(f"{source.path}: a session of {agent}, which is not read ({_CONVERT})")
    read = {name: max(_read_by(format_named(name), form) for form in forms) for name in NAMES}
    able = sorted(filter(read.get, read), key=lambda name: -read[name])[:_MAX_HINTS]
    hint = f"; {' or '.join(f'--format {name}' for name in able)} could read it" if able else ""
    raise DataError(
        f"{source.path}: no known format; {_what(source)}{hint} (import --help lists the formats)"
    )


def _fields(source: SourceFile) -> set[str]:
    """Return the names of the fields of a file's first values, and how it begins."""
    found = {source.magic[:2].decode("latin-1")}
    for value in source.head or [source.document]:
        for item in value if isinstance(value, list) else [value]:
            found.update(item if isinstance(item, dict) else ())
    return found


def only_subagents(found: Found) -> bool:
    """Return whether a file begins with conversations of sub-agents, and none of a user."""
    read = _beginning(found.format, found.source)
    return bool(read) and all(conversation.is_subagent for conversation in read)


def _read_by(candidate: Format, source: SourceFile) -> int:
    """Return how many messages a reader finds at the beginning of a file; 0 without an answer."""
    found = [draft.role for each in _beginning(candidate, source) for draft in each.drafts]
    return len(found) if {"user", "assistant"} <= set(found) else 0


def _beginning(candidate: Format, source: SourceFile) -> list[Conversation]:
    """Return what a reader finds at the beginning of a file; nothing if it is of another format."""
    if source.head:
        source = ListedFile(source.path, source.head)
    elif source.document is None or source.path.stat().st_size > _MAX_TRIED_BYTES:
        return []
    try:
        return list(candidate.read(source))
    except Exception:  # the import says what is wrong with it
        return []


def unread_agent(source: SourceFile) -> str | None:
    """Return the agent that a file is a session of, if it is one whose files are not read."""
    roles = {value.text("role") for value in entries(source.head)}
    path = source.path.absolute().as_posix()
    text = files(f"{__package__}.readers").joinpath("unread_agents.yaml").read_text("utf-8")
    agents: dict[str, dict[str, Any]] = yaml.safe_load(text)
    for agent, marks in agents.items():
        by_path = any(fnmatch(path, f"*/{pattern}") for pattern in marks.get("paths", ()))
        starts = source.magic.lstrip().startswith(marks.get("starts", "\0").encode())
        if by_path or starts or roles & set(marks.get("roles", ())):
            return agent
    return None


def _what(source: SourceFile) -> str:
    """Say what a file looks like, without repeating its content."""
    lines = bool(source.head) and isinstance(source.head[0], dict)
    data = source.head[0] if lines else source.document
    if isinstance(data, dict):
        keys = ", ".join(shorten(str(key)) for key in list(data)[:8])
        seen = "its first line is" if lines else "it is"
        return f"{seen} a JSON object with the keys {keys}"
    return "it is a JSON list" if isinstance(data, list) else "it is not JSON"
