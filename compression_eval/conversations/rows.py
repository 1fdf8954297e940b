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
from compression_eval.conversations.fields import origin
from compression_eval.conversations.formats import formats
from compression_eval.conversations.readers.base import entered
from compression_eval.conversations.row_forms import (
    Form,
    check_columns,
    columns_for,
    form_of,
    other_columns,
)
from compression_eval.conversations.sources import SourceFile, Value, source_file
from compression_eval.fixtures.errors import DataError, shorten

_ADDRESS = re.compile(
    r"hf:(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+?))?(?::(?P<config>[\w.-]+))?"
    r"(?:/(?P<split>[\w.-]+))?"
)
_EXPECTED = "hf:ORG/NAME[@REVISION][:CONFIG][/SPLIT]"


def are_rows(place: str, columns: Mapping[str, str]) -> bool:
    """Whether an input is to be read as rows: by what it is, or because columns are named.

    Args:
        place: A path or an address.
        columns: For parts of a conversation, the columns that hold them.
    """
    if place.startswith("hf:") or columns:
        return True
    try:
        with Path(place).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def read_rows(place: str, columns: Mapping[str, str]) -> tuple[str, Iterator[Conversation]]:
    """Return what the rows of a dataset are, in a few words, and their conversations one by one.

    Args:
        place: ``hf:ORG/NAME[@REVISION][:CONFIG][/SPLIT]``, a Parquet file, or a file with a JSON
            object on each line.
        columns: For parts of a conversation (`row_forms.PARTS`), the columns that hold them.

    Raises:
        DataError: An unknown part is named, the dataset cannot be opened, or, while the rows are
            read, no row holds a conversation.
    """
    check_columns(columns)
    if place.startswith("hf:"):
        found = _ADDRESS.fullmatch(place)
        if found is None:
            raise DataError(f"{shorten(place)}: not a dataset on the Hub, expected {_EXPECTED}")
        return "rows of a dataset on the Hub", _conversations(
            place, _hub_rows(place, found), columns, found["name"]
        )
    if "://" in place:
        raise DataError(f"{shorten(place)}: rows are read from {_EXPECTED} or from a local file")
    source = source_file(Path(place))
    if source.magic.startswith(b"PAR1"):
        return "rows of a Parquet file", _conversations(place, _parquet_rows(place), columns)
    return "rows of JSON lines", _conversations(place, source.values(), columns)


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

    def values(self) -> Iterator[Value]:
        yield self.row


def _conversations(
    place: str, rows: Iterator[Value], columns: Mapping[str, str], name: str = ""
) -> Iterator[Conversation]:
    """Yield the conversations of rows; rows without one are in the account of the last."""
    finished: Conversation | None = None
    unread: list[Value] = []
    known: dict[str, str] | None = None
    for number, row in enumerate(rows):
        if not row.problem and isinstance(row.value, dict):
            # The columns of the first row are those of all: that is what makes it a dataset.
            known = known or columns_for(place, row.value, columns)
            form = form_of(row.value, known, lambda value: _Row(Path(place), Value("", value)))
            if isinstance(form, Form):
                for conversation in _read(place, row, form, number, name):
                    if finished is not None:
                        yield finished
                    finished = conversation
                continue
            unread.append(Value(row.place, problem=form))
        else:
            unread.append(Value(row.place, problem=row.problem or "not an object"))
    if finished is None:
        why = f": {unread[0].problem}" if unread else ""
        raise DataError(f"{place}: no row holds a conversation{why}")
    for value in unread:
        entered(finished.ledger, value, "row")
    yield finished


def _read(place: str, row: Value, form: Form, number: int, name: str) -> Iterator[Conversation]:
    reader = formats()[form.format]
    value = replace(row, value=form.value)
    for conversation in reader.read(_Row(Path(place), value)):
        conversation.part = "-".join(
            piece for piece in (f"row-{number}", conversation.part) if piece and piece != row.place
        )
        if name:
            conversation.origin = origin(conversation.origin, "of", name)
        others = other_columns(row.value, form)
        if others and conversation.ledger.lines:
            reason = f"{others} columns that hold no part of a conversation"
            conversation.ledger.lines[0].leave_out("columns", reason)
        yield conversation


def _hub_rows(place: str, found: re.Match[str]) -> Iterator[Value]:
    yield from _dataset_rows(
        place, found["name"], name=found["config"], revision=found["revision"], split=found["split"]
    )


def _parquet_rows(place: str) -> Iterator[Value]:
    yield from _dataset_rows(place, "parquet", data_files=place, split="train")


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
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
