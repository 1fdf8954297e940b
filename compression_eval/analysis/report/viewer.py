"""Where Inspect's viewer shows a sample."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname


@dataclass(frozen=True)
class Viewer:
    """How the samples of some logs are reached."""

    address: str
    """Of the viewer, with a slash at its end."""
    command: str
    """Starts the viewer, in the folder of the report."""
    names: dict[str, str]
    """By the path of a log: what the viewer calls it."""

    def link(self, log_path: str) -> str:
        """Return the address of a log's samples; a sample's id and epoch follow after a slash."""
        return f"{self.address}#/logs/{quote(self.names[log_path], safe='/')}/samples/sample"


def viewer_of(log_paths: Sequence[str], out: Path, address: str) -> Viewer:
    """Return how to reach the samples of some logs.

    Args:
        log_paths: Paths or addresses of the logs.
        out: The report's folder: the command names the logs as seen from there, so that no path
            of a machine stands on the page.
        address: Where the viewer serves.
    """
    places = {path: _place(path) for path in log_paths}
    folder = _common_folder(list(places.values()))
    names = {path: _below(folder, place) for path, place in places.items()}
    seen = folder if "://" in folder else os.path.relpath(folder, out.resolve())
    # Inspect refuses to read below a folder whose address holds "..", so the command goes there.
    command = f"inspect view --log-dir {shlex.quote(seen)}"
    if ".." in Path(seen).parts:
        command = f"cd {shlex.quote(seen)} && inspect view --log-dir ."
    return Viewer(address.rstrip("/") + "/", command, names)


def _place(path: str) -> str:
    """Return an absolute path, or an address of a remote store as it is."""
    if path.startswith("file:"):
        return str(Path(url2pathname(urlsplit(path).path)).resolve())
    return unquote(path) if "://" in path else str(Path(path).resolve())


def _common_folder(places: Sequence[str]) -> str:
    folders = {
        place.rpartition("/")[0] if "://" in place else str(Path(place).parent) for place in places
    }
    if len(folders) == 1:
        return folders.pop()
    if any("://" in folder for folder in folders):
        return _common_address(sorted(folders))
    return os.path.commonpath(sorted(folders))


def _common_address(folders: Sequence[str]) -> str:
    shared = []
    for parts in zip(*(folder.split("/") for folder in folders), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


def _below(folder: str, place: str) -> str:
    if "://" in place:
        return place.removeprefix(folder).lstrip("/")
    return Path(place).relative_to(folder).as_posix()
