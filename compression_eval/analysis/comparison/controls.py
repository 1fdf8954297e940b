"""The controls of a comparison: what a reader answers from nothing and from everything.

A reader that knows little more from the whole history than from none of it cannot show that
nothing was lost. So each side is compared with the arms ``none`` and ``full``. They are taken from
the logs that were named, from their folders, or from stored logs, and must have answered the same
probes by the same reader and have been graded alike.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai.model import ModelConfig

from compression_eval.analysis.arms import address, answered_by, decisive, given, graders_of
from compression_eval.analysis.comparison.sides import (
    CONTROLS,
    Arm,
    read_arm,
    release_of,
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

MAX_WORD = 4_000


@dataclass(frozen=True)
class Controls:
    """The arms ``none`` and ``full`` by a side's reader."""

    floor: Arm
    ceiling: Arm


def controls_of(
    sides: Sequence[Arm], beside: Sequence[Log], named: Sequence[str], stored: Sequence[str]
) -> list[Controls | str]:
    """Return the controls of each side, or why it has none.

    Args:
        sides: Both sides.
        beside: Logs of controls among those that were named.
        named: What was named: logs and folders.
        stored: Logs and folders of the controls alone; if empty they are looked for next to the
            sides.

    Raises:
        DataError: Stored controls do not fit; the text names what differs.
    """
    if stored:
        beside = one_per_run(find_logs(stored))
    known: dict[tuple[str, ...], Arm] = {}
    found = []
    near: list[Log] | None = None  # read only where those that were named do not do
    for side in sides:
        controls = _fitting(side, beside, known)
        if stored and isinstance(controls, str):
            raise DataError(f"--controls: {', '.join(stored)}: {controls}")
        if isinstance(controls, str):
            if near is None:
                near = one_per_run([*beside, *_in_folders(sides, named)])
            controls = _fitting(side, near, known)
        found.append(controls)
    return found


def _in_folders(sides: Iterable[Arm], named: Iterable[str]) -> Iterable[Log]:
    """Return the controls in the folders of logs that were named one by one."""
    paths = [local_path(log.path) for side in sides for log in side.logs]
    folders = {str(path.parent) for path in paths if path.is_file()}
    folders -= {str(Path(path)) for path in named if is_folder(path)}
    logs = []
    for path in sorted({path for folder in folders for path in names_in(folder)}):
        with suppress(DataError):  # nobody asked for this log
            log = header_of(path)
            if is_ours(log.header) and log.compressor in CONTROLS and log.complete:
                logs.append(log)
    return logs


def _fitting(side: Arm, beside: Sequence[Log], known: dict[tuple[str, ...], Arm]) -> Controls | str:
    """Return a side's controls, or why there are none."""
    reader, graders = answered_by(side.logs[0]), graders_of(side.logs[0])
    pair = []
    for name in CONTROLS:
        own = [log for log in beside if log.compressor == name]
        if not own:
            return f"no run of the arm {name!r}"
        # What is left if none fits says what does not.
        own = [log for log in own if log.complete] or own
        own = [log for log in own if release_of(log) in side.releases] or own
        own = [log for log in own if answered_by(log) == reader] or own
        own = [log for log in own if graders_of(log) == graders] or own
        paths = tuple(log.path for log in own)
        if paths not in known:
            known[paths] = read_arm(name, name, own)
        if unfit := unfit_controls(side, known[paths]):
            return f"the runs of {name!r} do not fit {side.label}: {unfit}"
        pair.append(known[paths])
    return Controls(*pair)


def command_for(side: Arm) -> str:
    """Return the command that makes a side's controls, in the folder of its logs."""
    # Late: it imports every strategy.
    from compression_eval.arguments import NOT_OF_CONTROLS, ArgumentFields

    log = side.logs[0]
    spec = log.header.eval
    words = []
    for name, field in ArgumentFields.model_fields.items():
        value = (spec.task_args_passed or spec.task_args or {}).get(name)
        if value is not None and NOT_OF_CONTROLS not in field.metadata:
            words += ["-T", f"{name}={_plain(value)}"]
    words += ["--model", spec.model]
    for name, value in decisive(spec.model_args).items():
        words += ["-M", f"{name}={_plain(value)}"]
    if spec.model_base_url:
        words += ["--model-base-url", address(spec.model_base_url)]
    for name, value in decisive(given(spec.model_generate_config)).items():
        words += [f"--{name.replace('_', '-')}", _plain(value)]
    bound = (spec.model_roles or {}).get("grader")
    if graders := [_role(each) for each in (bound if isinstance(bound, list) else [bound]) if each]:
        plain = all(isinstance(each, str) for each in graders)
        value = ",".join(map(str, graders)) if plain else json.dumps(graders)
        words += ["--model-role", f"grader={value}"]
    folder = local_path(log.path).parent if "://" not in log.path else log.path.rpartition("/")[0]
    words += ["--epochs", "1", "--log-dir", str(folder)]
    shown = " ".join(shlex.quote(printable(word, MAX_WORD)) for word in words)
    return (
        f"for arm in {' '.join(CONTROLS)}; do inspect eval compression_eval/compression "
        f"-T compressor=$arm {shown}; done"
    )


def _role(model: ModelConfig) -> str | dict[str, Any]:
    settings = decisive(given(model.config))
    arguments = decisive(model.args)
    arguments |= {"base_url": address(model.base_url)} if model.base_url else {}
    settings |= {"model_args": arguments} if arguments else {}
    return {"model": model.model, **settings} if settings else model.model


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
