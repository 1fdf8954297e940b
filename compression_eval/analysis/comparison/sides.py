"""The two sides of a comparison: which logs they are, and that each is one arm."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from compression_eval.analysis import criteria, fact_columns, gradings
from compression_eval.analysis.arms import ARGUMENT, arm_names, arm_settings
from compression_eval.analysis.frames import joined, rows_of_log
from compression_eval.analysis.logs import Log, find_logs, one_per_run
from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

    from compression_eval.analysis.sample_columns import Regradings


_GRADING = ("graded by", "criteria", "grader_context")
"""Settings of an arm that say how it was graded."""


@dataclass(frozen=True)
class Regraded:
    """How a side was graded again for the comparison alone."""

    graders: tuple[str, ...]
    answers: int
    failed: int
    """Answers that no grader came to a result on."""
    calls: int


@dataclass(frozen=True)
class Side:
    """The logs of one arm with their samples."""

    label: str
    """``base`` or ``new``."""
    arm: str
    """The arm's name in tables."""
    logs: tuple[Log, ...]
    samples: "DataFrame"
    """As from `samples_frame`, one row per sample and epoch, with what is folded into a cell."""
    regraded: Regraded | None = None
    """None where the grades are those of the logs."""

    @cached_property
    def facts(self) -> "DataFrame":
        """As from `facts_frame`."""
        return fact_columns.unfolded(self.samples)

    @cached_property
    def criteria(self) -> "DataFrame":
        """One row per criterion and grading: `unit`, `probe_id`, and as from `criteria_frame`."""
        return criteria.unfolded(self.samples[["unit", "probe_id", criteria.CRITERIA]])

    @cached_property
    def gradings(self) -> "DataFrame":
        """One row per grading: names of the sample, and as from `gradings_frame`."""
        names = ["unit", "sample", "sample_uuid", "log_path", "epoch", gradings.GRADINGS]
        return gradings.unfolded(self.samples[names])

    @property
    def paths(self) -> list[str]:
        """Where the logs are."""
        return [log.path for log in self.logs]

    @cached_property
    def settings(self) -> dict[str, str]:
        """What the arm is: every setting by name, as text."""
        found = arm_settings(self.logs[0])
        if self.regraded is None:
            return found
        # The same for both sides now, whatever the logs were graded by and how.
        others = {name: value for name, value in found.items() if name not in _GRADING}
        return others | {"graded by": ", ".join(self.regraded.graders)}

    @property
    def versions(self) -> list[str]:
        """Versions of the task: a digest of all that decides its results."""
        return sorted({str(log.header.eval.task_version) for log in self.logs})

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.logs[0].header.eval.model

    @property
    def graders(self) -> list[str]:
        """What graded it, as the samples say."""
        return sorted({str(name) for name in self.samples["graded_by"].dropna()})

    @property
    def states(self) -> int:
        """How many compressions there were."""
        known = self.samples[self.samples["state_id"].notna()]
        return len(known.drop_duplicates(["log_path", "unit", "replicate"]))


def load_sides(
    base: Sequence[str],
    new: Sequence[str],
    base_arm: str | None,
    new_arm: str | None,
    *,
    scored: bool = True,
) -> tuple[Side, Side]:
    """Return both sides.

    Args:
        base: Logs, or folders with logs.
        new: Likewise.
        base_arm: Which arm is meant where the logs hold several; a name as tables give it.
        new_arm: Likewise.
        scored: Refuse a side without a score.

    Raises:
        DataError: There are no logs, one is no finished log of this eval, a side holds several
            arms, or a run stands on both sides.
    """
    found = {"base": one_per_run(find_logs(base)), "new": one_per_run(find_logs(new))}
    every = [*found["base"], *found["new"]]
    names = dict(zip([log.path for log in every], arm_names(every), strict=True))
    chosen: list[tuple[str, str, list[Log]]] = []
    for label, wanted in (("base", base_arm), ("new", new_arm)):
        arm = _only_arm(label, [names[log.path] for log in found[label]], wanted)
        logs = [log for log in found[label] if names[log.path] == arm]
        chosen.append((label, arm, logs))
    _refuse_one_run_twice(chosen[0][2], chosen[1][2])
    sides = []
    for label, arm, logs in chosen:
        side = Side(label, arm, tuple(logs), read_samples(logs, arm))
        if scored:
            _refuse_without_scores(side)
        sides.append(side)
    return sides[0], sides[1]


def read_samples(
    logs: Sequence[Log], arm: str, regradings: "Regradings | None" = None
) -> "DataFrame":
    """Read all that is needed of some logs at once: opening them is what takes the time.

    Args:
        logs: Of one arm.
        arm: Its name.
        regradings: What takes the place of the grades in the logs.
    """
    from compression_eval.analysis.sample_columns import SAMPLE_COLUMNS

    folded = {
        fact_columns.FACTS: fact_columns.as_cell,
        criteria.CRITERIA: criteria.as_cell,
        gradings.GRADINGS: gradings.as_cell,
        gradings.ANCHOR: gradings.anchor_as_cell,
    }
    return joined([rows_of_log(log, arm, SAMPLE_COLUMNS | folded, regradings) for log in logs])


def _only_arm(label: str, names: Sequence[str], wanted: str | None) -> str:
    counts = Counter(names)
    listed = ", ".join(f"{name!r}" for name in sorted(counts))
    if wanted is not None:
        if wanted not in counts:
            raise DataError(f"{label}: no log of the arm {wanted!r}; the arms are {listed}")
        return wanted
    if len(counts) > 1:
        raise DataError(
            f"{label}: the logs are of {len(counts)} arms, {listed}; "
            f"name one of them with --{label}-arm"
        )
    return next(iter(counts))


def _refuse_one_run_twice(base: Sequence[Log], new: Sequence[Log]) -> None:
    runs = {log.header.eval.task_id for log in base}
    for log in new:
        if log.header.eval.task_id in runs:
            raise DataError(f"{log.path}: the same run stands on both sides")


def _refuse_without_scores(side: Side) -> None:
    if side.samples["scored"].any():
        return
    reasons = Counter(side.samples["failure"]).most_common(3)
    listed = "; ".join(f"{count} x {reason}" for reason, count in reasons)
    raise DataError(
        f"{side.label}: none of the {len(side.samples)} samples of {side.arm!r} has a score "
        f"({listed or 'the logs are empty'})"
    )


def differences(base: Side, new: Side) -> list[tuple[str, str, str]]:
    """Return the settings in which two arms differ: name, value of base, value of new."""
    first, second = base.settings, new.settings
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    if "compressor" in names:  # the arguments of two strategies have nothing to do with each other
        names = [name for name in names if not name.startswith(ARGUMENT)]
    return [(name, first.get(name, "-"), second.get(name, "-")) for name in names]


def same_arm(base: Side, new: Side) -> bool:
    """Return whether both sides are runs of one arm, so that all that differs is noise."""
    return not differences(base, new) and base.versions == new.versions
