"""Logs as tidy pandas frames: one row per sample, criterion, fact or state.

They are made with Inspect's own dataframe functions, so that columns of one's own can be joined
by ``sample_uuid`` and ``eval_id``. Every figure of a report or comparison comes from them.
"""

import json
import logging
import math
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.arms import (
    answered_by,
    arguments_of,
    arm_names,
    graders_of,
    settings_of,
)
from compression_eval.analysis.columns import (
    CRITERIA,
    FACTS,
    FOLDED,
    GRADINGS,
    NUMBERS,
    SAMPLE_COLUMNS,
    SCORES,
    SETUP,
    Seen,
    Value,
)
from compression_eval.analysis.facts import FACT_COLUMNS
from compression_eval.analysis.logs import Grading, Log, find_logs, one_per_run, reading
from compression_eval.engine import Engine, cores
from compression_eval.errors import DataError
from compression_eval.grading.rubric import structure

if TYPE_CHECKING:
    from pandas import DataFrame

logger = logging.getLogger(__name__)

Logs = str | Path | Sequence[str | Path]

_NAMES = (
    *("sample", "sample_uuid", "epoch", "fixture", "cut", "probe_id", "probe_type"),
    *("replicate", "state_id"),
)
"""Columns that name a sample."""

MIN_FOR_PROCESSES = 1200
"""Samples from which on several processes pay, of which the first takes seconds to start."""

MAX_PROCESSES = 4
"""Processes that read, unless a number is given."""

_STATE_COLUMNS = (
    *("log", "log_path", "eval_id", "arm", "compressor", "model", "fixture", "cut", "unit"),
    *("cycles", "task_type", "language", "length", "replicate", "state_id", "state_status"),
    *("suspect", "failure", "tokens_original", "tokens_state", "tokens_removed"),
    *("compress_calls", "compress_input_tokens", "compress_output_tokens", "compress_seconds"),
)


def samples_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample and epoch.

    Columns, besides those of the run (`log`, `log_path`, `eval_id`, `created`, `arm`, `compressor`,
    `compressor_args` as JSON, `settings` for people, `model`, `compressor_model`, `graders`,
    `answered_by` and `graders_settings` (models with their settings, secrets as digests),
    `offline`, `run_status` (as it ended, whatever graded it again), `version`), are those of
    `columns.SAMPLE_COLUMNS`, and ``unit`` (the fixture at its cut). Scores are 0 to 5,
    `fact_recall` and `fact_survival` (`recall_by` and `survival_by` say by whose word),
    `fact_agreement` (of look-up and reader on the state) and `tokens_removed` shares of 1, tokens
    those of the log's counter, times seconds. A value that was not graded, or that failed, is
    missing and never 0; `failure` says why.

    `answer_all_tokens` are input and output of the first answer's request, cached ones too.
    `refetch_…` columns are those of the scorer `refetch`; `refetch_tokens` those of all requests
    of the second answer.

    `compress_…` columns are on one sample of each state, as a rule the one that carried the
    compression out, and are missing on the others, so that they can be added up.

    Args:
        logs: Paths of logs or of folders with logs. Of several logs of one run only one is read;
            see `logs.one_per_run`.

    Raises:
        DataError: There are none, or one is no finished log of this eval.
    """
    return _table(logs, SAMPLE_COLUMNS)


def criteria_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample, criterion, grading and grader.

    Columns: those that name the run and sample (as in `samples_frame`), `grading` (0 for the
    first, 1 and up for gradings that were appended), `criterion`, `dimension`, `grader` (``panel``
    for what the graders came to together), `score` (0 to 5, what counts), `graded` (before the
    mechanical rules) and `reasoning`.

    Arguments and errors are those of `samples_frame`.
    """
    return unfold_criteria(_table(logs, (*_NAMES, CRITERIA)))


def gradings_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample and grading: an answer may be graded several times.

    Columns: those that name the run and sample, `grading` (0 for the first, 1 and up for those
    that were appended), `graded_by`, how it was set up (`criteria`, `grader_context`, `language`,
    `rubric_digest`), `knowledge`, `overall` and the dimensions (0 to 5, missing where there is no
    value).

    Arguments and errors are those of `samples_frame`.
    """
    return unfold_gradings(_table(logs, (*_NAMES, GRADINGS)))


def facts_frame(logs: Logs) -> "DataFrame":
    """Return one row per expected fact, sample and epoch.

    Columns: `arm`, `log`, `compressor`, `fixture`, `cut`, `probe`, `type` (of the probe), `fact`,
    `epoch`, `replicate` (which compression), `stage` (see docs/matching.md), `region` (parts of the
    state that contain it, joined by ``+``), `fed` (whether a summarising call was shown it),
    `in_state` and `in_answer` (what look-ups found), `in_state_read` and `in_answer_read` (the
    words of reader and grader; missing if there is none), `state_quotes` (passages that support
    the reader's), `instead` (superseded values and variants that the state gives in its place),
    `age_messages` (from its first evidence to the cut) and `age_share` (of the history, 0 to 1),
    `cycles` (compressions that it has been through), `found` (whether the look-up found it after
    each of them; empty with one compression), `status` and `state_id` of the compression.

    Arguments and errors are those of `samples_frame`.
    """
    return unfold_facts(_table(logs, ("sample", FACTS)))


def states_frame(logs: Logs) -> "DataFrame":
    """Return one row per compression: its size, cost and how it ended.

    Arguments and errors are those of `samples_frame`.
    """
    return states_of(samples_frame(logs))


def states_of(samples: "DataFrame") -> "DataFrame":
    """Return the rows of `states_frame` from those of `samples_frame`."""
    first = samples.loc[samples["compress_calls"].notna(), list(_STATE_COLUMNS)]
    return first.sort_values(["log_path", "unit", "replicate"]).reset_index(drop=True)


def unfold_criteria(frame: "DataFrame") -> "DataFrame":
    """Return a row per criterion of a frame with the folded column."""
    names = ("grading", "criterion", "grader", "score", "graded", "reasoning")
    frame = _unfolded(frame.drop(columns=CRITERIA), frame[CRITERIA], names)
    dimensions = {criterion.id: criterion.dimension for criterion in structure().criteria}
    frame["dimension"] = frame["criterion"].map(dimensions)
    return frame


def unfold_gradings(frame: "DataFrame") -> "DataFrame":
    """Return a row per grading of a frame with the folded column."""
    names = ("grading", "graded_by", *SETUP, *SCORES)
    frame = _unfolded(frame.drop(columns=GRADINGS), frame[GRADINGS], names)
    return frame.astype(dict.fromkeys(SCORES, float))


def unfold_facts(
    frame: "DataFrame",
    names: Sequence[str] = FACT_COLUMNS,
    cells: Iterable[Value] | None = None,
) -> "DataFrame":
    """Return a row per fact of a frame with the folded column, or with its cells next to it.

    Of arm, log and compressor it has those that the frame has.
    """
    of_run = [name for name in ("arm", "log", "compressor") if name in frame]
    return _unfolded(frame[of_run], frame[FACTS] if cells is None else cells, names)


def fact_rows(logs: Sequence[Log]) -> list[dict[str, Any]]:
    """Return the rows of some logs, in the order of logs, samples and facts.

    Raises:
        DataError: A log cannot be read.
    """
    frame = read_rows(logs, ("sample", "epoch", "state_id", "gradings", FACTS))
    order = {log.path: number for number, log in enumerate(logs)}
    places = {
        (log.path, str(sample)): place
        for log in logs
        for place, sample in enumerate(log.header.eval.dataset.sample_ids or [])
    }
    columns = ["log_path", "sample", "epoch", "log", "compressor", FACTS]
    rows = sorted(
        frame[columns].itertuples(index=False, name=None),
        key=lambda row: (order[row[0]], places.get(row[:2], len(places)), row[2]),
    )
    return [
        {"log": log, "compressor": compressor} | fact
        for *_, log, compressor, folded in rows
        for fact in _rows(folded)
    ]


def _unfolded(frame: "DataFrame", cells: Iterable[Any], names: Iterable[str]) -> "DataFrame":
    from pandas import DataFrame

    places: list[int] = []
    values: dict[str, list[Any]] = {name: [] for name in names}
    for place, cell in enumerate(cells):
        for row in _rows(cell):
            places.append(place)
            for name, own in values.items():
                own.append(row.get(name, math.nan))
    return frame.iloc[places].reset_index(drop=True).join(DataFrame(values))


def _rows(cell: Any) -> list[Any]:
    return list(json.loads(cell)) if isinstance(cell, str) else []


def _table(paths: Logs, names: Iterable[str]) -> "DataFrame":
    """Return the rows of some logs with the columns of their runs in front."""
    named = [paths] if isinstance(paths, str | Path) else list(paths)
    if not named:
        raise DataError("logs: none were given")
    logs = one_per_run(find_logs([str(path) for path in named]))
    return read_rows(logs, names, processes=1)  # a user's script may not bear to be imported again


class Aside:
    """Columns that are kept in a file, a log's together, so that memory does not grow with them.

    Args:
        names: The columns.
    """

    def __init__(self, *names: str) -> None:
        self.names = names
        self._file = TemporaryFile()  # noqa: SIM115 - gone with this object
        self._places: dict[str, tuple[int, int]] = {}

    def take(self, path: str, packed: bytes) -> None:
        """Take the columns of a log, packed as JSON."""
        self._places[path] = (self._file.seek(0, SEEK_END), len(packed))
        self._file.write(packed)

    def of(self, path: str) -> list[list[Value]]:
        """Return the cells of each row of a log."""
        start, length = self._places[path]
        self._file.seek(start)
        return list(json.loads(zlib.decompress(self._file.read(length))))


def read_rows(
    logs: Sequence[Log],
    names: Iterable[str],
    *,
    arm: str | None = None,
    processes: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
    aside: "Aside | None" = None,
) -> "DataFrame":
    """Return a row for each sample and epoch of some logs, columns of the runs in front.

    Args:
        logs: The logs, each of which is read once, sample by sample.
        names: What to read of each sample: names of `columns.SAMPLE_COLUMNS` and `columns.FOLDED`.
        arm: The name of the logs' arm; None if each is to be named.
        processes: How many read at the same time; None for as many as pay.
        progress: Called with the number of logs that were read.
        aside: Takes its columns, which are not in the frame then.

    Raises:
        DataError: A log cannot be read, or was written by an incompatible version.
    """
    names, kept = tuple(names), aside.names if aside is not None else ()
    shared: dict[str, str] = {}  # samples have questions, digests and names in common
    columns: dict[str, Any] = {
        name: array("d") if name in NUMBERS else [] for name in names if name not in kept
    }
    sizes: list[int] = []
    engine = Engine(min(processes or processes_for(logs), len(logs)))
    read = partial(_cells_of, names=names, aside=kept)
    with engine.opened([log.size for log in logs], (__name__,)):
        # Now, since it starts threads: processes are forked from this one while it has none.
        from pandas import DataFrame, Series

        done = engine.run("", read, logs, attrgetter("path"), size=attrgetter("size"), stop=True)
        for number, (grading, cells, packed) in done:
            log = logs[number]
            log.grading = grading
            if aside is not None:
                aside.take(log.path, packed)
            for name, column in columns.items():
                own = cells[name]
                if name in NUMBERS:
                    column.extend(math.nan if x is None else x for x in own)
                else:
                    column.extend(shared.setdefault(x, x) if isinstance(x, str) else x for x in own)
            sizes.append(len(own))
            progress(len(sizes))
    # Named when all were read, since reading tells how they were graded.
    arms = [arm] * len(logs) if arm is not None else arm_names(logs)
    runs = [_run(log, name) for log, name in zip(logs, arms, strict=True)]
    of_runs: dict[str, Any] = {
        name: [run[name] for run, size in zip(runs, sizes, strict=True) for _ in range(size)]
        for name in runs[0]
    }
    columns = of_runs | columns
    # Types are given and not guessed: a column may be empty in one log and full in another.
    types = dict.fromkeys(columns, object) | dict.fromkeys(NUMBERS, float)
    types |= dict.fromkeys(("offline", "scored"), bool)
    # One after the other, and not copied: they may be most of the memory.
    series = {name: Series(columns.pop(name), dtype=types[name]) for name in list(columns)}
    frame = DataFrame(series, copy=False)
    if "cut" in frame and "fixture" in frame:
        pairs = zip(frame["fixture"], frame["cut"], strict=True)
        units = [shared.setdefault(unit, unit) for unit in (f"{name}@{cut}" for name, cut in pairs)]
        frame["unit"] = Series(units, index=frame.index, dtype=object)
    if "compress_calls" in frame:
        _keep_costs_once(frame)
    return frame


def processes_for(logs: Sequence[Log]) -> int:
    """Return how many processes pay for some logs."""
    many = sum(log.size for log in logs) >= MIN_FOR_PROCESSES
    return min(cores(), MAX_PROCESSES) if many else 1


Cells = dict[str, list[Value]]
"""The cells of each column of a log's rows."""


def _cells_of(log: Log, names: Sequence[str], aside: Sequence[str]) -> tuple[Grading, Cells, bytes]:
    columns = [(name, (SAMPLE_COLUMNS | FOLDED)[name]) for name in names]
    cells: Cells = {name: [] for name in names}
    with reading(log.path):
        for sample in log.samples():
            seen = Seen(sample, log.path)
            for name, read in columns:
                cells[name].append(read(seen))
    if {"state_id", "gradings"} <= set(names):
        pairs = zip(cells["state_id"], cells["gradings"], strict=True)
        lost = sum(state is None and bool(gradings) for state, gradings in pairs)
        if lost:
            logger.warning(
                "%s: %d scored samples have no record of their state and answer, and none could be "
                "made of their events; they are left out",
                log.path,
                lost,
            )
    packed = json.dumps(list(zip(*(cells.pop(name) for name in aside), strict=True)))
    return log.grading, cells, zlib.compress(packed.encode(), level=1) if aside else b""


def _keep_costs_once(frame: "DataFrame") -> None:
    """Keep a compression's cost on one sample of its state, so that costs can be added up.

    It is the one of them that carried it out; or, where that was done for them in an earlier epoch,
    or a run was killed before that sample was done, the first one.
    """
    known = frame.loc[frame["state_id"].notna(), ["log_path", "state_id", "computed_here"]]
    known = known.sort_values("computed_here", ascending=False, kind="stable")
    carriers = known.drop_duplicates(["log_path", "state_id"]).index
    costs = [name for name in frame if str(name).startswith("compress_")]
    frame.loc[~frame.index.isin(carriers), costs] = float("nan")


def _run(log: Log, arm: str) -> dict[str, Any]:
    """Return the columns that are the same in all rows of a log."""
    spec = log.header.eval
    compresses, grades = log.models("compressor"), log.models("grader")
    return {
        "log": log.name,
        "log_path": log.path,
        "eval_id": spec.eval_id,
        "created": spec.created,
        "run_status": log.header.status,
        "arm": arm,
        "compressor": log.compressor,
        "compressor_args": json.dumps(arguments_of(log), sort_keys=True),
        "settings": settings_of(log),
        "model": spec.model,
        "compressor_model": ", ".join(compresses),
        "graders": ", ".join(grades),
        "answered_by": answered_by(log),
        "graders_settings": graders_of(log),
        "offline": all(each.startswith("embedded/") for each in (spec.model, *compresses, *grades)),
        "version": str(spec.task_version),
    }
