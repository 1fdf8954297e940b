"""The formats of recorded conversations, and telling them apart by what a file holds."""

from functools import cache
from importlib import import_module

from compression_eval.conversations.readers.base import Format
from compression_eval.conversations.sources import SourceFile
from compression_eval.errors import DataError, shorten

_READERS = (
    *("inspect_log", "goose", "hermes:DATABASE_FORMAT", "opencode", "cursor", "copilot_cli"),
    *("atif", "qwen_code", "claude_code", "claude_code_stream", "codex", "codex_exec", "droid"),
    *("pi", "hermes", "gemini_cli", "openhands_events", "openhands_output", "swe_agent"),
    *("swe_agent:MINI_FORMAT", "cline", "amp", "otel", "responses", "anthropic", "openai"),
)
"""Modules of `readers`, those with the clearest marks first; each has a ``FORMAT``"""


@cache
def formats() -> dict[str, Format]:
    """Return every format by name, in the order in which they are tried."""
    found: dict[str, Format] = {}
    for reader in _READERS:
        module, _, name = reader.partition(":")
        each = getattr(import_module(f"{__package__}.readers.{module}"), name or "FORMAT")
        found[each.name] = each
    return found


def format_of(source: SourceFile, name: str = "auto") -> tuple[Format, str]:
    """Return the format of a file and what was seen of it.

    Args:
        source: The file.
        name: A format's name, or ``auto`` to tell it by content.

    Raises:
        DataError: The name is unknown, or the content is of no known format.
    """
    known = formats()
    if name != "auto":
        if name not in known:
            raise DataError(
                f"--format: unknown format {shorten(name)}, expected auto or one of "
                + ", ".join(known)
            )
        return known[name], "named by --format"
    for candidate in known.values():
        if seen := candidate.recognise(source):
            return candidate, seen
    raise DataError(
        f"{source.path}: no known format; {_what(source)} (formats: {', '.join(known)})"
    )


def _what(source: SourceFile) -> str:
    """Say what a file looks like, without repeating its content."""
    lines = bool(source.head) and isinstance(source.head[0], dict)
    data = source.head[0] if lines else source.document
    if isinstance(data, dict):
        keys = ", ".join(shorten(str(key)) for key in list(data)[:8])
        seen = "its first line is" if lines else "it is"
        return f"{seen} a JSON object with the keys {keys}"
    return "it is a JSON list" if isinstance(data, list) else "it is not JSON"
