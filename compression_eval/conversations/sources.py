"""Open a file of recorded conversations whatever state it is in.

Files come from crashed processes and odd exporters: torn last lines, bytes that are not UTF-8,
two objects on one line, lines of hundreds of megabytes.
"""

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from compression_eval.conversations.compressed import DamagedError, opened
from compression_eval.fixtures.errors import DataError

MAX_LINE_BYTES = 64 * 2**20
"""Longer lines are skipped by name: a line is held in memory several times over."""

MAX_DOCUMENT_BYTES = 512 * 2**20
"""Longer files that are one JSON document are refused."""

_HEAD_VALUES = 60
_ENDS = 4096
_SPACE = b" \t\r\n\x00"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Value:
    """One JSON value of a file with a value per line, or what was wrong with the line."""

    place: str
    """As ``line 12``, or ``line 12, value 2`` where several stand on one line."""
    value: Any = None
    problem: str = ""
    """Why there is no value; empty if there is one."""
    replaced: bool = False
    """Whether bytes that are not UTF-8 were replaced by U+FFFD."""


@dataclass(frozen=True)
class SourceFile:
    """A file to be read; what is needed to tell its format is read once."""

    path: Path

    @cached_property
    def magic(self) -> bytes:
        """The first 16 bytes."""
        with self.path.open("rb") as file:
            return file.read(16)

    @cached_property
    def head(self) -> list[Any]:
        """The first JSON values of a file with a value per line; empty for any other file."""
        first = next(self.values(), None)
        if first is None or self._is_binary or (first.problem and self.document is not None):
            return []
        items = islice(self.values(), _HEAD_VALUES)
        found = [item.value for item in items if not item.problem]
        # Behind a torn line only an object says that lines hold values: text may, by chance.
        if first.problem and not (found and isinstance(found[0], dict)):
            return []
        return found

    @property
    def _is_binary(self) -> bool:
        return self.magic[:6] == b"SQLite" or self.magic[:2] == b"PK"

    @property
    def document(self) -> Any:
        """The file as one JSON document; None if it is not one."""
        return self._document[0]

    @property
    def document_replaced(self) -> bool:
        """Whether bytes of the document that are not UTF-8 were replaced by U+FFFD."""
        return self._document[1]

    @cached_property
    def _document(self) -> tuple[Any, bool]:
        size = self.path.stat().st_size
        if self._is_binary or size > MAX_DOCUMENT_BYTES or not self._is_bracketed():
            return None, False
        begin = list(islice(self.values(), 2))
        if len(begin) > 1 and not begin[0].problem:
            return None, False
        replaced = False
        try:
            text = self._text("strict")
        except UnicodeDecodeError:
            if size > MAX_LINE_BYTES:
                return None, False
            text, replaced = self._text("replace"), True
        try:
            return json.loads(text), replaced
        except (ValueError, RecursionError):
            return None, replaced

    def _text(self, errors: str) -> str:
        """Decode the file piece by piece, so that a large one that is no text is soon given up."""
        with self.path.open("rb") as file:
            pieces = iter(lambda: file.read(2**20), b"")
            return "".join(codecs.iterdecode(pieces, "utf-8-sig", errors))

    def _is_bracketed(self) -> bool:
        """Whether the file begins and ends as a JSON object or list: large ones are often none."""
        with self.path.open("rb") as file:
            begin = file.read(_ENDS).removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
            file.seek(max(0, self.path.stat().st_size - _ENDS))
            end = file.read().rstrip(_SPACE)
        return begin[:1] + end[-1:] in (b"{}", b"[]")

    def values(self) -> Iterator[Value]:
        """Yield every value of a file with a JSON value per line, and every line without one.

        Empty lines are passed over: they hold nothing. A compressed file is decompressed.
        """
        number = 0
        with opened(self.path, self.magic) as file:
            try:
                while raw := file.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    yield from _line(file, raw, f"line {number}")
            except DamagedError as error:
                yield Value(f"line {number + 1}", problem=str(error))


def _line(file: BinaryIO, raw: bytes, place: str) -> Iterator[Value]:
    """Yield the values of a line of which a part has been read."""
    if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
        size = len(raw)
        while rest := file.readline(2**20):
            size += len(rest)
            if rest.endswith(b"\n"):
                break
        most = f"{MAX_LINE_BYTES // 2**20} MiB"
        yield Value(place, problem=f"the line has {size:,} bytes, more than {most}")
    elif raw.strip():
        yield from _decoded(raw, place, last=not raw.endswith(b"\n"))


def _decoded(raw: bytes, place: str, *, last: bool) -> Iterator[Value]:
    replaced = False
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text, replaced = raw.decode("utf-8-sig", errors="replace"), True
    start, count = _skip_space(text, 0), 0
    while start < len(text):
        count += 1
        where = place if count == 1 else f"{place}, value {count}"
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            cut_off = ": the file ends within it" if last else ""
            deep = isinstance(error, RecursionError)
            why = "nested too deeply" if deep else f"not JSON{cut_off}"
            yield Value(where, problem=f"{why} ({len(raw):,} bytes)")
            return
        yield Value(where, value, replaced=replaced)
        start = _skip_space(text, end)


def _skip_space(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t\r\n\x00":
        start += 1
    return start


def source_file(path: Path) -> SourceFile:
    """Return a file to read.

    Raises:
        DataError: It cannot be read or is empty.
    """
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty")
        source = SourceFile(path)
        _ = source.magic
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return source
