"""The two sides of a comparison: which logs they are, that each is one arm, and what must match.

`load_sides` finds the logs of both sides and reads each as an `Arm`. `check_comparable` compares
the settings and digests of both by the `CONDITIONS`, and raises for each that differs and was not
allowed. `unfit_controls` does the same for a control, which may have more fixtures.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from compression_eval.analysis.arms import (
    ARGUMENT,
    answered_by,
    arm_names,
    arm_settings,
    graders_of,
    made_of,
)
from compression_eval.analysis.columns import CRITERIA, FACTS, SAMPLE_COLUMNS
from compression_eval.analysis.comparison import CONDITIONS
from compression_eval.analysis.comparison.measures import (
    HEADLINE,
    embedded,
    exact_of,
    same_every_time,
    states_read,
    values,
)
from compression_eval.analysis.frames import read_rows, unfold_criteria, unfold_facts
from compression_eval.analysis.logs import Log, find_logs, local_path, one_per_run
from compression_eval.analysis.statistics.intervals import ArmValues
from compression_eval.compressors.names import SUFFIX
from compression_eval.errors import DataError
from compression_eval.fixtures.digests import shown
from compression_eval.text.printable import printable
from compression_eval.versioning import SOURCE, TEXTS, TOOLS

if TYPE_CHECKING:
    from pandas import DataFrame

_BY_COLUMN = {
    "question": "question_digest",
    "cycles": "cycles",
    "rubric": "rubric_digest",
    "language": "rubric_language",
    "criteria": "criteria",
    "grader": "graded_by",
    "grader_context": "grader_context",
}
"""Conditions on a column of the samples."""

_SIDES = ("base", "new")

CONTROLS = ("none", "full")
"""Strategies that keep nothing and all."""

MAX_NAMED = 5


@dataclass(frozen=True)
class Arm:
    """The logs of one arm with their samples."""

    label: str
    """``base`` or ``new``; of a control its strategy."""
    name: str
    """The arm's name in tables."""
    logs: Sequence[Log]
    samples: "DataFrame"
    """As from `samples_frame`, one row per sample and epoch, with what is folded into a cell."""

    def values(self, measure: str, *, failed_as_zero: bool = False) -> ArmValues:
        """Return the values of a measure: see `measures.values`."""
        return values(self.samples, measure, failed_as_zero=failed_as_zero)

    @cached_property
    def facts(self) -> "DataFrame":
        """As from `facts_frame`."""
        return unfold_facts(self.samples)

    @cached_property
    def criteria(self) -> "DataFrame":
        """One row per criterion and grading: `unit`, `probe_id`, and as from `criteria_frame`."""
        return unfold_criteria(self.samples[["unit", "probe_id", CRITERIA]])

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings of the arm by name, as text."""
        return arm_settings(self.logs[0])

    @property
    def versions(self) -> list[str]:
        """Versions of the task: digests of everything that decides its results."""
        return sorted({str(log.header.eval.task_version) for log in self.logs})

    @property
    def releases(self) -> set[str]:
        """The parts of these that rise when scores stop being comparable."""
        return set(map(release_of, self.logs))

    @cached_property
    def made_of(self) -> dict[str, str]:
        """What decided its results besides its settings: digests, by what they are of."""
        return {name: value for log in self.logs for name, value in made_of(log).items()}

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the packages that made the logs."""
        specs = [log.header.eval for log in self.logs]
        found = [spec.packages | (spec.metadata or {}) for spec in specs]
        return {
            name: ", ".join(sorted({str(each[name]) for each in found if name in each}))
            for name in TOOLS
        }

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.logs[0].header.eval.model

    @property
    def graders(self) -> list[str]:
        """The graders, from the samples."""
        return sorted({str(name) for name in self.samples["graded_by"].dropna()})

    @property
    def self_graded(self) -> bool:
        """Whether a model judged its own answers."""
        return any(mark is True for mark in self.samples["self_graded"])

    # ----- what can be random

    @cached_property
    def read(self) -> bool:
        """Whether a language model read which facts the states contain."""
        return states_read(self.samples)

    @property
    def _called_a_model(self) -> bool:
        return bool(self.samples["compress_calls"].sum() > 0)

    @property
    def mechanical(self) -> bool:
        """Whether its compressions of one history are all the same."""
        return same_every_time(self.settings["compressor"], self.settings["compressor model"])

    @property
    def known_mechanical(self) -> bool:
        """Whether no model, of a vendor either, wrote its states, as far as is known."""
        recorded = self.settings["compressor"].removesuffix(SUFFIX) == "recorded"
        return self.mechanical and not self._called_a_model and not recorded

    @property
    def stood_in(self) -> bool:
        """Whether the embedded model compressed instead of a language model."""
        return self._called_a_model and embedded(self.settings["compressor model"])

    @cached_property
    def exact(self) -> frozenset[str]:
        """The measures on which it cannot vary."""
        compressor, compressed_by = self.settings["compressor"], self.settings["compressor model"]
        # Only the compressor can vary then; a user's own is judged by its results: every
        # conversation was compressed several times, always to the same scores, and without a model
        # call. What the embedded model makes of another prompt is no finding.
        samples, models = self.samples, (compressed_by, self.model, *self.graders)
        only_ours = not self.read and all(map(embedded, models))
        if only_ours and not samples["failure"].astype(bool).any() and not self._called_a_model:
            runs = samples["log_path"].astype(str) + " " + samples["state"].astype(str)
            by_probe = samples.groupby(["unit", "probe_id"])[list(HEADLINE)]
            apart = (by_probe.max() - by_probe.min()).to_numpy(na_value=0.0)
            if runs.groupby(samples["unit"]).nunique().min() > 1 and not apart.any():
                return frozenset(HEADLINE)
        return exact_of(compressor, compressed_by, self.model, self.graders, read=self.read)

    @property
    def no_language_model(self) -> bool:
        """Whether it is known to have been run without any language model."""
        return len(self.exact) == len(HEADLINE)


def read_arm(label: str, name: str, logs: Sequence[Log]) -> Arm:
    """Read an arm's logs at once, since opening them takes the time."""
    return Arm(label, name, logs, read_rows(logs, (*SAMPLE_COLUMNS, FACTS, CRITERIA), arm=name))


def load_sides(
    base: Sequence[str], new: Sequence[str], base_arm: str | None, new_arm: str | None
) -> tuple[Arm, Arm, list[Log]]:
    """Return both sides, and the logs of controls among all that were named.

    Args:
        base: Logs, or folders with logs.
        new: The same.
        base_arm: The name of the arm that is meant where the logs contain several, or a part of it.
        new_arm: The same.

    Raises:
        DataError: There are no logs, one is no finished log of this eval, a side contains several
            arms or no score, or both sides contain the same run.
    """
    by_label = {"base": one_per_run(find_logs(base)), "new": one_per_run(find_logs(new))}
    every = [*by_label["base"], *by_label["new"]]
    names = dict(zip([log.path for log in every], arm_names(every), strict=True))
    chosen = {}
    for label, wanted in (("base", base_arm), ("new", new_arm)):
        arms = {names[log.path]: log.compressor in CONTROLS for log in by_label[label]}
        # Controls may lie next to the one arm that is meant.
        meant = [arm for arm, is_control in arms.items() if not is_control]
        lone = wanted is None and len(meant) == 1
        arm = meant[0] if lone else one_name(list(arms), wanted, label)
        chosen[label] = (arm, [log for log in by_label[label] if names[log.path] == arm])
    refuse_same_runs(chosen["base"][1], chosen["new"][1])
    sides = [read_arm(label, arm, logs) for label, (arm, logs) in chosen.items()]
    for side in sides:
        if not side.samples["scored"].any():
            reasons = Counter(side.samples["failure"]).most_common(3)
            listed = "; ".join(f"{count} x {reason}" for reason, count in reasons)
            raise DataError(
                f"{side.label}: none of the {len(side.samples)} samples of {side.name!r} has a "
                f"score ({listed or 'the logs are empty'})"
            )
    return sides[0], sides[1], [log for log in every if log.compressor in CONTROLS]


def refuse_same_runs(base: Iterable[Log], new: Iterable[Log]) -> None:
    """Refuse sides that share a run.

    Raises:
        DataError: A run is on both sides.
    """
    runs = {log.header.eval.task_id for log in base}
    for log in new:
        if log.header.eval.task_id in runs:
            raise DataError(f"{local_path(log.path)}: the same run is on both sides")


def one_name(arms: Sequence[str], wanted: str | None, label: str) -> str:
    """Return the arm that is meant by a name or a part of it, or the only one there is.

    Raises:
        DataError: Several are meant, or none.
    """
    listed = ", ".join(f"{name!r}" for name in sorted(arms))
    if wanted is None and len(arms) != 1:
        raise DataError(
            f"{label}: the logs are of {len(arms)} arms, {listed}; "
            f"name one of them with --{label}-arm"
        )
    if wanted is None or wanted in arms:
        return wanted or arms[0]
    parts = sorted(name for name in arms if wanted in name)
    if not parts:
        raise DataError(f"--{label}-arm: no log of the arm {wanted!r}; the arms are {listed}")
    if len(parts) > 1:
        fitting = ", ".join(map(repr, parts))
        raise DataError(
            f"--{label}-arm: {wanted!r} fits {len(parts)} arms, {fitting}; give more of the name"
        )
    return parts[0]


Change = tuple[str, str, str]
"""What differs, its value in base, and that in new."""


def differences(base: Arm, new: Arm) -> list[Change]:
    """Return in what two arms differ: settings, and digests of code and texts of one strategy."""
    edited = [name for name in (SOURCE, TEXTS) if name in base.made_of and name in new.made_of]
    first, second = (
        side.settings | {name: side.made_of[name] for name in edited} for side in (base, new)
    )
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    if "compressor" in names:  # arguments of two strategies are unrelated
        names = [name for name in names if not name.startswith(ARGUMENT) and name not in edited]
    return [(name, first.get(name, "-"), second.get(name, "-")) for name in names]


def same_arm(base: Arm, new: Arm) -> bool:
    """Return whether both sides are runs of one arm, which differ only by noise.

    Of logs that do not say what they were made of, the versions must be the same.
    """
    if differences(base, new) or base.versions == new.versions:
        return not differences(base, new)
    shared = base.made_of.keys() & new.made_of.keys()
    return TEXTS in shared and all(base.made_of[name] == new.made_of[name] for name in shared)


def tools_changed(base: Arm, new: Arm) -> list[Change]:
    """Return the packages of which two sides were made with other versions, and these."""
    both = [(name, old, new.tools[name]) for name, old in base.tools.items()]
    return [(name, old, now) for name, old, now in both if old and now and old != now]


# ----- what must match


def check_comparable(base: Arm, new: Arm, allowed: Collection[str]) -> dict[str, str]:
    """Return the allowed differences in a few words each, by name of `CONDITIONS`.

    Raises:
        DataError: There are differences that were not allowed; the text names all.
    """
    gates = [
        {str((log.header.eval.metadata or {}).get("min_removed", "-")) for log in side.logs}
        for side in (base, new)
    ]
    read = ({"read by a model" if side.read else "looked up"} for side in (base, new))
    details = _differing(base, new, "fixture", both_whole=True) | {
        "unfinished": _unfinished(base, new),
        "min_removed": _two(*gates),
        "state_facts": _two(*read),
    }
    obstacles = {name: details[name] for name in CONDITIONS if details[name]}
    if refused := [name for name in obstacles if name not in allowed]:
        listed = "; ".join(f"{name} ({obstacles[name]})" for name in refused)
        options = " ".join(f"--allow {name}" for name in refused)
        raise DataError(
            f"cannot be compared: {listed} (to compare what both have all the same: {options})"
        )
    return obstacles


def unfit_controls(side: Arm, control: Arm) -> str:
    """Return in what a control does not fit a side; it may have more fixtures and probes."""
    readers = [{answered_by(log) for log in each.logs} for each in (side, control)]
    details = {
        "unfinished": _unfinished(control),
        "reader": _two(*readers, names=(side.label, control.label)),
        **_differing(side, control, "unit", both_whole=False),
    }
    del details["cycles"]  # a control has none
    return "; ".join(f"{name} ({detail})" for name, detail in details.items() if detail)


def release_of(log: Log) -> str:
    """Return the part of a log's version that rises when scores stop being comparable."""
    return str(log.header.eval.task_version).partition("-")[0]


def _differing(base: Arm, new: Arm, unit: str, *, both_whole: bool) -> dict[str, str]:
    """Return in what two arms differ, or an empty text, by condition.

    Conversations are named by the column `unit`. Unless both must be whole, the second arm may have
    conversations and probes that the first one lacks.
    """
    names = (base.label, new.label)
    whole = names if both_whole else names[:1]
    both = (base.samples, new.samples)
    shared = list(set(both[0][unit]) & set(both[1][unit]))
    asked = [samples[samples[unit].isin(shared)] for samples in both]
    graders = _two(*(set(map(graders_of, side.logs)) for side in (base, new)), names=names)
    details = {
        "release": _two(base.releases, new.releases, names=names),
        "fixtures": _sets_differ(both, [unit], "fixture_digest", "fixture", whole),
        "probes": _sets_differ(asked, ["unit", "probe_id"], "probe_digest", "probe", whole),
    }
    for name, column in _BY_COLUMN.items():
        first, second = (_values(samples, ["unit"], column) for samples in both)
        changed = _changed(first, second)
        details[name] = _two(first[changed[0]], second[changed[0]], names=names) if changed else ""
    return details | {"grader": details["grader"] or graders}


def _unfinished(*sides: Arm) -> str:
    return "; ".join(
        f"{log.path} ended early, {log.header.status}; finish it with: inspect eval-retry"
        for side in sides
        for log in side.logs
        if not log.complete
    )


_Said = dict[tuple[str, ...], set[str]]
"""What a column says under each key; nothing where no sample got as far."""


def _sets_differ(
    both: "Sequence[DataFrame]", keys: list[str], column: str, noun: str, whole: Sequence[str]
) -> str:
    """Compare which things, named by keys, two sides have, and their digests in a column.

    `whole` has the labels of the sides of which the other one must have everything.
    """
    first, second = (_values(samples, keys, column) for samples in both)
    only = (first.keys() - second.keys(), second.keys() - first.keys())
    parts = [
        *(_named(f"only in {label}: {noun}", own) for label, own in zip(whole, only, strict=False)),
        _named(f"changed: {noun}", _changed(first, second)),
    ]
    return ", ".join(filter(None, parts))


def _changed(first: _Said, second: _Said) -> list[tuple[str, ...]]:
    shared = sorted(first.keys() & second.keys())
    return [key for key in shared if first[key] and second[key] and first[key] != second[key]]


def _named(what: str, keys: Iterable[tuple[str, ...]]) -> str:
    names = sorted(printable(" ".join(key)) for key in keys)
    if not names:
        return ""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{what} {', '.join(names[:MAX_NAMED])}{more}"


def _values(samples: "DataFrame", keys: list[str], column: str) -> _Said:
    by_key: _Said = {}
    rows = samples[[*keys, column]].drop_duplicates()
    for *key, value in rows.itertuples(index=False, name=None):
        said = by_key.setdefault(tuple(map(str, key)), set())
        if value is not None and value == value:  # noqa: PLR0124  (NaN is not itself)
            text = str(value)
            is_digest = len(text) == 64 and not set(text) - set("0123456789abcdef")
            said.add(shown(text) if is_digest else text)
    return by_key


def _two(first: set[str], second: set[str], *, names: Sequence[str] = _SIDES) -> str:
    if first == second:
        return ""
    return f"{names[0]} {', '.join(sorted(first))}, {names[1]} {', '.join(sorted(second))}"
