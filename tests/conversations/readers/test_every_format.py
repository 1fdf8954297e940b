"""What holds for every format: a small whole session of each is in ``sessions``."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations import sources
from compression_eval.conversations.building import build
from compression_eval.conversations.formats import NAMES, format_named, format_of
from compression_eval.conversations.sources import source_file
from compression_eval.errors import DataError
from tests.conversations.readers.reading import left_out, read_all, said, unknown

SESSIONS = {
    path.stem: [json.loads(line) for line in path.read_text().splitlines()]
    for path in sorted((Path(__file__).parent / "sessions").glob("*.jsonl"))
}
BY_LINES = [
    name for name, values in SESSIONS.items()
    if len(values) > 2 and name not in ("goose", "cursor", "codex")
]  # fmt: skip
"""Formats with a line for each value, which all go into one conversation."""

WRONG: list[Any] = [
    None, 7, -1.5, True, "", "a\ud800", [], [None, 7, "x", [[]], {"type": []}],
    {"a": 1, "type": 4},
]  # fmt: skip

OF_NO_FORMAT = [
    b'{"type": "user", "text": "secret"}\n', b'{"messages": 3}', b"{}", b'{"a": 1}\n{"b": 2}\n',
    b"[1, 2]\n", b"[]", b"7", b"secret", b"# secret\n", b"\x00\xff\n", b'[{"type": "secret"}]',
    b'[{"role": "user", "content": "secret"}, {', b'{"history": [{"action": "run"}, {',
]  # fmt: skip
_CHAT = b'[{"role": "user", "content": "secret"}]'
RESEMBLING = {
    "atif": [b'{"schema_version": "ATIF-v1.7", "steps": [', b'{"schema_version": "ATIF-v1.7"}'],
    "gemini-cli": [b'{"sessionId": "x", "mess', b'{"messages": []}'],
    "hermes-jsonl": [b'{"type": "session", "id": "x"}\n'],
    "mini-swe-agent": [_CHAT, b'{"messages": ' + _CHAT + b"}"],
    "openhands-events": [b'{"kind": "Mess', b'{"kind": "other"}\n{}\n'],
    "swe-agent": [b'{"trajectory": [], "history": [', b'{"history": []}'],
    "openai-responses": [b'{"input": 3}'],
    "claude-code": [_CHAT, b'{"type": "summary", "summary": "secret", "leafUuid": "y"}\n'],
    "anthropic": [b'{"messages": []}', b'{"type": "session", "id": "x"}\n{"type": "event"}\n'],
    "codex": [_CHAT, _CHAT[1:-1]],
    "opencode": [_CHAT],
}
"""What one of the formats must refuse though it looks a little like it."""


def _written(path: Path, values: list[Any]) -> Path:
    path.write_text("\n".join(json.dumps(value) for value in values) + "\n")
    return path


def _claims(path: Path) -> list[str]:
    source = source_file(path)
    return [each.name for each in map(format_named, NAMES) if each.recognise(source)]


def _variants(value: Any) -> Iterator[Any]:
    """Yield a value with one of its parts replaced by something wrong, or taken out."""
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        parts = list(value.items())
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
    elif isinstance(value, list):
        parts = list(enumerate(value))
    for key, part in parts:
        for replacement in [*WRONG, *_variants(part)]:
            changed = dict(value) if isinstance(value, dict) else list(value)
            changed[key] = replacement
            yield changed


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_claimed_and_read_whole(tmp_path: Path, name: str) -> None:
    path = _written(tmp_path / "a.json", SESSIONS[name])
    assert _claims(path)[0] == name
    for built in read_all(format_named(name), path):
        assert unknown(built) == []


def _with_one_more(values: list[Any]) -> Iterator[list[Any]]:
    """Yield a session with one odd line or message behind each."""
    for number, value in enumerate(values):
        if len(values) > 1:
            for odd in [*WRONG, *_variants(value)]:
                yield [*values[: number + 1], odd, *values[number + 1 :]]
        for key, part in value.items() if isinstance(value, dict) else ():
            if isinstance(part, list) and len(part) > 1 and isinstance(part[0], dict):
                for changed in _with_one_more(part):
                    yield [*values[:number], {**value, key: changed}, *values[number + 1 :]]


@pytest.mark.parametrize("name", SESSIONS)
def test_one_odd_line_or_message_changes_no_format(tmp_path: Path, name: str) -> None:
    for changed in islice(_with_one_more(SESSIONS[name]), 0, None, 17):
        source = source_file(_written(tmp_path / "a.json", changed))
        assert format_of(source).format.name == name, changed


@pytest.mark.parametrize("name", SESSIONS)
def test_no_field_of_a_wrong_type_breaks(tmp_path: Path, name: str) -> None:
    reader, read = format_named(name), 0
    # One in eleven, which takes ten seconds; all of them take two minutes.
    for changed in islice(_variants(SESSIONS[name]), 0, None, 11):
        source = source_file(_written(tmp_path / "a.json", changed))
        reader.recognise(source)
        try:
            for conversation in reader.read(source):
                build(conversation)
        except DataError:
            continue
        read += 1
    assert read > 10, f"{read} changed sessions are read: give sessions/{name}.jsonl more values"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_another_form_is_refused_without_repeating_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.json"
    for content in [*OF_NO_FORMAT, *RESEMBLING.get(name, [])]:
        path.write_bytes(content)
        assert format_named(name).recognise(source_file(path)) is None
        with pytest.raises(DataError, match=f"^{path}: ") as caught:
            list(format_named(name).read(source_file(path)))
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", BY_LINES)
def test_odd_lines_are_counted_with_their_places_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 5000)
    first, *rest = map(json.dumps, SESSIONS[name])
    hologram = json.dumps({"type": "hologram", "kind": "hologram", "text": "secret"})
    odd = ["[1, 2]", json.dumps("x" * 6000), hologram, "[" * 4000, "\0\0"]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([first, *odd, *rest, '{"type": "us']))
    built, *_ = read_all(format_named(name), path)
    whole, *_ = read_all(format_named(name), _written(tmp_path / "b.jsonl", SESSIONS[name]))
    assert said(built) == said(whole)
    places = [place for one in built.left_out if not one.known for place in one.first]
    assert sorted(places, key=lambda place: int(place[5:])) == [
        f"line {number}" for number in (2, 3, 4, 5, len(rest) + 7)
    ]
    assert "secret" not in str(built.left_out)
    reasons = {reason for what, reason in left_out(built) if what == "unreadable"}
    assert "the line has 6,003 bytes, more than 0 MiB" in reasons
    assert "not JSON: the file ends within it" in reasons
