"""From what a user named (files, folders, patterns, addresses) to what is to be read."""

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compression_eval.fixtures.addresses import is_address
from compression_eval.fixtures.errors import DataError, NotFoundError, shorten


@dataclass(frozen=True)
class Input:
    """One file or address to read."""

    place: str
    """As it is shown and opened."""
    named: bool
    """Whether it was named by itself; others lay in a folder that was named."""

    @property
    def is_address(self) -> bool:
        """Whether it is an address and no file."""
        return is_address(self.place)

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.place)


def find_inputs(named: Iterable[str]) -> list[Input]:
    """Return everything that was named, in that order, folders with all that lies in them.

    Args:
        named: Files, folders, patterns (``**`` goes into folders) and addresses (``hf:…``).

    Raises:
        DataError: A path does not exist, or nothing matches a pattern.
    """
    found: dict[str, Input] = {}
    for text in named:
        for item in _inputs(text):
            key = item.place if item.is_address else os.path.realpath(item.place)
            if key not in found or (item.named and not found[key].named):
                found[key] = item
    return list(found.values())


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
    if is_address(text):
        yield Input(text, named=True)
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
