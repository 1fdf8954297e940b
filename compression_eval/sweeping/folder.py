"""A sweep's folder: one sweep at a time in it, and of every task the current log only.

A run that was killed leaves a log that says it is still running. While the folder is locked no
other sweep can be writing it, so a log that a later attempt has taken over is set aside.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from zipfile import BadZipFile

from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from compression_eval.fixtures.errors import DataError

try:
    import fcntl as _fcntl

    fcntl: ModuleType | None = _fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

SET_ASIDE = "superseded"
_LOCK = ".sweep.lock"
_ID_FILE = ".eval-set-id"


@dataclass(frozen=True)
class FolderLog:
    """A log in a sweep's folder."""

    path: Path
    modified: float
    header: EvalLog


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one sweep; a lock dies with the process that holds it.

    Raises:
        DataError: Another sweep runs in it, or it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("w", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{folder}: cannot be written to ({error.strerror})") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise DataError(f"{folder}: another sweep is running in this folder") from error
        yield


def folder_logs(folder: Path) -> list[FolderLog]:
    """Return the logs that a folder holds; those that cannot be read are left out."""
    return [log for _, log in _listed(folder) if log is not None]


def repair(folder: Path) -> None:
    """Set aside what a kill can leave half-written, which Inspect would stumble over."""
    for path, log in _listed(folder):
        if log is None:
            _set_aside(path)
    identifier = folder / _ID_FILE
    if identifier.is_file() and not identifier.read_text(encoding="utf-8").strip():
        identifier.unlink()


def settle(folder: Path) -> int:
    """Set aside every log that a later attempt at the same task has completed.

    Returns:
        How many were.
    """
    by_task: dict[str, list[FolderLog]] = defaultdict(list)
    for log in folder_logs(folder):
        by_task[log.header.eval.task_id].append(log)
    moved = 0
    for logs in by_task.values():
        logs.sort(key=lambda log: log.modified)
        if logs[-1].header.status == "success":
            for old in logs[:-1]:
                _set_aside(old.path)
                moved += 1
    return moved


def fresh_folder(folder: Path) -> Path:
    """Return a folder beside one that does not exist yet: ``NAME-2`` and so on."""
    number = 2
    while (found := folder.with_name(f"{folder.name}-{number}")).exists():
        number += 1
    return found


def _listed(folder: Path) -> Iterator[tuple[Path, FolderLog | None]]:
    if not folder.is_dir():
        return
    for info in list_eval_logs(str(folder)):
        path = Path(info.name.removeprefix("file://"))
        try:
            header = read_eval_log(info, header_only=True)
        except (ValueError, OSError, KeyError, EOFError, BadZipFile):
            yield path, None
        else:
            yield path, FolderLog(path, info.mtime or 0.0, header)


def _set_aside(path: Path) -> None:
    target = path.parent / SET_ASIDE
    target.mkdir(exist_ok=True)
    # Without its suffix nothing takes it for a log, and it can still be had back.
    path.replace(target / f"{path.name}.old")
