"""Find files of recorded conversations, and open each whatever state it is in.

Files come from crashed processes and odd exporters: torn last lines, bytes that are not UTF-8,
two objects on one line, lines of hundreds of megabytes. Files compressed with Zstandard are read
as if they were not, and archives are measured before another program unpacks them: never more is
unpacked than a recording can hold.
"""

import codecs
import glob
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from compression_eval.errors import DataError, NotFoundError, shorten
from compression_eval.fixtures.finding_files import RemoteFile, is_address, remote_files

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

MAX_LINE_BYTES = 64 * 2**20
"""Longer lines are skipped by name: a line is held in memory several times over."""

MAX_DOCUMENT_BYTES = 512 * 2**20
"""Longer files that are one JSON document are refused."""

MIN_UNPACKED_BYTES = 64 * 2**20
"""What anything compressed may unpack to, however small it is."""

MAX_RATIO = 200
"""Beyond that, how many bytes one byte may stand for; recordings reach 5 to 30 as a rule."""

MAX_MEMBER_BYTES = 512 * 2**20
"""What one file of an archive may unpack to: it is read as a whole."""

_MAX_WINDOW = 128 * 2**20
"""Memory that a file may ask for to be decompressed; ordinary ones ask for at most 8 MiB."""

_CHUNK = 4096
"""Bytes decompressed at a time: few, since each may stand for thousands of others."""

PLACES = (
    ("CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
    ("CODEX_HOME", "~/.codex", "sessions"),
    ("", "~/.pi", "agent/sessions"),
    ("", "~/.hermes", "state.db"),
    ("", "~/.hermes", "sessions"),
    ("", "~/.copilot", "session-state"),
    ("", "~/.gemini", "tmp"),
    ("", "~/.qwen", "projects"),
    ("", "~/.factory", "sessions"),
    ("", "~/.local/share/goose", "sessions"),
    ("", "~/.local/share/opencode", "opencode.db"),
)
"""Where agents keep sessions: the variable that moves the folder, the folder, its contents."""

PARQUET_MAGIC = b"PAR1"
_ZSTANDARD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTANDARD_METHOD = 93
"""In an archive; the standard library does not know it."""

_HEAD_VALUES = 60
_ENDS = 4096
_SPACE = " \t\r\n\x00"
_PREFACE = r"""(?:[^\s"\[\]{}][^\n"\[\]{}]{0,200}\n\s*){1,5}(?=[\[{])"""
"""Lines that a program printed before a document; a torn line of JSON has quotes or brackets."""
_DECODER = json.JSONDecoder()


class DamagedError(ValueError):
    """Compressed data cannot be read any further; the text says why."""


@dataclass(frozen=True)
class Input:
    """One file or address to read."""

    place: str
    """As it is shown and opened."""
    named: bool
    """Whether it was named by itself; others was in a folder that was named."""
    remote: RemoteFile | None = None
    """A file at an address, as its store listed it."""

    @property
    def is_dataset(self) -> bool:
        """Whether it is a dataset on the Hub and no file."""
        return self.place.startswith("hf:")

    @property
    def path(self) -> Path:
        """The file, if it is one on this machine."""
        return Path(self.place)

    @property
    def size(self) -> int:
        """Bytes of the file; of what is none, 0."""
        try:
            return self.remote.size if self.remote else self.path.stat().st_size
        except OSError:
            return 0

    @property
    def version(self) -> str:
        """What changes with the content: the time of a file's last change, or as its store says."""
        try:
            return self.remote.version if self.remote else str(self.path.stat().st_mtime_ns)
        except OSError:
            return ""

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Give the file on this machine; one at an address is fetched for as long.

        Raises:
            DataError: It cannot be fetched.
        """
        if self.remote is None:
            yield self.path
            return
        file = self.remote
        parts = [part for part in file.path.split("/") if part]
        if {".", ".."} & set(parts):
            raise DataError("a part of the address leads elsewhere")
        with TemporaryDirectory() as folder:
            path = Path(folder, *parts)  # readers look at the names of folders, too
            path.parent.mkdir(parents=True)
            for part in (file, *map(file.sibling, _companions(path.name))):
                if part is file or part.exists():
                    part.fetch(path.with_name(part.name))
            yield path


def find_inputs(named: Sequence[str]) -> list[Input]:
    """Return everything that was named, in that order, folders with all that is in them.

    Raises:
        DataError: A path does not exist, nothing matches a pattern, or no file is in any of it.
    """
    found: dict[str, Input] = {}
    for text in named:
        for item in _inputs(text):
            key = item.place if is_address(item.place) else os.path.realpath(item.place)
            if key not in found or (item.named and not found[key].named):
                found[key] = item
    if not found:
        raise DataError(f"nothing to read: no file in {', '.join(named)}")
    return list(found.values())


def usual_places() -> list[str]:
    """Return the folders and files where agents have left sessions on this machine.

    Raises:
        DataError: There is none.
    """
    existing = [
        place
        for variable, home, inside in PLACES
        for base in [os.environ.get(variable, "") if variable else ""]
        if (place := (Path(base) if base else Path(home).expanduser()) / inside).exists()
    ]
    if not existing:
        looked = ", ".join(f"{home}/{inside}" for _, home, inside in PLACES)
        raise DataError(f"no agent has left sessions in {looked}; name a file or folder")
    return [str(place) for place in existing]


def _companions(name: str) -> tuple[str, ...]:
    """Return what readers look for next to a file."""
    if name == "api_conversation_history.json":
        return ("ui_messages.json",)
    return (f"{name}-wal",) if name.endswith((".db", ".vscdb")) else ()


def readable(path: Path) -> str | None:
    """Return why a path cannot be read as a file; None if it can.

    A named pipe or a device would never end.
    """
    try:
        kind = path.stat().st_mode
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None if stat.S_ISREG(kind) else "not a regular file"


def _inputs(text: str) -> Iterator[Input]:
    path = Path(text).expanduser()
    if text.startswith("hf:"):
        yield Input(text, named=True)
    elif is_address(text):
        for file in remote_files(text, deep=True):
            place = file.system.unstrip_protocol(file.path)
            named = glob.has_magic(text) or place == text
            yield Input(place, named, file)
    elif path.is_dir():
        # By name; links to folders are not followed.
        for place, folders, files in os.walk(path):
            folders.sort()
            yield from (Input(str(Path(place, name)), named=False) for name in sorted(files))
    elif path.exists():
        yield Input(str(path), named=True)
    elif glob.has_magic(text):
        matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - absolute ones too
        files = [match for match in matches if not Path(match).is_dir()]
        if not files:
            raise DataError(f"nothing matches {shorten(text)}")
        yield from (Input(match, named=True) for match in files)
    else:
        raise NotFoundError(f"{text}: no such file or folder")


@dataclass(frozen=True)
class Value:
    """One JSON value of a file with a value per line, or what was wrong with the line."""

    place: str
    """As ``line 12``, or ``line 12, value 2`` where several are on one line."""
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
    def encoding(self) -> str:
        """UTF-16 if the file begins with its mark, else UTF-8."""
        marked = self.magic.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return "utf-16" if marked else "utf-8-sig"

    @cached_property
    def head(self) -> list[Any]:
        """The first JSON values of a file with a value per line; empty for any other file."""
        items = [] if self._is_binary else list(islice(self.values(), _HEAD_VALUES))
        if not items or (items[0].problem and self.document is not None):
            return []
        found = [item.value for item in items if not item.problem]
        # Behind a torn line only an object says that lines contain values: text may, by chance.
        if items[0].problem and not (found and isinstance(found[0], dict)):
            return []
        return found

    @property
    def document(self) -> Any:
        """The file as one JSON document; None if it is not one."""
        return self._document[0]

    @property
    def document_replaced(self) -> bool:
        """Whether bytes of the document that are not UTF-8 were replaced by U+FFFD."""
        return self._document[1]

    def values(self) -> Iterator[Value]:
        """Yield every value of a file with a JSON value per line, and every line without one.

        Empty lines are skipped: they contain nothing. A compressed file is decompressed.
        """
        number = 0
        with self._opened() as file:
            try:
                while raw := file.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    yield from _line(file, raw, f"line {number}")
            except DamagedError as error:
                yield Value(f"line {number + 1}", problem=str(error))

    def _opened(self) -> BinaryIO:
        """Open the file as UTF-8, decompressed."""
        if self.magic.startswith(_ZSTANDARD_MAGIC):
            chunks = _unpacked(self.path)
        elif self.encoding != "utf-8-sig":
            chunks = _recoded(self.path, self.encoding)
        else:
            return self.path.open("rb")
        return io.BufferedReader(_Stream(chunks), 2**20)

    @property
    def _is_binary(self) -> bool:
        return self.magic[:6] == b"SQLite" or self.magic[:2] == b"PK"

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
            return json.loads(re.sub(rf"\A{_PREFACE}", "", text, count=1)), replaced
        except (ValueError, RecursionError):
            return None, replaced

    def _text(self, errors: str) -> str:
        """Decode the file piece by piece, so that a large one that is no text is soon given up."""
        with self.path.open("rb") as file:
            pieces = iter(lambda: file.read(2**20), b"")
            return "".join(codecs.iterdecode(pieces, self.encoding, errors))

    def _is_bracketed(self) -> bool:
        """Whether the file begins and ends as a JSON object or list: large ones are often none."""
        if self.encoding != "utf-8-sig":
            return True
        space = _SPACE.encode()
        with self.path.open("rb") as file:
            begin = file.read(_ENDS).removeprefix(codecs.BOM_UTF8).lstrip(space)
            begin = re.sub(rf"\A{_PREFACE}".encode(), b"", begin, count=1)
            file.seek(max(0, self.path.stat().st_size - _ENDS))
            end = file.read().rstrip(space)
        return begin[:1] + end[-1:] in (b"{}", b"[]")


@dataclass(frozen=True)
class ListedFile(SourceFile):
    """A file that is one JSON list, read as if each of its items was on a line."""

    items: Sequence[Any]
    replaced: bool = False
    """Whether bytes of the file were replaced."""

    @property
    def document(self) -> Any:
        """None: it is read by items."""
        return None

    def values(self) -> Iterator[Value]:
        """Yield every item."""
        for number, item in enumerate(self.items, 1):
            yield Value(f"item {number}", item, replaced=self.replaced)


def source_file(path: Path) -> SourceFile:
    """Return a file to read.

    Raises:
        DataError: It cannot be read or is empty.
    """
    source = SourceFile(path)
    try:
        empty = not source.magic
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if empty:
        raise DataError(f"{path}: the file is empty")
    return source


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
        return
    replaced = False
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text, replaced = raw.decode("utf-8-sig", errors="replace"), True
    text = text.lstrip(_SPACE) if raw.strip() else ""
    start = count = 0
    while start < len(text):
        count += 1
        where = place if count == 1 else f"{place}, value {count}"
        try:
            value, start = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            cut_off = "" if raw.endswith(b"\n") else ": the file ends within it"
            deep = isinstance(error, RecursionError)
            why = "nested too deeply" if deep else f"not JSON{cut_off}"
            yield Value(where, problem=why)
            return
        yield Value(where, value, replaced=replaced)
        while start < len(text) and text[start] in _SPACE:
            start += 1


class _Stream(io.RawIOBase):
    """A stream of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        self._ready = self._ready or memoryview(next(self._chunks, b""))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def _recoded(path: Path, encoding: str) -> Iterator[bytes]:
    """Yield a file as UTF-8; halves of surrogate pairs stay, so that they are seen as damage."""
    with path.open(encoding=encoding, errors="surrogatepass", newline="") as file:
        try:
            while text := file.read(2**20):
                yield text.encode("utf-8", "surrogatepass")
        except UnicodeError as error:
            raise DamagedError(f"not {encoding.upper()} from here on") from error


def _unpacked(path: Path) -> Iterator[bytes]:
    """Yield what a file compressed with Zstandard contains.

    The package's own stream ends without a word where a file was cut off.
    """
    import zstandard

    left, rest = _allowed(path), b""
    frame, begun = _new_frame(), False
    with path.open("rb") as file:
        while chunk := rest or file.read(_CHUNK):
            begun = True
            try:
                data = frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise DamagedError("the compressed data is damaged from here on") from error
            left -= len(data)
            if left < 0:
                raise _too_large(path)
            if data:
                yield data
            rest = b""
            if frame.eof:
                # Another frame may follow: such files can be put together from parts.
                rest, frame, begun = frame.unused_data, _new_frame(), False
    if begun:
        raise DamagedError("the compressed data is cut off here")


def check_archive(path: Path) -> None:
    """Refuse a zip archive that unpacks to far more than it contains.

    Its files are decompressed and counted: the sizes that an archive states may be wrong.

    Raises:
        DataError: It unpacks to too much.
        OSError, ValueError: It is damaged.
    """
    left = _allowed(path)
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for info in archive.infolist():
            size = 0
            for chunk in _member(file, info):
                size += chunk
                left -= chunk
                if left < 0:
                    raise _too_large(path)
                if size > MAX_MEMBER_BYTES:
                    most = MAX_MEMBER_BYTES // 2**20
                    raise DataError(f"a file in it unpacks to more than {most:,} MiB")


def _member(file: BinaryIO, info: zipfile.ZipInfo) -> Iterator[int]:
    """Yield how much each chunk of an archive's file unpacks to."""
    file.seek(info.header_offset)
    header = file.read(30)
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    file.seek(names, io.SEEK_CUR)
    left = info.compress_size
    unpack: Callable[[bytes], bytes] = bytes
    if info.compress_type == zipfile.ZIP_DEFLATED:
        unpack = zlib.decompressobj(-15).decompress
    elif info.compress_type == _ZSTANDARD_METHOD:
        unpack = _new_frame().decompress
    while left > 0 and (raw := file.read(min(_CHUNK, left))):
        left -= len(raw)
        try:
            yield len(unpack(raw))
        except Exception as error:  # of two packages; zstandard's is not a ValueError
            raise DamagedError("the archive is damaged") from error


def _allowed(path: Path) -> int:
    """Return how many bytes a compressed file may unpack to."""
    return max(MIN_UNPACKED_BYTES, MAX_RATIO * path.stat().st_size)


def _too_large(path: Path) -> DataError:
    most = _allowed(path) // 2**20
    return DataError(f"{path.stat().st_size:,} bytes that unpack to more than {most:,} MiB")


def _new_frame() -> "ZstdDecompressionObj":
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
