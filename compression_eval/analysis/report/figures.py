"""Every figure of a report, computed from the frames and from nothing else."""

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.report.arms import Arm, arms_of
from compression_eval.analysis.report.costs import Costs, Failures, costs, failures
from compression_eval.analysis.report.differing import differing
from compression_eval.analysis.report.misses import Miss, misses
from compression_eval.analysis.report.reading import Frames
from compression_eval.analysis.report.retained import (
    Frontier,
    Retained,
    frontier,
    retained,
    same_answers,
)
from compression_eval.analysis.report.scores import (
    Cell,
    Row,
    common,
    estimates,
    groups,
    table,
)
from compression_eval.analysis.report.survival import Survival, survival
from compression_eval.analysis.statistics.intervals import Estimate
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.rubric import FORMULA

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class ArmFigures:
    """The figures of one arm."""

    table: list[Row]
    estimates: dict[str, Estimate]
    groups: dict[str, dict[str, Cell]]
    misses: list[Miss]
    survival: Survival
    costs: Costs
    failures: Failures


@dataclass(frozen=True)
class Figures:
    """The figures of a report."""

    formula: str
    arms: list[Arm]
    of_arm: dict[str, ArmFigures]
    retained: dict[str, Retained]
    frontier: Frontier
    differing: list[str]
    """What the arms do not have in common though a comparison wants it, one line each."""
    probes: tuple[int, int] = (0, 0)
    """Probes that all arms have in common (0 if each has its own), and all that any was asked."""
    several_cuts: list[str] = field(default_factory=list)
    """Conversations that were cut at several places, which are averaged."""
    same_answers: list[list[str]] = field(default_factory=list)
    """Arms, neither of them a control, that gave the same answers, byte by byte."""

    @property
    def offline(self) -> bool:
        """Whether no language model was involved in any arm."""
        return all(arm.offline for arm in self.arms)


def figures(frames: Frames) -> Figures:
    """Compute the figures.

    Args:
        frames: Of all logs; each arm of them has at least one sample.
    """
    beside, probes = common(frames.samples)
    arms = arms_of(frames.samples, beside)
    by_arm = {arm.name: _of(beside, arm) for arm in arms}
    return Figures(
        formula=f"{FORMULA}; a sample that failed counts as 0",
        arms=arms,
        of_arm={arm.name: _arm(arm, by_arm[arm.name], frames) for arm in arms},
        retained=retained(arms, by_arm),
        frontier=frontier(arms, by_arm),
        differing=differing(frames.samples),
        probes=(probes, len(frames.samples.drop_duplicates(["unit", "sample"]))),
        several_cuts=[
            str(name) for name, units in beside.groupby("fixture")["unit"] if units.nunique() > 1
        ],
        same_answers=same_answers(arms, by_arm),
    )


def _arm(arm: Arm, beside: "DataFrame", frames: Frames) -> ArmFigures:
    samples = _of(frames.samples, arm)
    states, facts = _of(frames.states, arm), _of(frames.facts, arm)
    return ArmFigures(
        table=table(beside),
        estimates=estimates(beside) if arm.scored else {},
        groups=groups(beside),
        misses=misses(samples, _of(frames.criteria, arm), facts),
        survival=survival(facts),
        costs=costs(samples, states),
        failures=failures(samples, states),
    )


def _of(frame: "DataFrame", arm: Arm) -> "DataFrame":
    return frame[frame["arm"] == arm.name]


def as_json(of: Figures) -> str:
    """Return the figures as JSON; what is not known is null."""
    return versioned_json(_plain(asdict(of)))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) or math.isinf(value) else value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
