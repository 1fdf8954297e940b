"""Find and read the logs of this eval.

`find_logs` lists what files and folders hold, `one_per_run` keeps one log of each run, and
`Log.samples` reads a log sample by sample, without the fields that no table is made of: Inspect's
reader takes four times as long, because it parses these fields too.
"""

import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname
from zipfile import ZipFile, is_zipfile

from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from inspect_ai.scorer import Score
from pydantic import ValidationError, create_model

from compression_eval.errors import DataError, NotFoundError, shorten
from compression_eval.grading.failures import FAILURES
from compression_eval.grading.rubric import MAX_SCORE

logger = logging.getLogger(__name__)

S = TypeVar("S", EvalSample, EvalSampleSummary)

QUALIFYING = "qualify"
"""Tag of the runs that qualify probes: their controls are no arms of a comparison."""

UNUSED = {"messages", "events", "attachments", "error_retries"}
"""Fields of a sample that no table is made of."""

_FIELDS = {*EvalSample.model_fields, "score"}  # what very old logs have for `scores`
_USED: dict[str, Any] = dict.fromkeys(_FIELDS - {*UNUSED, "events_data"}, (Any, None))
_UsedPart = create_model("_UsedPart", **_USED)
"""Made from a sample's JSON, it makes objects of these fields only."""

_OF_CRITERION = ("score", "graded")
_SETTINGS = ("criteria", "grader_context", "language", "rubric_digest")

_OURS = re.compile(r"(six_dimensions|fact_retention|refetch|artifact_files|compression)-?\d*")
"""Names of the scorers that tables read, with the number of one that was appended."""
_SHARES = re.compile(r"(fact_)?(recall|survival|agreement|correct|artifact)_?.*")
"""Keys of these scorers for values from 0 to 1."""


@contextmanager
def reading(path: str, what: str = "cannot be read ({})") -> Iterator[None]:
    """Name the log in errors of reading it, with their kind: they may be mistakes of ours.

    Raises:
        DataError: It cannot be read.
    """
    try:
        yield
    except Exception as error:  # what unpacks and parses a damaged log may raise anything
        kind = "" if isinstance(error, DataError) else type(error).__name__
        reason = ": ".join(filter(None, (kind, " ".join(str(error).split())[:200])))
        raise DataError(f"{path}: {what.format(reason)}") from error


@dataclass(frozen=True)
class Grading:
    """How the samples of a log were really graded, by the first grading of each."""

    settings: dict[str, str]
    """`criteria` and `grader_context`."""
    rubrics: dict[str, str]
    """The digest of the rubric in each language that it was graded in."""
    graders: Sequence[Mapping[str, Any]]
    """Those of the first graded sample; empty if none was graded."""


@dataclass
class Log:
    """A log of this eval that contains samples."""

    path: str
    header: EvalLog

    @property
    def name(self) -> str:
        """The file's name without folder and suffix."""
        return Path(self.path).stem

    @property
    def size(self) -> int:
        """Number of its samples, or how many there were to be in a run without results."""
        spec = self.header.eval
        planned = (spec.dataset.samples or 0) * (spec.config.epochs or 1)
        return self.header.results.total_samples if self.header.results else planned

    @property
    def compressor(self) -> str:
        """Name of the strategy; empty if the log does not say."""
        described = (self.header.eval.metadata or {}).get("compressor")
        return str(described.get("name", "")) if isinstance(described, dict) else ""

    def models(self, role: str) -> list[str]:
        """Return the names of the models in a role: the model under test where none was bound.

        The task's metadata cannot tell: one that is made in Python does not know them yet.
        """
        bound = (self.header.eval.model_roles or {}).get(role) or []
        configs = bound if isinstance(bound, list) else [bound]
        return [each.model for each in configs] or [self.header.eval.model]

    @property
    def complete(self) -> bool:
        """Whether the run was completed; a failed one may be, too."""
        return self.header.status == "success" or FAILURES in self.header.metadata

    @cached_property
    def grading(self) -> Grading:
        """How it was graded, from the log's overview unless `samples` were read before."""
        try:
            graded = _graded(read_eval_log_sample_summaries(self.path))
            # The overview is too short for the graders.
            first = [
                read_eval_log_sample(self.path, each.id, each.epoch, exclude_fields=UNUSED)
                for each, _ in graded[:1]
            ]
        except Exception:  # damaged: reading its samples says so
            return self._grading([], None)
        graders = [metadata.get("graders") for _, metadata in _graded(first)]
        return self._grading([metadata for _, metadata in graded], *graders)

    def samples(self) -> Iterator[EvalSample]:
        """Yield the samples without what no table is made of, which is most of a log.

        Raises:
            DataError: There are fewer than were completed, or one has a score that no scorer gives.
        """
        read = 0
        gradings: list[Mapping[str, Any]] = []
        graders: list[Any] = []
        for sample in self._read():
            for _, metadata in _graded([sample]):
                gradings.append({key: metadata[key] for key in _SETTINGS if key in metadata})
                graders = graders or [metadata.get("graders")]
            for name, score in (sample.scores or {}).items():
                if match := _OURS.fullmatch(name):
                    _check_score(f"{sample.id}, epoch {sample.epoch}: {name}", match[1], score)
            read += 1
            yield sample
        results, logged = self.header.results, self.header.eval.config.log_samples is not False
        if results and logged and self.complete and read < results.completed_samples:
            raise DataError(f"only {read} of {results.completed_samples} samples are left in it")
        self.grading = self._grading(gradings, *graders)

    def _read(self) -> Iterator[EvalSample]:
        """Yield samples by epoch and id; behind an address they are left to Inspect's reader."""
        if self.path.endswith(".eval") and (
            "://" not in self.path or self.path.startswith("file:")
        ):
            with ZipFile(local_path(self.path)) as archive:  # Inspect taught it Zstandard
                yield from _parsed(archive)
        else:
            yield from read_eval_log(self.path, exclude_fields=UNUSED).samples or []

    def _grading(self, gradings: Sequence[Mapping[str, Any]], graders: Any = None) -> Grading:
        options_of = [each.options or {} for each in self.header.eval.scorers or []]
        settings = {}
        for name in ("criteria", "grader_context"):
            # Without gradings, only the run's options are known.
            known = [each.get(name) for each in gradings] or [
                options[name] for options in options_of if name in options
            ]
            settings[name] = " | ".join(
                sorted({str(value) for value in known if value is not None})
            )
        rubrics = {
            f"rubric {each['language']}": str(each["rubric_digest"])[:12]
            for each in gradings
            if {"language", "rubric_digest"} <= each.keys()
        }
        return Grading(settings, rubrics, graders if isinstance(graders, list) else [])


def _parsed(archive: ZipFile) -> Iterator[EvalSample]:
    """Yield the samples of a log, each once."""

    def place(name: str) -> tuple[int, str]:
        sample, _, epoch = name.removesuffix(".json").rpartition("_epoch_")
        return int(epoch), sample

    for name in sorted({n for n in archive.namelist() if n.startswith("samples/")}, key=place):
        content = archive.read(name)
        try:
            part = _UsedPart.model_validate_json(content)
            fields = {name: getattr(part, name) for name in part.model_fields_set}
        except ValidationError:  # what only Python's parser takes, as half a surrogate pair
            fields = {k: v for k, v in json.loads(content).items() if k in _USED}
        yield EvalSample.model_validate(fields)


def _graded(samples: Iterable[S]) -> list[tuple[S, Mapping[str, Any]]]:
    """Return the samples that were graded, with the metadata of their first grading."""
    scores = ((sample, (sample.scores or {}).get("six_dimensions")) for sample in samples)
    return [(sample, score.metadata) for sample, score in scores if score and score.metadata]


def _check_score(where: str, scorer: str, score: Score) -> None:
    """Refuse a score with a value off its scale; NaN and None are values that were not graded."""
    own = score.value if isinstance(score.value, dict) else {"value": score.value}
    rubric = scorer == "six_dimensions"
    values: list[tuple[str, object, float]] = []
    for key, value in own.items():
        most = 1 if _SHARES.fullmatch(key) else math.inf
        values.append((key, value, MAX_SCORE if rubric or key.startswith("knowledge") else most))
    metadata = (score.metadata or {}) if rubric else {}
    for graded in (metadata, *(metadata.get("graders") or ())):
        for result in graded.get("criterionResults") or ():
            name = result.get("criterionId")
            values += [(f"{name}: {key}", result.get(key), MAX_SCORE) for key in _OF_CRITERION]
    for key, value, most in values:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        number = float(value) if known else math.inf  # type: ignore[arg-type]
        on_scale = 0 <= number <= most if most < math.inf else math.isfinite(number)
        if value is not None and not (on_scale or math.isnan(number)):
            scale = f"from 0 to {most:g}" if most < math.inf else "that is finite"
            raise DataError(f"{where}: {key}: {shorten(str(value))} is no number {scale}")


def find_logs(paths: Sequence[str]) -> list[Log]:
    """Return the logs that files and folders hold, in the order given, the oldest first.

    A folder is searched with the folders in it. Logs of other evals in it are skipped, and
    so are those of ``probes qualify`` that are in it next to others, which is logged. Left out are
    attempts that a later attempt at the same run continued with, since it contains their samples
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
            if foreign := len(listed) - len(ours):
                logger.warning("%s: skipped %d logs of other evals", path, foreign)
            arms = [log for log in ours if QUALIFYING not in (log.header.eval.tags or [])]
            if arms and (qualifying := len(ours) - len(arms)):
                logger.warning("%s: skipped %d logs of probes qualify", path, qualifying)
            logs.extend(_current(arms or ours))
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

    A run may have several logs: of attempts, of which the last one contains the samples of all; and
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
    local = local_path(path)
    return local.stat().st_mtime if local.is_file() else 0.0


def local_path(address: str) -> Path:
    """Return where a log is on a disk; what is not on one is no file there."""
    if not address.startswith("file:"):
        return Path(address)
    parts = urlsplit(address)
    drive = parts.netloc if parts.netloc[1:] == ":" else ""  # as fsspec writes it on Windows
    return Path(url2pathname(drive + parts.path))


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
    """Return the paths or addresses of a folder's logs, the oldest first, with the folders in it.

    Raises:
        DataError: It cannot be listed.
    """
    try:
        # Inspect reads a name with file:// as if it were quoted, which those of a listing are not.
        found = list_eval_logs(folder, descending=False)
        return [info.name.removeprefix("file://") for info in found]
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
    with reading(path, "not a log of Inspect, or a damaged one ({})"):
        if "://" not in path and path.endswith(".eval"):
            with Path(path).open("rb") as file:
                if not is_zipfile(file):
                    raise DataError("a .eval file is a zip archive, and this is none or cut off")
        header = read_eval_log(path, header_only=True)
    # What is most of a header, and no table is made of.
    header.reductions, header.eval.viewer = None, None
    if header.results:
        header.results.scores = []
    return Log(path, header)


def is_ours(header: EvalLog) -> bool:
    """Return whether a log is of the task that measures what a compression kept."""
    return "compression_eval" in (header.eval.metadata or {})


def agent_logs(paths: Sequence[str]) -> list[Log]:
    """Return the logs of other tasks than ours that are named or are in the folders.

    Returns:
        An empty list if one of them is a log of our task: then they are not compared this way.

    Raises:
        DataError: A log cannot be read, or is missing.
    """
    names = [name for path in paths for name in (names_in(path) if is_folder(path) else [path])]
    found = []
    for name in dict.fromkeys(names):
        found.append(header_of(name))
        if is_ours(found[-1].header):
            return []
    return one_per_run([log for log in found if log.header.status != "started"])
