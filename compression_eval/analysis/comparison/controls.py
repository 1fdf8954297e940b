"""The controls of a comparison: what a reader answers from nothing and from everything.

A reader that knows little more from the whole history than from none of it cannot show that
nothing was lost. So the arms ``none`` and ``full`` stand beside both sides: among the logs that
were named, in their folders, or in stored logs. They must have answered the same probes by the same
reader and have been graded alike.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai.model import GenerateConfig, ModelConfig

from compression_eval.analysis.arms import address, answered_by, decisive, graders_of
from compression_eval.analysis.comparison.sides import (
    CONTROLS,
    Side,
    read_samples,
    release_of,
    releases,
    unfit_controls,
)
from compression_eval.analysis.logs import (
    Log,
    find_logs,
    header_of,
    is_folder,
    is_ours,
    local_path,
    names_in,
    one_per_run,
)
from compression_eval.errors import DataError
from compression_eval.text.printable import printable

_OF_THE_TASK = (
    *("fixtures", "probes", "probe_types", "shard", "cut", "criteria", "grader_context"),
    "language",
)
"""Arguments that a control shares with the arms beside it."""

MAX_WORD = 4_000


@dataclass(frozen=True)
class Controls:
    """The arms ``none`` and ``full`` by a side's reader."""

    floor: Side
    ceiling: Side


def with_controls(
    sides: tuple[Side, Side], named: Sequence[str], stored: Sequence[str], *, regrading: bool
) -> tuple[Side, Side]:
    """Return both sides with their controls, or with the reason why they have none.

    Args:
        sides: Both sides.
        named: The logs and folders in which the sides were found.
        stored: Logs and folders of the controls alone; if empty they are looked for beside the
            sides.
        regrading: Whether everything is graded anew, so that how it was graded does not matter.

    Raises:
        DataError: Stored controls do not fit; the text names what differs.
    """
    if stored:
        beside = one_per_run(find_logs(stored))
    else:
        beside = [log for side in sides for log in side.beside]
    known: dict[tuple[str, ...], Side] = {}
    found = []
    near: list[Log] | None = None  # read only where those that were named do not do
    for side in sides:
        controls = _fitting(side, beside, known, regrading=regrading)
        if stored and isinstance(controls, str):
            raise DataError(f"--controls: {', '.join(stored)}: {controls}")
        if isinstance(controls, str):
            if near is None:
                near = one_per_run([*beside, *_in_folders(sides, named)])
            controls = _fitting(side, near, known, regrading=regrading)
        missing = controls if isinstance(controls, str) else ""
        own = None if isinstance(controls, str) else controls
        found.append(replace(side, controls=own, without_controls=missing))
    return found[0], found[1]


def _in_folders(sides: Iterable[Side], named: Iterable[str]) -> Iterable[Log]:
    """Return the controls in the folders of logs that were named one by one."""
    folders = {
        str(local_path(path).parent)
        for side in sides
        for path in (log.path for log in side.logs)
        if local_path(path).is_file()
    }
    folders -= {str(Path(path)) for path in named if is_folder(path)}
    logs = []
    for path in sorted({path for folder in folders for path in names_in(folder)}):
        with suppress(DataError):  # nobody asked for this log
            log = header_of(path)
            if is_ours(log.header) and log.compressor in CONTROLS and log.complete:
                logs.append(log)
    return one_per_run(logs)


def _fitting(
    side: Side, beside: Sequence[Log], known: dict[tuple[str, ...], Side], *, regrading: bool
) -> Controls | str:
    """Return a side's controls, or why there are none."""
    reader, graders = answered_by(side.logs[0]), graders_of(side.logs[0])
    pair = []
    for name in CONTROLS:
        own = [log for log in beside if log.compressor == name]
        if not own:
            return f"no run of the arm {name!r}"
        # What is left if none fits says what does not.
        own = [log for log in own if log.complete] or own
        own = [log for log in own if release_of(log) in releases(side)] or own
        own = [log for log in own if answered_by(log) == reader] or own
        logs = tuple([log for log in own if regrading or graders_of(log) == graders] or own)
        paths = tuple(log.path for log in logs)
        if paths not in known:
            known[paths] = Side(name, name, logs, read_samples(logs, name))
        if unfit := unfit_controls(side, known[paths], regrading=regrading):
            return f"the runs of {name!r} do not fit {side.label}: {unfit}"
        pair.append(known[paths])
    return Controls(*pair)


def command_for(side: Side) -> str:
    """Return the command that makes a side's controls, in the folder of its logs."""
    log = side.logs[0]
    spec = log.header.eval
    words = []
    for name in _OF_THE_TASK:
        value = (spec.task_args_passed or spec.task_args or {}).get(name)
        if value is not None:
            words += ["-T", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    words += ["--model", spec.model]
    for name, value in decisive(spec.model_args).items():
        words += ["-M", f"{name}={_plain(value)}"]
    if spec.model_base_url:
        words += ["--model-base-url", address(spec.model_base_url)]
    for name, value in decisive(_given(spec.model_generate_config)).items():
        words += [f"--{name.replace('_', '-')}", _plain(value)]
    bound = (spec.model_roles or {}).get("grader")
    graders = bound if isinstance(bound, list) else [bound] if bound else []
    if graders:
        listed = [_role(each) for each in graders]
        plain = all(isinstance(each, str) for each in listed)
        value = ",".join(map(str, listed)) if plain else json.dumps(listed)
        words += ["--model-role", f"grader={value}"]
    folder = local_path(log.path).parent if "://" not in log.path else log.path.rpartition("/")[0]
    words += ["--epochs", "1", "--log-dir", str(folder)]
    shown = " ".join(shlex.quote(printable(word, MAX_WORD)) for word in words)
    return (
        f"for arm in {' '.join(CONTROLS)}; do inspect eval compression_eval/compression "
        f"-T compressor=$arm {shown}; done"
    )


def _role(model: ModelConfig) -> str | dict[str, Any]:
    settings = decisive(_given(model.config))
    arguments = decisive(model.args)
    arguments |= {"base_url": address(model.base_url)} if model.base_url else {}
    settings |= {"model_args": arguments} if arguments else {}
    return {"model": model.model, **settings} if settings else model.model


def _given(config: GenerateConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude_none=True)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
