"""Files in a folder or at an address, and objects of this package that are kept in them.

A `Store` writes each file as a whole or not at all. `Packing` and `Store.objects` keep many objects
in one file, of our own classes and plain values only, because others may be able to write there.
"""

import array
import collections
import io
import os
import pickle
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from compression_eval.errors import DataError
from compression_eval.fixtures.finding_files import is_address, local_path
from compression_eval.terminal import plain_error


@dataclass(frozen=True)
class Store:
    """Files by their names in a folder or at an address, each written whole or not at all.

    Whatever goes wrong with one is a `DataError` that names it.
    """

    root: str

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is not there."""
        with self._named(name), suppress(FileNotFoundError):
            return (self._root / name).read_bytes()
        return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        with self._named(name):
            path = self._root / name
            if self._remote:
                path.write_bytes(content)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
            temporary.write_bytes(content)
            temporary.replace(path)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it is there, whoever else tries; returns whether it was written.

        One that is empty is none: its command was killed before it wrote.
        """
        with self._named(name):
            path = self._root / name
            if self._remote:
                return self._create_remote(name, content)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and not path.stat().st_size:
                path.unlink()
            try:
                with path.open("xb") as file:
                    file.write(content)
            except FileExistsError:
                return False
        return True

    def _create_remote(self, name: str, content: bytes) -> bool:
        # Some packages for stores ignore the mode and write over what is there.
        if self.read(name) is not None:
            return False
        system, root = self._system()
        try:
            system.pipe_file(f"{root}/{name}", content, mode="create")
        except Exception:  # each store has its own for a file that came meanwhile
            if self.read(name) is None:
                raise
        return self.read(name) == content

    def sizes(self) -> dict[str, int]:
        """Return the bytes of all files that are there, by their names."""
        with self._named(""):
            system, root = self._system()
            found = system.find(root, detail=True) if system.exists(root) else {}
            return {
                path.removeprefix(root).lstrip("/"): info["size"] for path, info in found.items()
            }

    def remove(self, pattern: str) -> None:
        """Remove files whose names match a regular expression, and the folder if it is empty."""
        with self._named(""):
            for name in filter(re.compile(pattern).fullmatch, self.sizes()):
                (self._root / name).unlink()
            if not self._remote and self._root.is_dir() and not self.sizes():
                with suppress(OSError):  # a link to a folder, or what is mounted there
                    self._root.rmdir()

    def held(self, places: Iterable[str]) -> set[str]:
        """Return the paths and addresses that are in it, or are it; links are followed."""

        def plain(place: str) -> str:
            protocol, _, path = place.rpartition("://")
            return os.path.realpath(path) if protocol in ("", "file", "local") else path.strip("/")

        system, path = self._system()
        root = plain(system.unstrip_protocol(path))
        within = (root + "/", root + os.sep)
        inner = {place: plain(place) for place in places}
        return {each for each, at in inner.items() if at == root or at.startswith(within)}

    def objects(self, name: str) -> Iterator[Any]:
        """Yield the objects of this package that `Packing` has made a file of.

        Raises:
            DataError: The file is gone or damaged, or holds anything else.
        """
        import zstandard

        with self._named(name):
            try:
                opened = (self._root / name).open("rb")
            except FileNotFoundError:
                raise DataError(
                    f"{self.root}: another command has ended or begun there meanwhile; "
                    "give this one again"
                ) from None
            with opened, zstandard.open(opened, "rb") as unpacked:
                file = io.BufferedReader(unpacked, 2**20)
                while file.peek(1):
                    yield _OwnValues(file).load()

    @property
    def _remote(self) -> bool:
        return is_address(local_path(self.root))

    @property
    def _root(self) -> Path:
        if not self._remote:
            return Path(os.path.abspath(local_path(self.root)))  # noqa: PTH100 - of links, too
        from upath import UPath

        # Others write meanwhile; a kept listing would hide it, even from reading a file.
        return cast(Path, UPath(self.root, use_listings_cache=False))

    def _system(self) -> tuple[Any, str]:
        """The fsspec filesystem, and the root within it."""
        import fsspec

        root: Any = self._root
        if not self._remote:
            return fsspec.filesystem("file"), str(root).rstrip("/")
        return root.fs, root.path.rstrip("/")

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        try:
            yield
        except DataError:
            raise
        except Exception as error:  # each store raises its own
            place = f"{self.root}/{name}".rstrip("/")
            raise DataError(f"{place}: {type(error).__name__}: {plain_error(error)}") from error


class Packing:
    """Makes the content of a file of objects, one by one, for `Store.objects`."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        import zstandard

        self._made = io.BytesIO()
        packer = zstandard.ZstdCompressor(level=1)
        self._file: Any = packer.stream_writer(self._made, closefd=False)
        for value in values:
            self.add(value)

    def add(self, value: Any) -> None:
        """Take an object."""
        self._file.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))

    def content(self) -> bytes:
        """Return the file; nothing can be added afterwards."""
        self._file.close()
        return self._made.getvalue()


class _OwnValues(pickle.Unpickler):
    """Reads our own classes and plain values only: others may be able to write to a store."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("array", "_array_reconstructor"):
            return getattr(array, name)
        if (module, name) in (("array", "array"), ("collections", "Counter"), ("builtins", "set")):
            return {"array": array.array, "Counter": collections.Counter, "set": set}[name]
        if module.startswith("compression_eval."):
            found = super().find_class(module, name)
            # One that is nested in another has a name with a dot; through a dot, all else is too.
            if isinstance(found, type) and (found.__module__, found.__qualname__) == (module, name):
                return found
        raise pickle.UnpicklingError(f"contains {module}.{name}")
