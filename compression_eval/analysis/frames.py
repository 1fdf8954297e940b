"""Logs as tidy pandas frames: one row per sample, criterion, fact or state.

They are made with Inspect's own dataframe functions, so that columns of one's own can be joined
by ``sample_uuid`` and ``eval_id``. Every figure of a report or comparison comes from them.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.logs import Log, find_logs
from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

Logs = str | Path | Sequence[str | Path]

_UNUSED = {"messages", "events", "attachments", "output"}
"""Parts of a sample that no column is made of: most of a log, and not read."""


def samples_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample and epoch.

    Columns, beside those of the run (`log`, `log_path`, `eval_id`, `created`, `arm`, `compressor`,
    `compressor_args` as JSON, `model`, `compressor_model`, `graders`, `offline`, `run_status`,
    `version`), are those of `sample_columns.SAMPLE_COLUMNS`, and ``unit`` (the fixture at its
    cut). Scores are 0 to 5, `fact_recall`, `fact_survival` and `tokens_removed` shares of 1,
    tokens those of the log's counter, times seconds. A value that was not graded, or that failed,
    is missing and never 0; `failure` says why.

    `compress_…` columns stand on the one sample that carried a compression out and are missing
    on those that shared it, so that they can be added up.

    Args:
        logs: Paths of logs or of folders with logs.

    Raises:
        DataError: There are none, or one is no finished log of this eval.
    """
    from compression_eval.analysis.sample_columns import SAMPLE_COLUMNS

    return _table(_found(logs), SAMPLE_COLUMNS)


def criteria_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample, criterion, grading and grader.

    Columns: those that name the run and sample (as in `samples_frame`), `grading` (0 for the
    first, 1 and up for gradings that were appended), `criterion`, `dimension`, `grader` (``panel``
    for what the graders came to together), `score` (0 to 5, what counts), `graded` (before the
    mechanical rules) and `reasoning`.

    Args:
        logs: As in `samples_frame`.

    Raises:
        DataError: As `samples_frame`.
    """
    from compression_eval.analysis.criteria import CRITERIA, unfolded
    from compression_eval.analysis.sample_columns import SAMPLE_COLUMNS

    keys = (
        "sample",
        "sample_uuid",
        "epoch",
        "fixture",
        "cut",
        "probe_id",
        "probe_type",
        "state_id",
    )
    columns = {name: SAMPLE_COLUMNS[name] for name in keys} | {CRITERIA: _criteria_of()}
    return unfolded(_table(_found(logs), columns))


def facts_frame(logs: Logs) -> "DataFrame":
    """Return one row per expected fact, sample and epoch; columns are those of `facts.FactRow`.

    Args:
        logs: As in `samples_frame`.

    Raises:
        DataError: As `samples_frame`.
    """
    from dataclasses import asdict, fields

    from pandas import DataFrame

    from compression_eval.analysis.facts import FactRow, fact_rows

    found = _found(logs)
    rows = [asdict(row) for row in fact_rows(found)]
    frame = DataFrame(rows, columns=[field.name for field in fields(FactRow)])
    names = {log.name: arm for log, arm in zip(found, arm_names(found), strict=True)}
    frame.insert(0, "arm", frame["log"].map(names))
    return frame


def states_frame(logs: Logs) -> "DataFrame":
    """Return one row per compression: its size, cost and how it ended.

    Args:
        logs: As in `samples_frame`.

    Raises:
        DataError: As `samples_frame`.
    """
    samples = samples_frame(logs)
    samples = samples[samples["state_id"].notna()].sort_values("computed_here", ascending=False)
    kept = (
        *("log", "log_path", "eval_id", "arm", "compressor", "model", "fixture", "cut", "unit"),
        *("cycles", "task_type", "language", "length", "replicate", "state_id", "state_status"),
        *("failure", "tokens_original", "tokens_state", "tokens_removed", "compress_calls"),
        *("compress_input_tokens", "compress_output_tokens", "compress_seconds"),
    )
    first = samples.drop_duplicates(["log_path", "state_id"])[list(kept)]
    return first.sort_values(["log_path", "unit", "replicate"]).reset_index(drop=True)


def arm_names(logs: Sequence[Log]) -> list[str]:
    """Return the name that tables give to each log's arm.

    It is the strategy's name, with what tells it from the other logs where that is not enough:
    its arguments that differ, then the model. Logs of one arm have one name.
    """
    plain = [log.compressor or log.name for log in logs]
    names = list(plain)
    described = [_arguments(log) for log in logs]
    for index, name in enumerate(plain):
        alike = [other for other, each in zip(described, plain, strict=True) if each == name]
        differing = [
            key
            for key in described[index]
            if len({json.dumps(other.get(key), sort_keys=True) for other in alike}) > 1
        ]
        if differing:
            own = described[index]
            names[index] = f"{name} ({', '.join(_argument(key, own[key]) for key in differing)})"
    models = Counter((name, log.header.eval.model) for name, log in zip(names, logs, strict=True))
    several = Counter(name for name, _ in models)
    return [
        f"{name} [{log.header.eval.model}]" if several[name] > 1 else name
        for name, log in zip(names, logs, strict=True)
    ]


def _argument(key: str, value: Any) -> str:
    if isinstance(value, str) and len(value) > 20:
        from compression_eval.fixtures.digests import digest

        return f"{key} {digest(value)[:8]}"
    return f"{key}={value}"


def _arguments(log: Log) -> dict[str, Any]:
    described = (log.header.eval.metadata or {}).get("compressor")
    found = described.get("arguments") if isinstance(described, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _found(logs: Logs) -> list[Log]:
    paths = [logs] if isinstance(logs, str | Path) else list(logs)
    if not paths:
        raise DataError("logs: none were named")
    return find_logs([str(path) for path in paths])


def _criteria_of() -> Any:
    from compression_eval.analysis.criteria import as_cell

    return as_cell


def _table(logs: Sequence[Log], columns: Any) -> "DataFrame":
    """Return the rows of some logs with the columns of their runs in front."""
    from inspect_ai.analysis import samples_df
    from pandas import concat, to_numeric

    from compression_eval.analysis.sample_columns import NUMBERS, inspect_columns

    parts = []
    for log, arm in zip(logs, arm_names(logs), strict=True):
        try:
            part = samples_df(
                log.path, inspect_columns(columns), quiet=True, exclude_fields=set(_UNUSED)
            )
        except (ValueError, OSError, KeyError) as error:
            raise DataError(f"{log.path}: {' '.join(str(error).split())[:200]}") from error
        part = part.reindex(columns=list(columns)).astype(object)
        part = part.where(part.notna(), None)
        for position, (name, value) in enumerate(_run(log, arm).items()):
            part.insert(position, name, value)
        parts.append(part)
    frame = concat(parts, ignore_index=True)
    # A column may be empty in one log and full in another, so types are given and not guessed.
    for name in [name for name in dict.fromkeys(NUMBERS) if name in frame]:
        frame[name] = to_numeric(frame[name], errors="coerce").astype(float)
    if "scored" in frame:
        frame["scored"] = frame["scored"].astype(bool)
    if "cut" in frame and "fixture" in frame:
        frame["unit"] = frame["fixture"].astype(str) + "@" + frame["cut"].astype(str)
    return frame


def _run(log: Log, arm: str) -> dict[str, Any]:
    spec = log.header.eval
    metadata = spec.metadata or {}
    models = metadata.get("models") or {}
    return {
        "log": log.name,
        "log_path": log.path,
        "eval_id": spec.eval_id,
        "created": spec.created,
        "run_status": log.header.status,
        "arm": arm,
        "compressor": log.compressor,
        "compressor_args": json.dumps(_arguments(log), sort_keys=True),
        "model": spec.model,
        "compressor_model": models.get("compresses") or spec.model,
        "graders": ", ".join(str(name) for name in models.get("grades") or []),
        "offline": "note" in metadata,
        "version": str(spec.task_version),
    }
