"""Do the intervals and verdicts keep their promises? Simulation with known truth.

    python -m benchmarks.statistics            # about seven minutes
    python -m benchmarks.statistics --runs 300 # a quick look

Each row stands for runs of two arms whose true difference is set. Besides what the program says
(`after`) stands what it said by the rule that it had before (`before`), which is kept here alone:
every probe counted the same, and nine measures were tested together, all of which a gate wanted
told. Arrays are ``[run, arm, conversation, compression, probe, measure]``; that their arithmetic is
the program's own is checked on the first runs of every row.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy
from numpy.typing import NDArray
from pandas import DataFrame
from scipy import stats

from compression_eval.analysis.comparison.measures import chance_of_rise
from compression_eval.analysis.statistics.intervals import (
    ArmValues,
    Difference,
    Observation,
    Spread,
    paired_difference,
)
from compression_eval.analysis.statistics.power import (
    Design,
    Variances,
    detectable,
    power,
)
from compression_eval.analysis.statistics.significance import Failing, decide

Array = NDArray[Any]

MARGIN = 0.3

MEASURES = 8
"""Accuracy, context, artifact, completeness and continuity, which are knowledge; instruction
following; fact recall and survival (times 5)."""

LOADS = numpy.array([0.4, 1.0, 1.0, 1.25, 1.35, 0.7, 1.0, 1.0])
OWN = numpy.array([0.15, 0.03, 0.03, 0.03, 0.05, 0.15, 0.08, 0.3])
"""How far each measure moves with what moves knowledge, and the variance of the rest.

From a run with language models that compressed, answered and graded: four summarising arms, one
compression each, ten probes of each of two conversations. The two-way residuals (arm by probe) of
the five dimensions correlate at 0.9 and more, but for accuracy (0.2 to 0.6); these are their
regressions on knowledge, means over the two conversations.
"""

TYPICAL = Variances(state=0.044, probe=0.38, answer=0.0, fixture=0.06)
"""Of knowledge, from the same run: residuals of 0.59 and 0.16 by conversation, and 0.056 and 0.032
between the arms of one, which stand for what compressions share. Since the arms are of different
strategies, both are more than one arm's own compressions would show; answers and gradings, which
were not repeated, are in them. The variance between conversations is assumed."""

LEVEL, SPREAD_OF_PROBES = 4.4, 0.5
"""Mean of knowledge in that run, and the standard deviation of its probes."""


@dataclass(frozen=True)
class World:
    """What is true, and how it is seen."""

    fixtures: int = 12
    states: int = 3
    probes: int = 10
    loss: float = 0.0
    """On each dimension of knowledge and on both shares."""
    only: int | None = None
    """The one dimension that loses, where the others do not."""
    level: float | None = None
    """Mean of scores that are clipped to 0 to 5; None for normal values without bounds."""
    unequal: bool = False
    """Whether conversations have 2 to 30 probes."""
    failing: float = 0.0
    """Share of compressions that fail, in both arms."""
    failing_hard: float = 0.0
    """The same, in the new arm on the harder half of the conversations alone."""
    new_states: int | None = None
    noise: float = 1.0
    """How much larger the variances of the new arm are."""

    def sizes(self) -> Array:
        """Return how many probes each conversation has."""
        if not self.unequal:
            return numpy.full(self.fixtures, self.probes)
        return numpy.resize([2, 30, 4, 12, 3, 20], self.fixtures)

    def truth(self) -> float:
        """Return the true difference in knowledge."""
        return -self.loss / (1 if self.only is None else 5)

    def state_means(self, runs: int, rng: numpy.random.Generator, *, differing: bool) -> Array:
        """Return each compression's mean over its probes; NaN where it failed.

        Args:
            runs: How many runs.
            rng: Source of chance.
            differing: Whether conversations differ in the true difference beyond what makes them
                lose `loss` on average in each run: what matters for more conversations.
        """
        most = max(self.states, self.new_states or 0)
        found = numpy.full((runs, 2, self.fixtures, most, MEASURES), numpy.nan)
        effects = rng.normal(0, TYPICAL.fixture**0.5, (runs, self.fixtures))
        if not differing:
            # A/A is no difference anywhere; a loss differs, but is what it is on these ones.
            effects -= effects.mean(axis=1, keepdims=True)
            effects *= self.loss > 0 and self.fixtures > 1
        hardness = rng.normal(0, 0.3, (runs, self.fixtures))
        for fixture, probes in enumerate(self.sizes()):
            base = LEVEL if self.level is None else self.level
            level = (
                base + hardness[:, fixture, None] + rng.normal(0, SPREAD_OF_PROBES, (runs, probes))
            )
            for arm, states in enumerate((self.states, self.new_states or self.states)):
                larger = self.noise if arm else 1.0
                shape = (runs, states, probes)
                moved = rng.normal(0, (TYPICAL.state * larger) ** 0.5, (runs, states, 1))
                moved = moved + rng.normal(0, (TYPICAL.probe * larger) ** 0.5, shape)
                values = level[:, None, :, None] + LOADS * moved[..., None]
                values = values + rng.normal(0, 1, (*shape, MEASURES)) * OWN**0.5
                if self.level is not None:
                    values = values.clip(0, 5)
                means = values.mean(axis=2)
                if arm:
                    lost = numpy.where(numpy.arange(MEASURES) == 5, 0.0, self.loss)
                    if self.only is not None:
                        lost = numpy.where(numpy.arange(MEASURES) == self.only, self.loss, 0.0)
                    shift = effects[:, fixture, None, None]
                    means = means - lost + numpy.where(lost > 0, shift, 0.0)
                    means = means + (shift if differing and not self.loss else 0.0)
                chance = numpy.full((runs, 1), self.failing)
                if arm and self.failing_hard:
                    chance = numpy.where(hardness[:, fixture, None] < 0, self.failing_hard, 0.0)
                means[rng.random((runs, states)) < chance] = numpy.nan
                found[:, arm, fixture, :states] = means
        return found


@dataclass(frozen=True)
class Seen:
    """Differences of many runs, as `intervals` gives them one by one."""

    estimate: Array
    error: Array
    freedom: Array
    """On these conversations."""
    error_new: Array
    freedom_new: Array
    fixtures: Array


def differences(values: Array, weights: Array, *, equal: bool) -> Seen:
    """Return the differences of runs.

    Args:
        values: ``[run, arm, conversation, compression]``.
        weights: Of the conversations, such as their numbers of probes.
        equal: Whether the spread for more conversations is that of the program as it is; else the
            cluster-robust one that it had.
    """
    there = ~numpy.isnan(values)
    count = there.sum(axis=3)
    kept = (count > 0).all(axis=1)
    share = numpy.where(kept, weights, 0.0)
    share = share / share.sum(axis=1, keepdims=True).clip(1e-12)
    total = numpy.where(there, values, 0.0).sum(axis=3)
    means = total / count.clip(1)
    by_fixture = numpy.where(kept, means[:, 1] - means[:, 0], 0.0)
    estimate = (share * by_fixture).sum(axis=1)
    squares = numpy.where(there, (values - means[..., None]) ** 2, 0.0).sum(axis=3)
    variance = squares / (count - 1).clip(1) / count.clip(1) * (share**2)[:, None]
    known = kept[:, None] & (count > 1)
    typical = numpy.where(known, variance * count, 0.0).sum(axis=2, keepdims=True) / known.sum(
        axis=2, keepdims=True
    ).clip(1)
    lone = kept[:, None] & (count == 1)
    variance = numpy.where(known, variance, numpy.where(lone, typical, 0.0))
    free = numpy.where(known, count - 1, numpy.where(lone, 1, 0))
    sums = variance.sum(axis=(1, 2))
    corrected = (variance**2 / (free + 2)).sum(axis=(1, 2))
    freedom = sums**2 / numpy.where(corrected > 0, corrected, 1.0) - 2
    least = numpy.where(free > 0, free, 10**6).min(axis=(1, 2))
    freedom = freedom.clip(least, free.sum(axis=(1, 2)))
    fixtures = kept.sum(axis=1)
    deviation = share * numpy.where(kept, by_fixture - estimate[:, None], 0.0)
    many = numpy.maximum(fixtures, 2)
    error, error_new = sums**0.5, ((deviation**2).sum(axis=1) * many / (many - 1)) ** 0.5
    freedom_new = many - 1.0
    if equal:
        wider = stats.t.ppf(0.975, freedom) * error > stats.t.ppf(0.975, freedom_new) * error_new
        error_new = numpy.where(wider, error, error_new)
        freedom_new = numpy.where(wider, freedom, freedom_new)
    return Seen(estimate, error, freedom, error_new, freedom_new, fixtures)


def knowledge(values: Array) -> Array:
    """Return the mean of the five dimensions."""
    found: Array = values[..., :5].mean(axis=-1)
    return found


def before(world: World, values: Array) -> Array:
    """Return the exit codes by the rule that the program had, with ``--gate``."""
    nine = numpy.concatenate([values[..., :6].mean(axis=-1, keepdims=True), values], axis=-1)
    found = [differences(nine[..., n], world.sizes(), equal=False) for n in range(9)]
    estimates = numpy.stack([each.estimate for each in found])
    errors = numpy.stack([each.error for each in found])
    freedoms = numpy.stack([each.freedom for each in found])
    errors = numpy.where(errors > 0, errors, errors.max(axis=0))  # borrowed where there was none
    p_values: Array = numpy.asarray(2 * stats.t.sf(abs(estimates) / errors.clip(1e-12), freedoms))
    order = p_values.argsort(axis=0)
    stepped = numpy.take_along_axis(p_values, order, 0) * numpy.arange(9, 0, -1)[:, None]
    adjusted = numpy.empty_like(p_values)
    numpy.put_along_axis(adjusted, order, numpy.maximum.accumulate(stepped).clip(max=1), 0)
    half = stats.t.ppf(0.95, freedoms) * errors
    large = (abs(estimates) >= MARGIN) & (adjusted < 0.05)
    within = (abs(estimates) + half < MARGIN) & ~large
    worse = (large & (estimates < 0)).any(axis=0)
    better = large & (estimates > 0)
    lost = numpy.isnan(values).sum(axis=(2, 3, 4))
    rises = lost[:, 1] > lost[:, 0]
    unknown = (~(large | within) | (better & rises)).any(axis=0)
    lower = numpy.zeros(len(rises), bool)
    if rises.any():
        bound = differences(numpy.nan_to_num(nine[..., 0]), world.sizes(), equal=False)
        p_bound = 2 * stats.t.sf(abs(bound.estimate) / bound.error.clip(1e-12), bound.freedom)
        # Its family was the nine as well, all of which fall together where samples fail.
        lower = rises & (bound.estimate <= -MARGIN) & (p_bound < 0.05)
        told = lower | (
            abs(bound.estimate) + stats.t.ppf(0.95, bound.freedom) * bound.error < MARGIN
        )
        unknown = unknown | (rises & ~told)
    return numpy.where(worse | lower, 1, numpy.where(unknown, 3, 0))


def after(world: World, values: Array) -> tuple[Array, list[str]]:
    """Return exit codes and verdicts of the program as it is."""
    known = knowledge(values)
    seen = differences(known, numpy.ones(world.fixtures), equal=True)
    asked = [world.states, world.new_states or world.states]
    verdicts: list[str] = []
    for run in range(len(values)):
        here = Spread(float(seen.error[run]), float(seen.freedom[run]))
        if here.error < 1e-9:
            alike = (~numpy.isnan(known[run])).sum(axis=(1, 2)).min()
            here = Spread(0.0, int(alike) - 1)
        difference = Difference(
            0.0, float(seen.estimate[run]), 1, int(seen.fixtures[run]), (9, 9), here, None
        )
        failing = _failing(known[run], asked)
        verdicts.append(decide(difference, MARGIN, failing).verdict)
    codes = {"worse": 1, "fails more": 1, "cannot tell": 3}
    return numpy.array([codes.get(verdict, 0) for verdict in verdicts]), verdicts


def _failing(values: Array, asked: list[int]) -> Failing | None:
    failed = [numpy.isnan(values[arm, :, :states]) for arm, states in enumerate(asked)]
    if not any(each.any() for each in failed):
        return None
    sides = [
        DataFrame(
            {"unit": str(unit), "log_path": "", "state": state, "failure": "lost" * bool(lost)}
            for unit, states in enumerate(each)
            for state, lost in enumerate(states)
        )
        for each in failed
    ]
    rises = failed[1].mean() > failed[0].mean()
    means = [numpy.nan_to_num(values[arm, :, :states]).mean() for arm, states in enumerate(asked)]
    return Failing(chance_of_rise(*sides), float(means[1] - means[0]) if rises else 0.0)


def check(world: World, values: Array) -> None:
    """Compare the arithmetic of arrays with the program's on one run.

    Raises:
        RuntimeError: They differ.
    """
    arms = [
        ArmValues.of(
            Observation(f"{fixture:03}", f"{fixture:03}", str(probe), str(state), float(value))
            for (fixture, state), value in numpy.ndenumerate(arm)
            if not numpy.isnan(value)
            for probe in range(world.sizes()[fixture])
        )
        for arm in knowledge(values)[0]
    ]
    found = paired_difference(*arms)
    seen = differences(knowledge(values)[:1], numpy.ones(world.fixtures), equal=True)
    if found is None or found.here is None or found.elsewhere is None:
        raise RuntimeError("no interval")
    ours = [seen.estimate, seen.error, seen.freedom, seen.error_new, seen.freedom_new]
    theirs = [found.estimate, found.here.error, found.here.freedom]
    theirs += [found.elsewhere.error, found.elsewhere.freedom]
    if found.here.error and not numpy.allclose([each[0] for each in ours], theirs, atol=1e-9):
        raise RuntimeError(f"{ours} is not what the program has, {theirs}")


def covered(world: World, values: Array, *, equal: bool, elsewhere: bool) -> float:
    """Return how often an interval at 95 % contains the true difference."""
    weights = numpy.ones(world.fixtures) if equal else world.sizes()
    seen = differences(knowledge(values), weights, equal=equal)
    error, freedom = (seen.error_new, seen.freedom_new) if elsewhere else (seen.error, seen.freedom)
    half = stats.t.ppf(0.975, freedom) * error
    return float((abs(seen.estimate - world.truth()) <= half + 1e-9).mean())


def rows() -> Iterator[tuple[str, World]]:
    """Yield the worlds with their names."""
    for fixtures in (4, 12, 40):
        for states in (2, 3, 5):
            yield "no difference", World(fixtures, states)
    for fixtures in (4, 12, 40):
        for loss in (0.24, 0.3, 0.5, 1.0):
            yield f"loses {loss}", World(fixtures, 3, loss=loss)
    for states in (2, 5):
        yield "loses 0.3", World(12, states, loss=0.3)
    for loss in (0.5, 1.0, 2.0):
        yield f"loses {loss} in continuity alone", World(12, 3, loss=loss, only=4)
    for name, given in (
        ("at the ceiling", {"level": 5.6}),
        ("near the ceiling", {"level": 4.6}),
        ("at the floor", {"level": -0.3}),
        ("2 to 30 probes", {"unequal": True}),
        ("10 % fail at random", {"failing": 0.1}),
        ("3 % fail at random", {"failing": 0.03}),
        ("the new arm varies 3 times as much", {"noise": 3.0}),
        ("2 compressions against 5", {"states": 2, "new_states": 5}),
    ):
        for fixtures in (4, 12):
            for loss in (0.0, 0.3):
                title = f"{name}, {f'loses {loss}' if loss else 'no difference'}"
                yield title, World(fixtures=fixtures, loss=loss, **given)
    for fixtures in (4, 12):
        for share in (0.3, 0.7):
            yield (
                f"the new arm fails {share:.0%} on the harder half",
                World(fixtures, 3, failing_hard=share),
            )


def table(runs: int, seed: int) -> Iterator[list[str]]:
    """Yield the cells of each row."""
    for number, (name, world) in enumerate(rows()):
        rng = numpy.random.default_rng([seed, number])
        fewer = max(50, runs * 12 // max(12, world.fixtures))
        values = world.state_means(fewer, rng, differing=False)
        check(world, values)
        codes, verdicts = after(world, values)
        old = before(world, values)
        shares = [
            " / ".join(f"{(found == code).mean():.1%}" for code in (0, 1, 3))
            for found in (old, codes)
        ]
        called = [verdicts.count(each) / len(verdicts) for each in ("better", "worse")]
        called[1] += sum(v.startswith("worse,") or v == "fails more" for v in verdicts) / fewer
        elsewhere = world.state_means(fewer, rng, differing=True)
        intervals = [
            " -> ".join(
                f"{covered(world, seen, equal=equal, elsewhere=new):.1%}" for equal in (False, True)
            )
            for seen, new in ((values, False), (elsewhere, True))
        ]
        size = f"{world.fixtures} x {world.states}"
        yield [name, size, *shares, f"{called[0]:.1%}", f"{called[1]:.1%}", *intervals]


def promises(runs: int, rng: numpy.random.Generator) -> Iterator[list[str]]:
    """Yield how often a difference is found, besides what an estimate promises."""
    for fixtures, states in ((4, 3), (4, 6), (12, 3)):
        design, truth = Design(fixtures, 10, states), replace(TYPICAL, fixture=0.0)
        loss = round(detectable(design, truth), 2)
        for name, test, lost in (
            (f"a loss of {loss:.2f} is called worse", "difference", loss),
            ("no difference is shown to be within 0.3", "margin", 0.0),
        ):
            promised = power(lost or MARGIN, design, truth, test)
            world = World(fixtures, states, loss=lost)
            _, verdicts = after(world, world.state_means(runs, rng, differing=False))
            right = ("worse",) if lost else ("not worse", "better", "worse,")
            seen = sum(v.startswith(right) for v in verdicts) / runs
            yield [name, f"{fixtures} x {states}", f"{promised:.1%}", f"{seen:.1%}"]


def shown(heads: list[str], lines: Callable[[], Iterator[list[str]]]) -> None:
    """Print a Markdown table, row by row."""
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for line in lines():
        print(f"| {' | '.join(line)} |", flush=True)
    print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    generator = numpy.random.default_rng(given.seed)
    shown(
        [
            "truth",
            "conversations x compressions",
            "exit 0 / 1 / 3 before",
            "exit 0 / 1 / 3 after",
            "called better",
            "called worse",
            "95 % on these, before -> after",
            "95 % for new, before -> after",
        ],
        lambda: table(given.runs, given.seed),
    )
    shown(
        ["what", "conversations x compressions", "promised", "came out"],
        lambda: promises(given.runs, generator),
    )
