"""Rows of datasets: which columns contain what, which form the messages have, what is no row."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compression_eval.conversations.building import Built, build
from compression_eval.conversations.rows import read_rows
from compression_eval.errors import DataError

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"a": 1}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "done", "tool_call_id": "c1"},
    {"role": "assistant", "content": "finished"},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "bash", "input": {"a": 1}}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "finished"}]},
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"a": 1}'},
    {"type": "function_call_output", "call_id": "c1", "output": "done"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "finished"}],
    },
]
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
FORMS = [CHAT, ANTHROPIC, RESPONSES]


def lines(path: Path, rows: Sequence[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def parquet(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return str(path)


def read(place: str, columns: Mapping[str, str] | None = None) -> list[Built]:
    _, conversations = read_rows(place, columns or {})
    return [build(conversation) for conversation in conversations]


def shape(built: Built) -> list[tuple[str, str, list[str]]]:
    return [
        (m.role, m.text, [call.function.name for call in m.calls]) for m in built.fixture.messages
    ]


EXPECTED = [
    ("user", "go", []),
    ("assistant", "", ["bash"]),
    ("tool", "done", []),
    ("assistant", "finished", []),
]


@pytest.mark.parametrize("messages", FORMS)
@pytest.mark.parametrize("write", [lines, parquet])
@pytest.mark.parametrize("as_text", [False, True])
def test_every_form_of_messages_says_the_same(
    tmp_path: Path, messages: list[dict[str, Any]], write: Any, as_text: bool
) -> None:
    if messages is ANTHROPIC and write is parquet and not as_text:
        # Arrow cannot contain contents that are texts here and lists there.
        messages = [{**m, "content": _blocks(m["content"])} for m in messages]
    value = json.dumps(messages) if as_text else messages
    (built,) = read(write(tmp_path / "x", [{"messages": value}]))
    assert shape(built) == EXPECTED
    assert built.fixture.messages[1].calls[0].function.parsed() == {"a": 1}


def _blocks(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@pytest.mark.parametrize("messages", FORMS)
def test_columns_beside_the_messages_are_used(
    tmp_path: Path, messages: list[dict[str, Any]]
) -> None:
    row = {
        "talk": messages,
        "run": "run-7",
        "llm": "some/model",
        "prompt": "You are careful.",
        "functions": [TOOL],
        "score": 1,
    }
    columns = {"messages": "talk", "session": "run", "model": "llm", "system": "prompt"}
    (built,) = read(lines(tmp_path / "x.jsonl", [row]), {**columns, "tools": "functions"})
    assert shape(built) == [("system", "You are careful.", []), *EXPECTED]
    assert built.fixture.model == "some/model"
    assert [tool.function.name for tool in built.fixture.tools] == ["bash"]


def test_every_row_is_a_conversation_with_its_own_name(tmp_path: Path) -> None:
    built = read(lines(tmp_path / "x.jsonl", [{"messages": CHAT, "id": 7}] * 3))
    names = [one.fixture.name for one in built]
    assert [name[-6:] for name in names] == ["-row-0", "-row-1", "-row-2"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for a dataset of the Hub: its name is looked for here first."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "org" / "talks" / "data"
    parquet(folder / "train-00000.parquet", [{"messages": CHAT}] * 2)
    parquet(folder / "test-00000.parquet", [{"messages": CHAT[:1]}])
    return tmp_path


def test_a_dataset_of_the_hub_is_read_split_by_split(hub: Path) -> None:
    built = read("hf:org/talks")
    assert len({one.fixture.name for one in built}) == 3
    assert built[0].fixture.source is not None
    assert str(built[0].fixture.source.origin).endswith("of org/talks")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("hf:org/talks/nosuch", "hf:org/talks/nosuch: cannot be read as a dataset: ValueError"),
        ("hf:org", "not a dataset on the Hub, expected hf:ORG/NAME"),
        ("s3://bucket/x.parquet", "rows are read from hf:"),
        ("nosuch.parquet", r"nosuch\.parquet: cannot be read"),
    ],
)
def test_what_cannot_be_opened_is_a_clear_error(hub: Path, place: str, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        read(place)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"words": "messages"}, "--column: unknown part 'words', expected one of messages"),
        ({"messages": "talk"}, "--column messages: there is no column 'talk', there are 'text'"),
        ({}, "no column contains messages; the columns are 'text'; name it with --column"),
        (
            {"messages": "text"},
            "no row contains a conversation: its column for messages contains no",
        ),
    ],
)
def test_columns_that_do_not_fit_are_an_error(
    tmp_path: Path, columns: dict[str, str], expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        read(lines(tmp_path / "x.jsonl", [{"text": "x"}]), columns)
