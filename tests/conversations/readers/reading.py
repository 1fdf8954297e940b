"""Write small files, read them, and look at what became of them."""

import json
from pathlib import Path
from typing import Any

from compression_eval.conversations.building import Built, build
from compression_eval.conversations.readers.base import Format
from compression_eval.conversations.sources import source_file


def json_lines(path: Path, *values: Any) -> Path:
    """Write a value on each line; bytes are written as they are."""
    lines = (v if isinstance(v, bytes) else json.dumps(v).encode() for v in values)
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def json_file(path: Path, value: Any) -> Path:
    """Write one JSON document over many lines."""
    path.write_text(json.dumps(value, indent=1))
    return path


def read_all(reader: Format, path: Path) -> list[Built]:
    """Return all fixtures of a file."""
    return [build(conversation) for conversation in reader.read(source_file(path))]


def read_one(reader: Format, path: Path) -> Built:
    """Return the one fixture of a file."""
    (built,) = read_all(reader, path)
    return built


def said(built: Built) -> list[tuple[str, str]]:
    """Return role and text of every message."""
    return [(message.role, message.text) for message in built.fixture.messages]


def calls(built: Built) -> list[tuple[str, str, dict[str, Any]]]:
    """Return id, name and arguments of every call."""
    return [
        (call.id, call.function.name, call.function.parsed())
        for message in built.fixture.messages
        for call in message.calls
    ]


def results(built: Built) -> list[tuple[str | None, str]]:
    """Return call and text of every result."""
    return [(m.tool_call_id, m.text) for m in built.fixture.messages if m.role == "tool"]


def caveats(built: Built) -> list[str]:
    """Return what the fixture says that it lacks."""
    return built.fixture.source.caveats if built.fixture.source else []


def left_out(built: Built) -> dict[tuple[str, str], tuple[int, str]]:
    """Return how often something was left out and where it was first, by what and why."""
    return {(one.what, one.reason): (one.count, one.first[0]) for one in built.left_out}


def unknown(built: Built) -> list[tuple[str, str]]:
    """Return what is unknown or damaged, and where the first of each is."""
    return [(one.what, one.first[0]) for one in built.left_out if not one.known]
