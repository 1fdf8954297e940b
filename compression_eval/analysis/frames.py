"""Logs as tidy pandas frames: one row per sample, criterion, fact or state.

They are made with Inspect's own dataframe functions, so that columns of one's own can be joined
by ``sample_uuid`` and ``eval_id``. Every figure of a report or comparison comes from them.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.arms import (
    answered_by,
    arguments_of,
    arm_names,
    graders_of,
    settings_of,
)
from compression_eval.analysis.logs import Log, find_logs, one_per_run
from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

    from compression_eval.analysis.sample_columns import Regradings

Logs = str | Path | Sequence[str | Path]

_UNUSED = {"messages", "events", "attachments"}
"""Parts of a sample that no column is made of: most of a log, and not read."""


def samples_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample and epoch.

    Columns, beside those of the run (`log`, `log_path`, `eval_id`, `created`, `arm`, `compressor`,
    `compressor_args` as JSON, `settings` for people, `model`, `compressor_model`, `graders`,
    `answered_by` and `graders_settings` (models with their settings, secrets as digests),
    `offline`, `run_status`, `version`), are those of `sample_columns.SAMPLE_COLUMNS`, and ``unit``
    (the fixture at its cut). Scores are 0 to 5, `fact_recall`, `fact_survival`,
    the same as models read it (`fact_recall_read`, `fact_survival_read`; `fact_agreement` of
    look-up and reader on the state) and `tokens_removed` shares of 1, tokens those of the log's
    counter, times seconds. A value that was not graded, or that failed, is missing and never 0;
    `failure` says why.

    `compress_…` columns stand on one sample of each state, as a rule the one that carried the
    compression out, and are missing on the others, so that they can be added up.

    Args:
        logs: Paths of logs or of folders with logs. Of several logs of one run only one is read;
            see `logs.one_per_run`.

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
    from compression_eval.analysis.criteria import CRITERIA, as_cell, unfolded

    return unfolded(_table(_found(logs), _keys() | {CRITERIA: as_cell}))


def gradings_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample and grading: an answer may be graded several times.

    Columns: those that name the run and sample, `grading` (0 for the first, 1 and up for those
    that were appended), `graded_by`, how it was set up (`criteria`, `grader_context`, `language`,
    `rubric_digest`), `knowledge`, `overall` and the dimensions (0 to 5, missing where there is no
    value).

    Args:
        logs: As in `samples_frame`.

    Raises:
        DataError: As `samples_frame`.
    """
    from compression_eval.analysis.gradings import GRADINGS, as_cell, unfolded

    return unfolded(_table(_found(logs), _keys() | {GRADINGS: as_cell}))


def facts_frame(logs: Logs) -> "DataFrame":
    """Return one row per expected fact, sample and epoch; columns are those of `facts.FactRow`.

    Args:
        logs: As in `samples_frame`.

    Raises:
        DataError: As `samples_frame`.
    """
    from compression_eval.analysis.fact_columns import FACTS, as_cell, unfolded

    return unfolded(_table(_found(logs), {"sample": _keys()["sample"], FACTS: as_cell}))


def states_frame(logs: Logs) -> "DataFrame":
    """Return one row per compression: its size, cost and how it ended.

    Args:
        logs: As in `samples_frame`.

    Raises:
        DataError: As `samples_frame`.
    """
    return states_of(samples_frame(logs))


def states_of(samples: "DataFrame") -> "DataFrame":
    """Return the rows of `states_frame` from those of `samples_frame`."""
    first = samples[samples["compress_calls"].notna()]
    kept = (
        *("log", "log_path", "eval_id", "arm", "compressor", "model", "fixture", "cut", "unit"),
        *(
            "cycles",
            "task_type",
            "language",
            "length",
            "replicate",
            "state_id",
            "state_status",
            "suspect",
        ),
        *("failure", "tokens_original", "tokens_state", "tokens_removed", "compress_calls"),
        *("compress_input_tokens", "compress_output_tokens", "compress_seconds"),
    )
    return first[list(kept)].sort_values(["log_path", "unit", "replicate"]).reset_index(drop=True)


def _found(logs: Logs) -> list[Log]:
    paths = [logs] if isinstance(logs, str | Path) else list(logs)
    if not paths:
        raise DataError("logs: none were named")
    return one_per_run(find_logs([str(path) for path in paths]))


def _keys() -> dict[str, Any]:
    """Return the columns that name a sample."""
    from compression_eval.analysis.sample_columns import SAMPLE_COLUMNS

    names = ("sample", "sample_uuid", "epoch", "fixture", "cut", "probe_id", "probe_type")
    return {name: SAMPLE_COLUMNS[name] for name in (*names, "replicate", "state_id")}


def _table(logs: Sequence[Log], columns: Any) -> "DataFrame":
    """Return the rows of some logs with the columns of their runs in front."""
    arms = zip(logs, arm_names(logs), strict=True)
    return joined([rows_of_log(log, arm, columns) for log, arm in arms])


def rows_of_log(
    log: Log, arm: str, columns: Any, regradings: "Regradings | None" = None
) -> "DataFrame":
    """Return the rows of one log, its types not settled yet; `joined` does that.

    Args:
        log: The log.
        arm: Name of its arm.
        columns: What to read of each sample, by name, as in `sample_columns.SAMPLE_COLUMNS`.
        regradings: What takes the place of the rubric's scores in the log.

    Raises:
        DataError: The log cannot be read.
    """
    from inspect_ai.analysis import samples_df

    from compression_eval.analysis.sample_columns import inspect_columns

    try:
        part = samples_df(
            log.path,
            inspect_columns(columns, log.path, regradings),
            quiet=True,
            exclude_fields=set(_UNUSED),
        )
    except (ValueError, OSError, KeyError) as error:
        raise DataError(f"{log.path}: {' '.join(str(error).split())[:200]}") from error
    part = part.reindex(columns=list(columns)).astype(object)
    part = part.where(part.notna(), None)
    if {"state_id", "gradings"} <= set(columns):
        log.warn_of_lost(int((part["state_id"].isna() & (part["gradings"] > 0)).sum()))
    for position, (name, value) in enumerate(_run(log, arm).items()):
        part.insert(position, name, value)
    return part


def joined(parts: Sequence["DataFrame"]) -> "DataFrame":
    """Return the rows of several logs as one frame."""
    from pandas import concat, to_numeric

    from compression_eval.analysis.sample_columns import NUMBERS

    frame = concat(list(parts), ignore_index=True)
    # A column may be empty in one log and full in another, so types are given and not guessed.
    for name in [name for name in dict.fromkeys(NUMBERS) if name in frame]:
        frame[name] = to_numeric(frame[name], errors="coerce").astype(float)
    if "scored" in frame:
        frame["scored"] = frame["scored"].astype(bool)
    if "cut" in frame and "fixture" in frame:
        frame["unit"] = frame["fixture"].astype(str) + "@" + frame["cut"].astype(str)
    if "compress_calls" in frame:
        _keep_costs_once(frame)
    return frame


def _keep_costs_once(frame: "DataFrame") -> None:
    """Leave what a compression cost on one sample of its state, so that it can be added up.

    It is the one that carried it out; or, where a run was killed before that sample was done, the
    first one.
    """
    known = frame[frame["state_id"].notna()]
    known = known.sort_values("computed_here", ascending=False, kind="stable")
    carriers = known.drop_duplicates(["log_path", "state_id"]).index
    costs = [name for name in frame if str(name).startswith("compress_")]
    frame.loc[~frame.index.isin(carriers), costs] = float("nan")


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
        "compressor_args": json.dumps(arguments_of(log), sort_keys=True),
        "settings": settings_of(log),
        "model": spec.model,
        "compressor_model": models.get("compresses") or spec.model,
        "graders": ", ".join(str(name) for name in models.get("grades") or []),
        "answered_by": answered_by(log),
        "graders_settings": graders_of(log),
        "offline": "note" in metadata,
        "version": str(spec.task_version),
    }
