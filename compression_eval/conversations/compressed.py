"""Read what is compressed, never more of it than a recording can hold.

Files with Zstandard are read as if they were not compressed; archives are measured before another
program unpacks them.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

MAGIC = b"\x28\xb5\x2f\xfd"

_CHUNK = 4096
"""Bytes decompressed at a time: few, since each may stand for thousands of others."""

_MAX_WINDOW = 128 * 2**20
"""Memory that a file may ask for to be decompressed; ordinary ones ask for at most 8 MiB."""


MIN_ALLOWED_BYTES = 64 * 2**20
"""What anything compressed may unpack to, however small it is."""

MAX_RATIO = 200
"""Beyond that, how many bytes one byte may stand for; recordings reach 5 to 30 as a rule."""

MAX_MEMBER_BYTES = 512 * 2**20
"""What one file of an archive may unpack to: it is read as a whole."""

_ZSTANDARD = 93
"""Number of this method in an archive; the standard library does not know it."""


class DamagedError(ValueError):
    """Compressed data cannot be read any further; the text says why."""


def opened(path: Path, magic: bytes) -> BinaryIO:
    """Open a file for reading, decompressed if it is compressed.

    Reading raises `DamagedError` where the compressed data is damaged or ends too early, and
    `DataError` where it is too much.

    Args:
        path: The file.
        magic: How it begins.
    """
    if not magic.startswith(MAGIC):
        return path.open("rb")
    return io.BufferedReader(_Decompressed(path), buffer_size=2**20)


def check_archive(path: Path) -> None:
    """Refuse a zip archive that unpacks to far more than it holds.

    Its files are decompressed and counted: the sizes that an archive states may be wrong.

    Raises:
        DataError: It unpacks to too much.
        OSError, ValueError: It is damaged.
    """
    allowed = _allowed(path)
    total = 0
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for info in archive.infolist():
            size = 0
            for chunk in _member(file, info):
                size += chunk
                total += chunk
                if total > allowed:
                    raise _too_large(path, allowed)
                if size > MAX_MEMBER_BYTES:
                    raise DataError(f"a file in it unpacks to more than {_mib(MAX_MEMBER_BYTES)}")


def _member(file: BinaryIO, info: zipfile.ZipInfo) -> Iterator[int]:
    """Yield how much each chunk of an archive's file unpacks to."""
    file.seek(info.header_offset)
    header = file.read(30)
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    file.seek(names, io.SEEK_CUR)
    left = info.compress_size
    inflate = zlib.decompressobj(-15)
    frame = _new_frame()
    while left > 0 and (raw := file.read(min(_CHUNK, left))):
        left -= len(raw)
        try:
            if info.compress_type == zipfile.ZIP_DEFLATED:
                yield len(inflate.decompress(raw))
            elif info.compress_type == _ZSTANDARD:
                yield len(frame.decompress(raw)) if not frame.eof else 0
            else:
                yield len(raw)
        except Exception as error:  # of two packages; zstandard's is not a ValueError
            raise DamagedError("the archive is damaged") from error


def _allowed(path: Path) -> int:
    return max(MIN_ALLOWED_BYTES, MAX_RATIO * path.stat().st_size)


def _too_large(path: Path, allowed: int) -> DataError:
    return DataError(f"{path.stat().st_size:,} bytes that unpack to more than {_mib(allowed)}")


def _mib(size: int) -> str:
    return f"{size // 2**20:,} MiB"


class _Decompressed(io.RawIOBase):
    """What a compressed file holds.

    The package's own stream ends without a word where a file was cut off; this one says so.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._left = _allowed(path)
        self._file = path.open("rb")
        self._frame = _new_frame()
        self._begun = False
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Return that this can be read."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Fill a buffer as far as there is something at hand; return how much that is."""
        while not self._ready and self._more():
            pass
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _more(self) -> bool:
        """Decompress a little; return whether there was anything."""
        import zstandard

        if self._frame.eof:
            # Another frame may follow: such files can be put together from parts.
            self._rest, self._frame, self._begun = self._frame.unused_data, _new_frame(), False
        chunk = self._rest or self._file.read(_CHUNK)
        self._rest = b""
        if not chunk:
            if self._begun:
                raise DamagedError("the compressed data is cut off here")
            return False
        self._begun = True
        try:
            self._ready = memoryview(self._frame.decompress(chunk))
        except zstandard.ZstdError as error:
            raise DamagedError("the compressed data is damaged from here on") from error
        self._left -= len(self._ready)
        if self._left < 0:
            raise _too_large(self._path, _allowed(self._path))
        return True


def _new_frame() -> "ZstdDecompressionObj":
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
