"""Files in a folder or at an address, and objects of this package that are kept in them."""

import array
import collections
import io
import os
import pickle
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from compression_eval.errors import DataError
from compression_eval.fixtures.addresses import is_address, local_path
from compression_eval.terminal import plain_error


@dataclass(frozen=True)
class Store:
    """Files by their names in a folder or at an address, each written whole or not at all."""

    root: str

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is not there.

        Raises:
            DataError: It cannot be read.
        """
        with self._named(name):
            try:
                content: bytes = self._system.cat_file(self._path(name))
            except FileNotFoundError:
                return None
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file.

        Raises:
            DataError: It cannot be written.
        """
        with self._named(name):
            if self._remote:
                self._system.pipe_file(self._path(name), content)
                return
            path = Path(self._path(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
            temporary.write_bytes(content)
            temporary.replace(path)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it is there, whoever else tries; returns whether it was written.

        One that is empty is none.

        Raises:
            DataError: It cannot be written.
        """
        with self._named(name):
            if self._remote:
                return self._put(name, content)
            path = Path(self._path(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file() and not path.stat().st_size:
                path.unlink()  # of one that was killed before it wrote
            try:
                file = path.open("xb")
            except FileExistsError:
                return False
            try:
                with file:
                    file.write(content)
            except OSError:
                path.unlink()
                raise
        return True

    def names(self) -> set[str]:
        """Return the names of all files that are there."""
        return set(self.sizes())

    def sizes(self) -> dict[str, int]:
        """Return the bytes of all files that are there, by their names."""
        with self._named(""):
            system, root = self._filesystem()
            found = system.find(root, detail=True) if system.exists(root) else {}
            return {
                path.removeprefix(root).lstrip("/"): info["size"] for path, info in found.items()
            }

    def remove(self, pattern: str) -> None:
        """Remove files whose names match a regular expression, and the folder if it is empty."""
        with self._named(""):
            for name in filter(re.compile(pattern).fullmatch, self.names()):
                self._system.rm_file(self._path(name))
            if not self._remote and Path(self._root).is_dir() and not self.names():
                with suppress(OSError):  # a link to a folder, or what is mounted there
                    Path(self._root).rmdir()

    def held(self, places: Iterable[str]) -> set[str]:
        """Return the paths and addresses that lie in it, or are it; links are followed."""

        def plain(place: str) -> str:
            protocol, _, path = place.rpartition("://")
            return os.path.realpath(path) if protocol in ("", "file", "local") else path.strip("/")

        root = plain(self._system.unstrip_protocol(self._root))
        return {
            place
            for place in places
            if (inner := plain(place)) == root or inner.startswith((root + "/", root + os.sep))
        }

    def _put(self, name: str, content: bytes) -> bool:
        # Some packages for stores pass over the mode, and write over what is there.
        if self.read(name) is not None:
            return False
        try:
            self._system.pipe_file(self._path(name), content, mode="create")
        except Exception:  # each store has its own for a file that came meanwhile
            if self.read(name) is None:
                raise
            return False
        return self.read(name) == content

    @property
    def _remote(self) -> bool:
        return is_address(local_path(self.root))

    @property
    def _system(self) -> Any:
        return self._filesystem()[0]

    @property
    def _root(self) -> str:
        return self._filesystem()[1]

    def _filesystem(self) -> tuple[Any, str]:
        import fsspec

        if not self._remote:  # fsspec would take a path with :: in it apart
            path = os.path.abspath(local_path(self.root))  # noqa: PTH100 - of links, too
            return fsspec.filesystem("file"), path.rstrip("/")
        # Others write meanwhile; a kept listing would hide it, even from reading a file.
        system, root = fsspec.core.url_to_fs(self.root, use_listings_cache=False)
        return system, str(root).rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        try:
            yield
        except DataError:
            raise
        except Exception as error:  # each store raises its own
            place = f"{self.root}/{name}".rstrip("/")
            raise DataError(f"{place}: {type(error).__name__}: {plain_error(error)}") from error


def left(store: Store, name: str) -> bytes:
    """Return the content of a file that was left in a store.

    Raises:
        DataError: It is gone, or cannot be read.
    """
    if (content := store.read(name)) is None:
        raise DataError(
            f"{store.root}: another command has ended or begun anew there meanwhile; "
            "give this one again"
        )
    return content


def load(store: Store, name: str) -> Any:
    """Return an object that this package has left in a store.

    Raises:
        DataError: It is gone or damaged, or holds anything but values of this package.
    """
    content = left(store, name)
    try:
        return _OwnValues(io.BytesIO(content)).load()
    except (EOFError, pickle.UnpicklingError, AttributeError, ValueError) as error:
        raise DataError(f"{store.root}/{name}: cannot be used, remove it: {error}") from error


@dataclass(frozen=True)
class Shared:
    """An object in a store; a process reads it once."""

    store: Store
    name: str
    digest: str
    """Of its file: another run may leave another object there."""

    def get(self) -> Any:
        """Return the object."""
        return _kept(self)


@lru_cache(maxsize=1)
def _kept(shared: Shared) -> Any:
    return load(shared.store, shared.name)


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
        raise pickle.UnpicklingError(f"holds {module}.{name}")
