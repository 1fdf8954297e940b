"""Does the gate see what a weak reader hides? Simulation with known truth.

    python -m benchmarks.verdicts            # about six minutes
    python -m benchmarks.verdicts --runs 100 # a quick look

Facts are kept or lost in each compression, a reader says which facts a state contains, and answers
are worth what the reader makes of the facts in the state, between what it answers from nothing and
from everything. Verdicts are those of the program, from its own functions; next to them stand the
exit codes of the rule that it had before, which had a fixed margin and looked neither at facts nor
at controls.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray
from pandas import DataFrame

from benchmarks.statistics import shown
from compression_eval.analysis.comparison.measures import chance_of_rise
from compression_eval.analysis.statistics.intervals import (
    ArmValues,
    Difference,
    Observation,
    paired_difference,
)
from compression_eval.analysis.statistics.significance import (
    DEFAULT_THRESHOLD,
    Failing,
    decide,
    default_margin,
)

Array = NDArray[numpy.float64]

PROBES, FACTS = 10, 2
"""Probes of a conversation, facts of a probe."""

KEPT = (0.12, 0.08)
"""Beta distribution of the chance that a compression keeps a fact: most are kept always or never,
60 % on average. With a strong reader, knowledge varies by probe as it did in a run with language
models (variance 0.38)."""

MISREAD = 0.03
"""Share of the facts on which the reader's word on a state is wrong."""


@dataclass(frozen=True)
class Reader:
    """What a model answers."""

    name: str
    floor: float
    """Knowledge (0 to 5) from nothing."""
    reach: float
    """How much more from everything."""
    noise: float
    """Standard deviation of one answer."""


READERS = (
    Reader("strong", 0.3, 4.2, 0.3),
    Reader("middling", 0.5, 2.5, 0.3),
    Reader("weak", 0.9, 0.5, 0.3),
    Reader("says that it does not know", 0.9, 0.0, 0.05),
)


@dataclass(frozen=True)
class World:
    """What is true of two arms."""

    reader: Reader
    lost: float = 0.0
    """Share of the facts that the base keeps and the new arm loses."""
    fixtures: int = 4
    states: int = 3
    failing: float = 0.0
    """Share of compressions that fail, in both arms."""
    moved: float = 0.05
    """Standard deviation of what a compression adds to the chances of all its facts."""


@dataclass(frozen=True)
class Run:
    """Two arms and two controls."""

    knowledge: Difference
    facts: Difference
    failing: Failing | None
    reach: float


def run(world: World, rng: numpy.random.Generator) -> Run:
    """Draw one comparison."""
    shape = (world.fixtures, world.states, PROBES, FACTS)
    chances = rng.beta(*KEPT, (world.fixtures, 1, PROBES, FACTS))
    hardness = rng.normal(0, 0.3, (world.fixtures, 1, PROBES))
    failed = rng.random((2, world.fixtures, world.states)) < world.failing

    def graded(held: NDArray[Any]) -> Array:
        answers = world.reader.floor + world.reader.reach * held.mean(axis=3) + hardness
        found: Array = (answers + rng.normal(0, world.reader.noise, answers.shape)).clip(0, 5)
        return found

    scores, survival = [], []
    for arm, lost in enumerate((0.0, world.lost)):
        moved = rng.normal(0, world.moved, (world.fixtures, world.states, 1, 1))
        held = rng.random(shape) < (chances + moved).clip(0, 1) * (1 - lost)
        read = held ^ (rng.random(shape) < MISREAD)
        scores.append(_values(graded(held), failed[arm]))
        survival.append(_values(read.mean(axis=3), failed[arm]))
    knowledge, facts = paired_difference(*scores), paired_difference(*survival)
    if knowledge is None or facts is None:
        return run(world, rng)  # everything failed on one side
    once = (world.fixtures, 1, PROBES, FACTS)
    reach = float(graded(numpy.ones(once)).mean() - graded(numpy.zeros(once)).mean())
    return Run(knowledge, facts, _failing(failed, scores), reach)


def _values(cells: Array, failed: NDArray[numpy.bool_]) -> ArmValues:
    return ArmValues.of(
        Observation(str(fixture), str(fixture), str(probe), str(state), float(value))
        for (fixture, state, probe), value in numpy.ndenumerate(cells)
        if not failed[fixture, state]
    )


def _failing(failed: NDArray[numpy.bool_], scores: list[ArmValues]) -> Failing | None:
    if not failed.any():
        return None
    sides = [
        DataFrame(
            {"unit": str(unit), "log_path": "", "state": state, "failure": "lost" * bool(lost)}
            for (unit, state), lost in numpy.ndenumerate(each)
        )
        for each in failed
    ]
    # Failures hit all alike, so a mean falls by the share that failed.
    means = [arm.mean() * (1 - each.mean()) for arm, each in zip(scores, failed, strict=True)]
    rises = failed[1].mean() > failed[0].mean()
    return Failing(chance_of_rise(*sides), float(means[1] - means[0]) if rises else 0.0)


def worlds() -> Iterator[World]:
    """Yield what is simulated."""
    for reader in READERS:
        for lost in (0.0, 1 / 3):
            for fixtures in (4, 12):
                yield World(reader, lost, fixtures)
    for reader in (READERS[0], READERS[2]):
        for failing in (0.0, 0.1):
            yield World(reader, fixtures=4, failing=failing, moved=0.3)
            yield World(reader, fixtures=12, failing=failing, moved=0.3)


def table(runs: int, seed: int) -> Iterator[list[str]]:
    """Yield the cells of each row."""
    for number, world in enumerate(worlds()):
        rng = numpy.random.default_rng([seed, number])
        before = {0: 0, 1: 0, 3: 0}
        counts = dict.fromkeys(("knowledge", "facts", "either", "certified"), 0)
        for _ in range(runs):
            drawn = run(world, rng)
            old = decide(drawn.knowledge, DEFAULT_THRESHOLD, drawn.failing)
            code = 1 if old.regression else 3 if old.verdict == "cannot tell" else 0
            before[code] += 1
            margin = default_margin(drawn.reach)
            found = decide(drawn.knowledge, margin, drawn.failing, drawn.facts)
            counts["knowledge"] += found.verdict in ("worse", "fails more")
            counts["facts"] += found.facts_lost
            counts["either"] += found.regression
            counts["certified"] += found.certifies(drawn.reach)
        told = "a third of the facts lost" if world.lost else "no difference"
        told += ", compressions vary much" if world.moved > World.moved else ""
        told += f", {world.failing:.0%} fail" if world.failing else ""
        shares = {name: f"{count / runs:.1%}" for name, count in counts.items()}
        open_ = f"{1 - (counts['either'] + counts['certified']) / runs:.1%}"
        yield [
            f"{world.reader.name} ({world.reader.reach:g})",
            told,
            f"{world.fixtures} x {world.states}",
            " / ".join(f"{count / runs:.1%}" for count in before.values()),
            f"{shares['certified']} / {shares['either']} / {open_}",
            shares["knowledge"],
            shares["facts"],
        ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    shown(
        [
            "reader (range)",
            "truth",
            "conversations x compressions",
            "exit 0 / 1 / 3 before",
            "exit 0 / 1 / 3",
            "of 1: by knowledge or failures",
            "of 1: by facts",
        ],
        lambda: table(given.runs, given.seed),
    )
