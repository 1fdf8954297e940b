"""Read files that are compressed with Zstandard as if they were not."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from zstandard import ZstdDecompressionObj

MAGIC = b"\x28\xb5\x2f\xfd"

_CHUNK = 4096
"""Bytes decompressed at a time: few, since each may stand for thousands of others."""

_MAX_WINDOW = 128 * 2**20
"""Memory that a file may ask for to be decompressed; ordinary ones ask for at most 8 MiB."""


class DamagedError(ValueError):
    """Compressed data cannot be read any further; the text says why."""


def opened(path: Path, magic: bytes) -> BinaryIO:
    """Open a file for reading, decompressed if it is compressed.

    Reading raises `DamagedError` where the compressed data is damaged or ends too early.

    Args:
        path: The file.
        magic: How it begins.
    """
    if not magic.startswith(MAGIC):
        return path.open("rb")
    return io.BufferedReader(_Decompressed(path), buffer_size=2**20)


class _Decompressed(io.RawIOBase):
    """What a compressed file holds.

    The package's own stream ends without a word where a file was cut off; this one says so.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
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
        return True


def _new_frame() -> "ZstdDecompressionObj":
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
