"""The two sides of a comparison: which logs they are, and that each is one arm."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from compression_eval.analysis import criteria, fact_columns, gradings
from compression_eval.analysis.frames import arm_names, joined, rows_of_log
from compression_eval.analysis.logs import Log, find_logs, one_per_run
from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

_OPERATIONAL = {
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
    *("adaptive_connections", "cache", "cache_prompt", "batch", "extra_headers"),
}
"""Settings of a model that do not decide what it says."""

ARGUMENT = "compressor_args."
"""Stands before the name of a strategy's argument among the settings of an arm."""


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
        return _settings(self.logs[0])

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
    base: Sequence[str], new: Sequence[str], base_arm: str | None, new_arm: str | None
) -> tuple[Side, Side]:
    """Return both sides.

    Args:
        base: Logs, or folders with logs.
        new: Likewise.
        base_arm: Which arm is meant where the logs hold several; a name as tables give it.
        new_arm: Likewise.

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
        _refuse_mixture(label, logs)
        chosen.append((label, arm, logs))
    _refuse_one_run_twice(chosen[0][2], chosen[1][2])
    sides = []
    for label, arm, logs in chosen:
        side = Side(label, arm, tuple(logs), _samples(logs, arm))
        _refuse_without_scores(side)
        sides.append(side)
    return sides[0], sides[1]


def _samples(logs: Sequence[Log], arm: str) -> "DataFrame":
    """Read all that is needed of some logs at once: opening them is what takes the time."""
    from compression_eval.analysis.sample_columns import SAMPLE_COLUMNS

    folded = {
        fact_columns.FACTS: fact_columns.as_cell,
        criteria.CRITERIA: criteria.as_cell,
        gradings.GRADINGS: gradings.as_cell,
    }
    return joined([rows_of_log(log, arm, SAMPLE_COLUMNS | folded) for log in logs])


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


def _refuse_mixture(label: str, logs: Sequence[Log]) -> None:
    """Refuse logs under one name that are of different arms all the same."""
    first = _settings(logs[0])
    for log in logs[1:]:
        changed = _changes(first, _settings(log))
        if changed:
            raise DataError(f"{label}: {log.path}: not the same arm as the others: {changed}")
    versions: dict[str, tuple[str, Log]] = {}
    for log in logs:
        version, about = str(log.header.eval.task_version), _about(log)
        known = versions.setdefault(about, (version, log))
        if known[0] != version:
            raise DataError(
                f"{label}: {log.path}: made by version {version} of what decides the results, and "
                f"{known[1].path} by {known[0]}; name the logs of one of them"
            )


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


def _changes(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    return "; ".join(
        f"{name} is {second.get(name, '-')[:60]}, not {first.get(name, '-')[:60]}"
        for name in {**first, **second}
        if first.get(name) != second.get(name)
    )


def _settings(log: Log) -> dict[str, str]:
    spec = log.header.eval
    metadata: dict[str, Any] = spec.metadata or {}
    described = metadata.get("compressor") or {}
    models = metadata.get("models") or {}
    result = {"compressor": log.compressor}
    arguments = described.get("arguments") if isinstance(described, dict) else None
    for name, value in (arguments or {}).items():
        result[f"{ARGUMENT}{name}"] = (
            value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        )
    result["model"] = spec.model
    result |= {f"model.{name}": value for name, value in decisive(spec.model_generate_config)}
    result["compressor model"] = str(models.get("compresses") or spec.model)
    role = (spec.model_roles or {}).get("compressor")
    if role is not None and not isinstance(role, list):
        result |= {f"compressor model.{name}": value for name, value in decisive(role.config)}
    result["tokens counted with"] = str(metadata.get("token_counter", ""))
    return result


def decisive(config: Any) -> list[tuple[str, str]]:
    """Return the settings of a model that decide what it says, as text."""
    given = config.model_dump(mode="json", exclude_none=True)
    return [
        (name, json.dumps(value, sort_keys=True))
        for name, value in sorted(given.items())
        if name not in _OPERATIONAL
    ]


def _about(log: Log) -> str:
    dataset = log.header.eval.dataset
    return json.dumps([dataset.name, sorted(map(str, dataset.sample_ids or []))])
