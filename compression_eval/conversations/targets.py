"""Where imported fixtures go: files in a folder, or rows of one Parquet file."""

from pathlib import Path
from types import TracebackType
from typing import Protocol

from compression_eval.fixtures.errors import DataError, shorten
from compression_eval.fixtures.finding_files import PARQUET_SUFFIX
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.parquet_files import ParquetWriter, safe_stem
from compression_eval.fixtures.writing import fixture_text, write_whole


class Target(Protocol):
    """Takes fixtures one by one; nothing of it is seen before it is whole."""

    def write(self, fixture: Fixture) -> None:
        """Write one fixture.

        Raises:
            DataError: It cannot be written without overwriting another.
        """

    def __enter__(self) -> "Target": ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def target(out: Path, *, force: bool) -> Target:
    """Return what writes to a path.

    Args:
        out: A Parquet file by its suffix, else a folder; made when the first fixture is written.
        force: Whether what is there already may be overwritten.

    Raises:
        DataError: A Parquet file is there already, or a file stands where the folder is to be.
    """
    if out.suffix == PARQUET_SUFFIX:
        if out.is_dir():
            raise DataError(f"--out: {out} is a folder")
        if out.exists() and not force:
            raise DataError(f"--out: {out} is there already; --force overwrites it")
        return _Parquet(out)
    if out.exists() and not out.is_dir():
        raise DataError(f"--out: {out} is neither a folder nor named *.parquet")
    return _Folder(out, force=force)


class _Folder:
    def __init__(self, folder: Path, *, force: bool) -> None:
        self._folder = folder
        self._force = force

    def __enter__(self) -> "_Folder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def write(self, fixture: Fixture) -> None:
        stem = safe_stem(fixture.name)
        if stem is None:
            raise DataError(f"name: {shorten(fixture.name)} cannot be the name of a file")
        path = self._folder / f"{stem}.json"
        text = fixture_text(fixture)
        if path.exists() and not self._force and path.read_bytes() != text.encode("utf-8"):
            raise DataError(f"{path} is there already with other content; --force overwrites it")
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


class _Parquet:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: ParquetWriter | None = None

    def __enter__(self) -> "_Parquet":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.__exit__(kind, error, trace)

    def write(self, fixture: Fixture) -> None:
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = ParquetWriter(self._path).__enter__()
        self._writer.add(fixture, fixture_text(fixture))
