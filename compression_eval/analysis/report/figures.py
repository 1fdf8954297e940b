"""Every figure of a report, computed from the frames and from nothing else."""

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.report.arms import Arm, arms_of
from compression_eval.analysis.report.costs import Costs, Failures, costs, failures
from compression_eval.analysis.report.differing import differing
from compression_eval.analysis.report.misses import Miss, misses
from compression_eval.analysis.report.reading import Frames
from compression_eval.analysis.report.retained import Frontier, Retained, frontier, retained
from compression_eval.analysis.report.scores import Cell, Estimate, Row, estimates, groups, table
from compression_eval.analysis.report.survival import Survival, survival
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

    @property
    def offline(self) -> bool:
        """Whether no language model was involved in any arm."""
        return all(arm.offline for arm in self.arms)


def figures(frames: Frames) -> Figures:
    """Compute the figures.

    Args:
        frames: Of all logs; each arm of them has at least one sample.
    """
    arms = arms_of(frames.samples)
    by_arm = {arm.name: _of(frames.samples, arm) for arm in arms}
    return Figures(
        formula=FORMULA,
        arms=arms,
        of_arm={arm.name: _arm(arm, by_arm[arm.name], frames) for arm in arms},
        retained=retained(arms, by_arm),
        frontier=frontier(arms, by_arm),
        differing=differing(frames.samples),
    )


def _arm(arm: Arm, samples: "DataFrame", frames: Frames) -> ArmFigures:
    states, facts = _of(frames.states, arm), _of(frames.facts, arm)
    return ArmFigures(
        table=table(samples),
        estimates=estimates(samples),
        groups=groups(samples),
        misses=misses(samples, _of(frames.criteria, arm), facts),
        survival=survival(facts),
        costs=costs(samples, states),
        failures=failures(samples, states),
    )


def _of(frame: "DataFrame", arm: Arm) -> "DataFrame":
    return frame[frame["arm"] == arm.name]


def as_json(of: Figures) -> str:
    """Return the figures as JSON; what is not known is null."""
    return json.dumps(_plain(asdict(of)), ensure_ascii=True, indent=1) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) or math.isinf(value) else value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
