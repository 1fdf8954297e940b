"""States kept beside the log, so that a retried run goes on with the ones it has."""

import gzip
import hashlib
import logging
import zlib
from pathlib import Path
from uuid import uuid4

from compression_eval.compressors.state import State

logger = logging.getLogger(__name__)

FOLDER = "compression_states"
"""Folder beside the logs; one folder for each logical run in it."""


class StateFiles:
    """The states of one logical run, each in a file named by what it is a state of.

    Args:
        log_folder: Folder of the log: a local path, or a URL that fsspec can open.
        task_id: The logical run.
    """

    def __init__(self, log_folder: str, task_id: str) -> None:
        self._folder = f"{log_folder.rstrip('/')}/{FOLDER}/{task_id}"
        self._local = "://" not in log_folder or log_folder.startswith("file://")

    def load(self, key: str) -> State | None:
        """Return the state kept under a key, or None if there is none that can be read.

        A file that is damaged or was kept under another key (another conversation, cut or
        replicate) counts as none: the state is then computed anew.
        """
        import fsspec

        try:
            with fsspec.open(self._path(key), "rb") as file:
                digest, _, content = gzip.decompress(file.read()).partition(b"\n")
            if digest != _digest(key, content):
                raise ValueError("it is not the one that was kept here")
            return State.model_validate_json(content)
        except FileNotFoundError:
            return None
        except (OSError, EOFError, zlib.error, ValueError) as error:
            logger.warning("a kept state cannot be used and is computed anew: %s", error)
            return None

    def save(self, key: str, state: State) -> None:
        """Keep a state; a reader sees all of it or nothing."""
        import fsspec

        dumped = state.model_dump_json().encode()
        content = gzip.compress(_digest(key, dumped) + b"\n" + dumped, mtime=0)
        path = self._path(key)
        if self._local:
            target = Path(path.removeprefix("file://"))
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(f".{uuid4().hex}.partial")
            try:
                partial.write_bytes(content)
                partial.replace(target)
            finally:  # on a full disk, half a file would only take room from the log
                partial.unlink(missing_ok=True)
        else:
            with fsspec.open(path, "wb") as file:
                file.write(content)

    def _path(self, key: str) -> str:
        # A fixture's name is untrusted, so it never becomes part of a path.
        return f"{self._folder}/{hashlib.sha256(key.encode()).hexdigest()[:24]}.state.gz"


def _digest(key: str, content: bytes) -> bytes:
    """Return a digest of a state and of what it is the state of."""
    return hashlib.sha256(key.encode() + b"\0" + content).hexdigest().encode()
