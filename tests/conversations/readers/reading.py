"""Write small files, read them, and look at what became of them."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.building import Built, build
from compression_eval.conversations.readers.base import Format
from compression_eval.conversations.sources import source_file

SAMPLES = os.environ.get("COMPRESSION_EVAL_SAMPLES")
"""A folder with real sessions, which are not part of this project."""


def sample(name: str) -> Path:
    """Return a sample's path, or skip the test where there are none."""
    if SAMPLES is None:
        pytest.skip("COMPRESSION_EVAL_SAMPLES names no folder with sample sessions")
    return Path(SAMPLES) / name


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
    """Return all fixtures of a file; none of their lines may be unaccounted for."""
    built = [build(conversation) for conversation in reader.read(source_file(path))]
    for item in built:
        assert "unaccounted" not in {entry.fate for entry in item.account.entries}
    return built


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


def fates(built: Built) -> list[str]:
    """Return what became of every line, in words."""
    return [str(entry) for entry in built.account.entries]


def kinds(built: Built) -> Counter[tuple[str, str]]:
    """Count the lines by kind and fate."""
    return Counter((entry.kind, entry.fate) for entry in built.account.entries)
