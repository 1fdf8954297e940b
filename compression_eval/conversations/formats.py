"""The formats of recorded conversations, and telling them apart by what a file holds."""

from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from compression_eval.conversations.fields import entries
from compression_eval.conversations.readers.base import Format
from compression_eval.conversations.sources import ListedFile, SourceFile
from compression_eval.errors import DataError, shorten

_READERS = (
    *("inspect_log", "goose", "hermes:DATABASE_FORMAT", "opencode", "cursor", "copilot_cli"),
    *("atif", "qwen_code", "claude_code", "codex", "droid"),
    *("pi", "hermes", "gemini_cli", "openhands_events", "swe_agent"),
    *("swe_agent:MINI_FORMAT", "cline", "amp", "responses", "anthropic", "openai"),
)
"""Modules of `readers`, those with the clearest marks first; each has a ``FORMAT``"""

_MAX_TRIED_BYTES = 16 * 2**20
"""Size of a JSON document up to which every reader is tried where none recognises it."""

_MAX_HINTS = 3
_CONVERT = "convert it to ATIF or chat messages; docs/importing.md"


@cache
def formats() -> dict[str, Format]:
    """Return every format by name, in the order in which they are tried."""
    found: dict[str, Format] = {}
    for reader in _READERS:
        module, _, name = reader.partition(":")
        each = getattr(import_module(f"{__package__}.readers.{module}"), name or "FORMAT")
        found[each.name] = each
    return found


class Found(NamedTuple):
    """The format of a file."""

    format: Format
    seen: str
    """What was seen that marks it, in a few words."""
    source: SourceFile
    """The file as the format reads it: a list of lines by its items."""


def format_of(source: SourceFile, name: str = "auto") -> Found:
    """Return the format of a file and what was seen of it.

    Args:
        source: The file.
        name: A format's name, or ``auto`` to tell it by content.

    Raises:
        DataError: The name is unknown, or the content is of no known format; the text names those
            whose readers find a conversation in it.
    """
    known = formats()
    document = source.document if not source.head or isinstance(source.head[0], list) else None
    forms = [source]
    if isinstance(document, list) and any(isinstance(item, dict) for item in document):
        forms.append(ListedFile(source.path, document, source.document_replaced))
    if name != "auto":
        if name not in known:
            raise DataError(
                f"--format: unknown format {shorten(name)}, expected auto or one of "
                + ", ".join(known)
            )
        named = (form for form in forms if known[name].recognise(form))
        return Found(known[name], "named by --format", next(named, source))
    for form in forms:
        for candidate in known.values():
            if seen := candidate.recognise(form):
                return Found(candidate, seen, form)
    if agent := unread_agent(source):
        raise DataError(f"{source.path}: a session of {agent}, which is not read ({_CONVERT})")
    read = {name: max(_read_by(each, form) for form in forms) for name, each in known.items()}
    able = sorted(filter(read.get, read), key=lambda name: -read[name])[:_MAX_HINTS]
    hint = f"; {' or '.join(f'--format {name}' for name in able)} could read it" if able else ""
    raise DataError(
        f"{source.path}: no known format; {_what(source)}{hint} (--format takes {', '.join(known)})"
    )


def only_subagents(found: Found) -> bool:
    """Return whether a file begins with conversations of sub-agents, and none of a user."""
    head, source = found.source.head, found.source
    try:
        read = found.format.read(ListedFile(source.path, head) if head else source)
        return all(conversation.is_subagent for conversation in read)
    except Exception:  # the import says what is wrong with it
        return False


def _read_by(candidate: Format, source: SourceFile) -> int:
    """Return how many messages a reader finds at the beginning of a file; 0 without an answer."""
    if source.head:
        source = ListedFile(source.path, source.head)
    elif source.document is None or source.path.stat().st_size > _MAX_TRIED_BYTES:
        return 0
    try:
        found = [draft.role for each in candidate.read(source) for draft in each.drafts]
    except Exception:  # it is of another format
        return 0
    return len(found) if {"user", "assistant"} <= set(found) else 0


def unread_agent(source: SourceFile) -> str | None:
    """Return the agent that a file is a session of, if it is one whose files are not read."""
    roles = {value.text("role") for value in entries(source.head)}
    path = source.path.absolute().as_posix()
    for agent, marks in _unread_agents().items():
        by_path = any(fnmatch(path, f"*/{pattern}") for pattern in marks.get("paths", ()))
        starts = source.magic.lstrip().startswith(marks.get("starts", "\0").encode())
        if by_path or starts or roles & set(marks.get("roles", ())):
            return agent
    return None


@cache
def _unread_agents() -> dict[str, dict[str, Any]]:
    text = files(f"{__package__}.readers").joinpath("unread_agents.yaml").read_text("utf-8")
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return found


def _what(source: SourceFile) -> str:
    """Say what a file looks like, without repeating its content."""
    lines = bool(source.head) and isinstance(source.head[0], dict)
    data = source.head[0] if lines else source.document
    if isinstance(data, dict):
        keys = ", ".join(shorten(str(key)) for key in list(data)[:8])
        seen = "its first line is" if lines else "it is"
        return f"{seen} a JSON object with the keys {keys}"
    return "it is a JSON list" if isinstance(data, list) else "it is not JSON"
