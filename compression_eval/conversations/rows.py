"""Rows of a dataset, each of them a conversation in one of the JSON forms of messages.

A dataset on the Hugging Face Hub, a Parquet file or a file with a JSON object on each line. Rows
are read one at a time, so that a dataset may be larger than memory.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.fields import Json, from_json, label, origin
from compression_eval.conversations.formats import format_named
from compression_eval.conversations.readers.base import with_asides
from compression_eval.conversations.sources import PARQUET_MAGIC, SourceFile, Value, source_file
from compression_eval.errors import DataError, shorten

PARTS: dict[str, tuple[str, ...]] = {
    "messages": ("messages", "conversations", "conversation", "trajectory", "input"),
    "session": ("session_id", "conversation_id", "instance_id", "id"),
    "model": ("model", "model_name"),
    "system": ("system", "system_prompt"),
    "tools": ("tools",),
}
"""The parts of a conversation, and the columns in which they are looked for unless named."""

_ADDRESS = re.compile(
    r"hf:(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+?))?(?::(?P<config>[\w.-]+))?"
    r"(?:/(?P<split>[\w.-]+))?"
)
_EXPECTED = "hf:ORG/NAME[@REVISION][:CONFIG][/SPLIT]"


@dataclass(frozen=True)
class _Row(SourceFile):
    """One row, as the readers of files want it."""

    row: Value

    @cached_property
    def magic(self) -> bytes:
        return b""

    @cached_property
    def head(self) -> list[Any]:
        return [self.row.value]

    @cached_property
    def document(self) -> Any:
        return self.row.value

    @property
    def document_replaced(self) -> bool:
        return False  # the row itself says so

    def values(self) -> Iterator[Value]:
        yield self.row


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse parts that a conversation does not have.

    Raises:
        DataError: One is unknown.
    """
    if unknown := [part for part in columns if part not in PARTS]:
        raise DataError(
            f"--column: unknown part {shorten(unknown[0])}, expected one of {', '.join(PARTS)}"
        )


def read_rows(place: str, columns: Mapping[str, str]) -> tuple[str, Iterator[Conversation]]:
    """Return what the rows of a dataset are, in a few words, and their conversations one by one.

    Args:
        place: ``hf:ORG/NAME[@REVISION][:CONFIG][/SPLIT]``, a Parquet file, or a file with a JSON
            object on each line.
        columns: For parts of a conversation (`PARTS`), the columns that contain them.

    Raises:
        DataError: An unknown part is named, the dataset cannot be opened, or, while the rows are
            read, no row contains a conversation.
    """
    check_columns(columns)
    if place.startswith("hf:"):
        found = _ADDRESS.fullmatch(place)
        if found is None:
            raise DataError(f"{shorten(place)}: not a dataset on the Hub, expected {_EXPECTED}")
        name, revision, config, split = found.groups()
        rows = _dataset_rows(place, name, name=config, revision=revision, split=split)
        return "rows of a dataset on the Hub", _conversations(place, rows, columns, name)
    if "://" in place:
        raise DataError(f"{shorten(place)}: rows are read from {_EXPECTED} or from a local file")
    source = source_file(Path(place))
    if source.magic.startswith(PARQUET_MAGIC):
        rows = _dataset_rows(place, "parquet", data_files=place, split="train")
        return "rows of a Parquet file", _conversations(place, rows, columns)
    return "rows of JSON lines", _conversations(place, source.values(), columns)


def _dataset_rows(place: str, path: str, **options: Any) -> Iterator[Value]:
    """Yield the rows of a dataset without loading it."""
    # By name: to a type checker the folder `datasets` of this project is a package, too.
    load_dataset = import_module("datasets").load_dataset
    try:
        loaded = load_dataset(path, streaming=True, **options)
        parts = {"": loaded} if options["split"] else dict(loaded)
        for split, rows in parts.items():
            for number, row in enumerate(rows):
                yield Value(f"{split} row {number}".strip(), _without_nulls(row))
    except Exception as error:  # a wrong name, a broken file, a refused login, no network
        said = " ".join(str(error).split())[:200]
        raise DataError(
            f"{place}: cannot be read as a dataset: {type(error).__name__}: {said}"
        ) from error


def _without_nulls(value: Any) -> Any:
    """Leave out empty fields: in a table every object has the fields of all others."""
    if isinstance(value, dict):
        return {
            key: _without_nulls(item)
            for key, item in value.items()
            if item is not None or key == "content"
        }
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _conversations(
    place: str, rows: Iterator[Value], columns: Mapping[str, str], name: str = ""
) -> Iterator[Conversation]:
    """Yield the conversations of rows; the last one counts rows without one."""
    return with_asides(
        _items(place, rows, columns, name), "row", f"{place}: no row contains a conversation"
    )


def _items(
    place: str, rows: Iterator[Value], columns: Mapping[str, str], name: str
) -> Iterator[Conversation | Value]:
    known: dict[str, str] = {}
    for number, row in enumerate(rows):
        if row.problem or not isinstance(row.value, dict):
            yield Value(row.place, problem=row.problem or "not an object")
            continue
        # The columns of the first row are those of all: that is what makes it a dataset.
        known = known or _columns_for(place, row.value, columns)
        form = _form_of(row.value, known)
        if isinstance(form, str):
            yield Value(row.place, problem=form)
            continue
        reader, value = format_named(form[0]), replace(row, value=form[1])
        others = sum(
            column not in known.values() and held is not None and held != ""
            for column, held in row.value.items()
        )
        for conversation in reader.read(_Row(Path(place), value)):
            parts = (f"row-{number}", conversation.part)
            conversation.part = "-".join(part for part in parts if part and part != row.place)
            if name:
                conversation.origin = origin(conversation.origin, "of", name)
            if others and conversation.lines:
                reason = f"{others} columns that contain no part of a conversation"
                conversation.lines[0].leave_out("columns", reason)
            yield conversation


def _columns_for(place: str, row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, str]:
    """Return which column contains each part, for those that are there."""
    there = ", ".join(shorten(str(name)) for name in list(row)[:20]) or "none"
    for part, column in columns.items():
        if column not in row:
            raise DataError(
                f"{place}: --column {part}: there is no column {shorten(column)}, there are {there}"
            )
    found = {part: name for part, names in PARTS.items() for name in names[::-1] if name in row}
    found |= columns
    if "messages" not in found:
        raise DataError(
            f"{place}: no column contains messages; the columns are {there}; "
            "name it with --column messages=COLUMN"
        )
    return found


def _form_of(row: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[str, Any] | str:
    """Return the format of a row's messages and the row as its reader wants it, or why not."""
    parts = {part: _decoded(row.get(column)) for part, column in columns.items()}
    messages, model, session = parts["messages"], parts.get("model"), parts.get("session")
    system, tools = parts.get("system"), parts.get("tools")
    if not isinstance(messages, list) or not messages:
        return "its column for messages contains no list of messages"
    name = str(session) if isinstance(session, str | int) else ""
    frame = {
        "model": model if isinstance(model, str) else "",
        "tools": tools if isinstance(tools, list) else [],
    }
    prompt = system if isinstance(system, str) else None
    source = _Row(Path(), Value("", messages))
    if format_named("openai-responses").recognise(source):
        instructions = {} if prompt is None else {"instructions": prompt}
        return "openai-responses", {**frame, "input": messages, **instructions}
    if format_named("anthropic").recognise(source):
        return "anthropic", {
            **frame,
            "messages": messages,
            **({"system": system} if system else {}),
        }
    if format_named("openai-chat").recognise(source):
        before = [] if prompt is None else [{"role": "system", "content": prompt}]
        return "openai-chat", {**frame, "messages": [*before, *messages], "session_id": name}
    kinds = sorted({label(Json.of(message).at("role")) for message in messages[:50]})
    return f"its messages are of no known form (roles: {', '.join(kinds)})"


def _decoded(value: Any) -> Any:
    """Return what a column contains; tables often contain lists as JSON text."""
    held = isinstance(value, str) and value[:64].lstrip().startswith(("[", "{"))
    found = from_json(value) if held else None
    return value if found is None else found
