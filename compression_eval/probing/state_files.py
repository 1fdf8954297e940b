"""States kept beside the log, so that a retried run goes on with the ones it has."""

import gzip
import hashlib
import logging
import zlib
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

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

        A damaged or unreadable file counts as none: the state is then computed anew.
        """
        import fsspec

        try:
            with fsspec.open(self._path(key), "rb") as file:
                return State.model_validate_json(gzip.decompress(file.read()))
        except FileNotFoundError:
            return None
        except (OSError, EOFError, zlib.error, ValidationError) as error:
            logger.warning("a kept state cannot be read and is computed anew: %s", error)
            return None

    def save(self, key: str, state: State) -> None:
        """Keep a state; a reader sees all of it or nothing."""
        import fsspec

        content = gzip.compress(state.model_dump_json().encode(), mtime=0)
        path = self._path(key)
        if self._local:
            target = Path(path.removeprefix("file://"))
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(f".{uuid4().hex}.partial")
            partial.write_bytes(content)
            partial.replace(target)
        else:
            with fsspec.open(path, "wb") as file:
                file.write(content)

    def _path(self, key: str) -> str:
        # A fixture's name is untrusted, so it never becomes part of a path.
        return f"{self._folder}/{hashlib.sha256(key.encode()).hexdigest()[:24]}.state.gz"
