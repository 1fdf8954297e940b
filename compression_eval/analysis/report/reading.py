"""Every frame that a report is made of, from one reading of each log."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING

from compression_eval.analysis.arms import arm_names
from compression_eval.analysis.columns import CRITERIA, FACTS, FOLDED, SAMPLE_COLUMNS
from compression_eval.analysis.comparison.measures import with_states
from compression_eval.analysis.frames import (
    joined,
    rows_of_log,
    states_of,
    unfold_criteria,
    unfold_facts,
)
from compression_eval.analysis.logs import Log

if TYPE_CHECKING:
    from pandas import DataFrame

_FOLDED = (CRITERIA, FACTS)

_WORTH_PROCESSES = 1500
"""Samples from which on a second process pays, which takes seconds to start."""


@dataclass(frozen=True)
class Frames:
    """The frames of `compression_eval.analysis` for one list of logs."""

    samples: "DataFrame"
    criteria: "DataFrame"
    facts: "DataFrame"
    states: "DataFrame"


def read_frames(
    logs: Sequence[Log], *, processes: int = 2, progress: Callable[[int], None] = lambda _: None
) -> Frames:
    """Read logs, each of them once.

    Args:
        logs: At least one.
        processes: How many read at the same time, if there are enough samples for it to pay.
        progress: Called with the number of logs read so far.

    Raises:
        DataError: A log cannot be read, or was written by an incompatible version.
    """
    parts: list[DataFrame] = []
    for part in _parts(list(zip(logs, arm_names(logs), strict=True)), processes):
        parts.append(part)
        progress(len(parts))
    rows = joined(parts)
    samples = with_states(rows.drop(columns=list(_FOLDED)))
    names = ["log_path", "arm", "sample", "sample_uuid", "epoch", "unit", "probe_id"]
    return Frames(
        samples=samples,
        criteria=unfold_criteria(rows[[*names, CRITERIA]]),
        facts=unfold_facts(rows),
        states=states_of(samples),
    )


def _parts(arms: Sequence[tuple[Log, str]], processes: int) -> Iterator["DataFrame"]:
    results = [log.header.results for log, _ in arms]
    samples = sum(result.total_samples for result in results if result)
    if processes < 2 or len(arms) < 2 or samples < _WORTH_PROCESSES:
        yield from map(_part, arms)
        return
    # Started afresh and not forked: the parent has threads.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_part, arms)


def _part(arm: tuple[Log, str]) -> "DataFrame":
    return rows_of_log(*arm, SAMPLE_COLUMNS | {name: FOLDED[name] for name in _FOLDED})
