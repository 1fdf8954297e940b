"""Find and read the logs of this eval."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname
from zipfile import BadZipFile

from inspect_ai.log import (
    EvalLog,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from inspect_ai.scorer import Score

from compression_eval.errors import DataError, NotFoundError
from compression_eval.fixtures.message_text import message_text
from compression_eval.grading.failures import FAILURES
from compression_eval.record import recorded_in

logger = logging.getLogger(__name__)

UNREADABLE = (ValueError, OSError, KeyError, IndexError, BadZipFile)
"""Errors of Inspect for a damaged log or a missing sample."""


@contextmanager
def reading(path: str, what: str = "{}") -> Iterator[None]:
    """Name the log in errors of reading it.

    Raises:
        DataError: It cannot be read.
    """
    try:
        yield
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{path}: {what.format(reason)}") from error


@dataclass(frozen=True)
class Log:
    """A log of this eval that holds samples."""

    path: str
    header: EvalLog

    @property
    def name(self) -> str:
        """The file's name without folder and suffix."""
        return Path(self.path).stem

    @property
    def compressor(self) -> str:
        """Name of the strategy; empty if the log does not say."""
        described = (self.header.eval.metadata or {}).get("compressor")
        return str(described.get("name", "")) if isinstance(described, dict) else ""

    @property
    def complete(self) -> bool:
        """Whether the run was completed; a failed one may be, too."""
        return self.header.status == "success" or FAILURES in self.header.metadata

    @cached_property
    def _gradings(self) -> dict[tuple[str | int, int], Score]:
        """The first grading of each sample by id and epoch, as short as a log's overview has it."""
        try:
            summaries = read_eval_log_sample_summaries(self.path)
        except UNREADABLE:
            return {}
        graded = ((each, (each.scores or {}).get("six_dimensions")) for each in summaries)
        return {(each.id, each.epoch): score for each, score in graded if score and score.metadata}

    @cached_property
    def graded_with(self) -> dict[str, str]:
        """How it was really graded: `criteria` and `grader_context`."""
        options_of = [each.options or {} for each in self.header.eval.scorers or []]
        settings = {}
        for name in ("criteria", "grader_context"):
            # Without gradings, only the run's options are known.
            values = [(score.metadata or {}).get(name) for score in self._gradings.values()]
            known = values or [options[name] for options in options_of if name in options]
            settings[name] = " | ".join(
                sorted({str(value) for value in known if value is not None})
            )
        return settings

    @cached_property
    def graded_against(self) -> dict[str, str]:
        """The digest of the rubric in each language that it was graded in."""
        return {
            f"rubric {metadata['language']}": str(metadata["rubric_digest"])[:12]
            for score in self._gradings.values()
            if {"language", "rubric_digest"} <= (metadata := score.metadata or {}).keys()
        }

    @cached_property
    def graders(self) -> list[dict[str, Any]]:
        """The graders in the first graded sample; empty if none was graded."""
        unused = {"messages", "events", "store"}
        for key in self._gradings:
            try:
                sample = read_eval_log_sample(self.path, *key, exclude_fields=unused)
            except UNREADABLE:
                return []
            score = (sample.scores or {}).get("six_dimensions")
            graders = (score.metadata or {}).get("graders") if score else None
            if isinstance(graders, list):
                return graders
        return []

    def warn_of_lost(self, number: int) -> None:
        """Warn that scored samples have no record, so that no table can show them."""
        if number:
            logger.warning(
                "%s: %d scored samples have no record of their state and answer, and none could be "
                "made of their events; they are left out",
                self.path,
                number,
            )

    def state_lines(self, sample_id: str, epoch: int) -> list[str]:
        """Return the state that a sample was answered from, line by line, without blank ones.

        System messages are left out: they stand in every state.

        Raises:
            DataError: The log cannot be read.
        """
        with reading(self.path):
            sample = read_eval_log_sample(self.path, sample_id, epoch, resolve_attachments=True)
            recorded = recorded_in(sample)
        context = recorded.context if recorded else []
        text = "\n".join(message_text(each) for each in context if each.role != "system")
        return [line.strip() for line in text.splitlines() if line.strip()]


def find_logs(paths: Sequence[str]) -> list[Log]:
    """Return the logs that files and folders hold, in the order given, the oldest first.

    A folder is searched with the folders in it. Logs of other evals in it are left out, and those
    of attempts that a later attempt at the same run went on with, since it holds their samples
    too. A file that is named must be a log of this eval.

    Raises:
        DataError: There is none, or one that is named is missing, foreign or still running.
    """
    logs: list[Log] = []
    for path in paths:
        if is_folder(path):
            listed = [header_of(name) for name in names_in(path)]
            ours = [log for log in listed if is_ours(log.header)]
            if not ours:
                others = f" ({len(listed)} of other evals)" if listed else ""
                raise DataError(f"{path}: no log of compression_eval in this folder{others}")
            logs.extend(_current(ours))
        else:
            log = header_of(path)
            if not is_ours(log.header):
                name = log.header.eval.task
                raise DataError(f"{path}: a log of {name!r}, not of compression_eval")
            logs.append(log)
    for log in logs:
        if log.header.status == "started":
            raise DataError(
                f"{log.path}: the run is still going on, or was killed; wait for it, or finish it "
                "with: inspect eval-retry"
            )
    return list({log.path: log for log in logs}.values())


def one_per_run(logs: Sequence[Log]) -> list[Log]:
    """Return one log of each run, so that no sample counts twice.

    A run may have several logs: of attempts, of which the last one holds the samples of all; and
    copies that ``inspect score`` made. Kept is that of the last attempt, and of its copies the one
    that was written last.
    """
    newest: dict[str, Log] = {}
    for log in sorted(logs, key=lambda log: (log.header.eval.created, _written(log.path))):
        newest[log.header.eval.task_id] = log
    kept = {id(log) for log in newest.values()}
    return [log for log in logs if id(log) in kept]


def _written(path: str) -> float:
    """Return when a file was written; 0 where it is not on a disk."""
    local = Path(url2pathname(urlsplit(path).path) if path.startswith("file:") else path)
    return local.stat().st_mtime if local.is_file() else 0.0


def _current(logs: Sequence[Log]) -> list[Log]:
    """Drop logs of a run's earlier attempts, and those that a killed one was recovered from."""
    newest: dict[str, str] = {}
    for log in logs:
        spec = log.header.eval
        newest[spec.task_id] = max(newest.get(spec.task_id, ""), spec.created)
    kept = [log for log in logs if log.header.eval.created == newest[log.header.eval.task_id]]
    ended = {log.header.eval.eval_id for log in kept if log.header.status != "started"}
    return [
        log
        for log in kept
        if log.header.status != "started" or log.header.eval.eval_id not in ended
    ]


def is_folder(path: str) -> bool:
    """Return whether a path, or an address such as ``s3://…``, is one of a folder of logs."""
    return Path(path).is_dir() or ("://" in path and not path.endswith((".eval", ".json")))


def names_in(folder: str) -> list[str]:
    """Return the addresses of a folder's logs, those of the folders in it too, the oldest first.

    Raises:
        DataError: It cannot be listed.
    """
    try:
        return [info.name for info in list_eval_logs(folder, descending=False)]
    except Exception as error:  # a file system may raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{folder}: cannot be listed: {reason}") from error


def header_of(path: str) -> Log:
    """Return a log with its header.

    Raises:
        DataError: It is missing, or no log of Inspect.
    """
    if "://" not in path and not Path(path).is_file():
        raise NotFoundError(f"{path}: no such file or folder")
    with reading(path, "not a log of Inspect ({})"):
        return Log(path, read_eval_log(path, header_only=True))


def is_ours(header: EvalLog) -> bool:
    """Return whether a log is of the task that measures what a compression kept."""
    return "compression_eval" in (header.eval.metadata or {})
