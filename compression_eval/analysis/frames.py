"""Logs as tidy pandas frames: one row per sample, criterion, fact or state.

They are made with Inspect's own dataframe functions, so that columns of one's own can be joined
by ``sample_uuid`` and ``eval_id``. Every figure of a report or comparison comes from them.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.logs import Log, find_logs, one_per_run
from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

Logs = str | Path | Sequence[str | Path]

_UNUSED = {"messages", "events", "attachments"}
"""Parts of a sample that no column is made of: most of a log, and not read."""

_LONGEST_ARGUMENT = 40
"""Characters of a text that a strategy was given; of a longer one the beginning is shown."""


def samples_frame(logs: Logs) -> "DataFrame":
    """Return one row per sample and epoch.

    Columns, beside those of the run (`log`, `log_path`, `eval_id`, `created`, `arm`, `compressor`,
    `compressor_args` as JSON, `settings` for people, `model`, `compressor_model`, `graders`,
    `offline`, `run_status`, `version`), are those of `sample_columns.SAMPLE_COLUMNS`, and ``unit``
    (the fixture at its cut). Scores are 0 to 5, `fact_recall`, `fact_survival` and
    `tokens_removed` shares of 1, tokens those of the log's counter, times seconds. A value that was
    not graded, or that failed, is missing and never 0; `failure` says why.

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
    `rubric_digest`), `overall` and the dimensions (0 to 5, missing where there is no value).

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


def arm_names(logs: Sequence[Log]) -> list[str]:
    """Return the name that tables give to each log's arm.

    It is the strategy's name, with what tells it from the other logs where that is not enough:
    its arguments that differ and have a value, then the model. A prompt is named by its file.
    Logs of one arm have one name.
    """
    plain = [log.compressor or log.name for log in logs]
    names = list(plain)
    described = [{**_arguments(log), **_chained(log)} for log in logs]
    for index, name in enumerate(plain):
        alike = [place for place, each in enumerate(plain) if each == name]
        differing = [
            key
            for key in described[index]
            if len({json.dumps(described[at].get(key), sort_keys=True) for at in alike}) > 1
        ]
        shown = _shown(logs[index], {key: described[index][key] for key in differing})
        if shown:
            names[index] = f"{name} ({', '.join(shown)})"
    # Two files of one name may hold different prompts.
    prompts = [str(arguments.get("prompt")) for arguments in described]
    for index, name in enumerate(list(names)):
        if len({text for text, other in zip(prompts, names, strict=True) if other == name}) > 1:
            from compression_eval.fixtures.digests import digest

            names[index] = f"{name} #{digest(prompts[index])[:6]}"
    models = Counter((name, log.header.eval.model) for name, log in zip(names, logs, strict=True))
    several = Counter(name for name, _ in models)
    return [
        f"{name} [{log.header.eval.model}]" if several[name] > 1 else name
        for name, log in zip(names, logs, strict=True)
    ]


def settings_of(log: Log) -> str:
    """Return every argument of a log's strategy that has a value, for people."""
    return ", ".join(_shown(log, _arguments(log)))


def prompt_file(log: Log) -> str | None:
    """Return the name of the file that a log's prompt came from, if it came from one."""
    given = (log.header.eval.task_args or {}).get("prompt")
    # The folders before it are those of somebody's machine, and may be of another system.
    return re.split(r"[/\\]", given)[-1] if isinstance(given, str) else None


def _shown(log: Log, arguments: Mapping[str, Any]) -> list[str]:
    """Return arguments for people: a prompt by its file's name, or by how it begins."""
    found = []
    for key, value in arguments.items():
        file = prompt_file(log) if key == "prompt" else None
        if file:
            found.append(f"{key} {file}")
        elif isinstance(value, str) and len(value) > _LONGEST_ARGUMENT:
            found.append(f"{key} “{' '.join(value.split())[:_LONGEST_ARGUMENT]}…”")
        elif value is not None:
            found.append(f"{key}={value if isinstance(value, str) else json.dumps(value)}")
    return found


def _arguments(log: Log) -> dict[str, Any]:
    described = (log.header.eval.metadata or {}).get("compressor")
    found = described.get("arguments") if isinstance(described, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _chained(log: Log) -> dict[str, Any]:
    """Return how many compressions each state has been through, which makes another arm of it."""
    found = [step.params.get("cycles") for step in log.header.plan.steps]
    return {"cycles": next((cycles for cycles in found if isinstance(cycles, int)), 1)}


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


def rows_of_log(log: Log, arm: str, columns: Any) -> "DataFrame":
    """Return the rows of one log, its types not settled yet; `joined` does that.

    Args:
        log: The log.
        arm: Name of its arm.
        columns: What to read of each sample, by name, as in `sample_columns.SAMPLE_COLUMNS`.

    Raises:
        DataError: The log cannot be read.
    """
    from inspect_ai.analysis import samples_df

    from compression_eval.analysis.sample_columns import inspect_columns

    try:
        part = samples_df(
            log.path, inspect_columns(columns, log.path), quiet=True, exclude_fields=set(_UNUSED)
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
        "compressor_args": json.dumps(_arguments(log), sort_keys=True),
        "settings": settings_of(log),
        "model": spec.model,
        "compressor_model": models.get("compresses") or spec.model,
        "graders": ", ".join(str(name) for name in models.get("grades") or []),
        "offline": "note" in metadata,
        "version": str(spec.task_version),
    }
