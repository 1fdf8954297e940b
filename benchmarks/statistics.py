"""Do the intervals and verdicts keep their promises? Simulation with known truth.

    python -m benchmarks.statistics            # about six minutes
    python -m benchmarks.statistics --runs 500 # a quick look

Values are made from variances of fixtures, states, probes within states, answers and gradings that
are set apart, rounded and clipped as a rubric's scores are where ``--rubric`` is given. Every row
says what was promised beside what came out.
"""

import argparse
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from compression_eval.analysis.statistics.intervals import Difference, paired_difference
from compression_eval.analysis.statistics.observations import ArmValues, Observation
from compression_eval.analysis.statistics.power import Design, Variances, detectable, power
from compression_eval.analysis.statistics.spread import Graded, spread_parts
from compression_eval.analysis.statistics.verdicts import judge

MEASURES = 9
"""Overall, six dimensions, fact recall and fact survival are tested together."""

TYPICAL = Variances(state=0.05, probe=0.3, answer=0.15, grading=0.05, fixture=0.06)


@dataclass(frozen=True)
class World:
    """What is true, and how it is seen."""

    design: Design
    variances: Variances
    difference: float = 0.0
    failing: float = 0.0
    """Share of the new arm's states that fail, on the harder half of the conversations."""
    rubric: bool = False

    def observations(
        self, rng: random.Random, conversations: int, *, new: bool
    ) -> Iterator[Observation]:
        """Yield the values of one arm; the conversations are the same for both."""
        design, variances = self.design, self.variances
        shared = random.Random(conversations)
        for fixture in range(design.fixtures):
            hardness = shared.gauss(0, 0.6)
            # Half of the variance of the difference comes from each arm.
            of_fixture = rng.gauss(0, variances.fixture**0.5) if new else 0.0
            easy = [shared.gauss(0, 0.8) for _ in range(round(design.probes))]
            for state in range(design.states):
                if new and hardness < 0 and rng.random() < self.failing:
                    continue
                common = rng.gauss(0, variances.state**0.5)
                for probe, ease in enumerate(easy):
                    own = rng.gauss(0, variances.probe**0.5)
                    for _ in range(design.answers):
                        noise = (variances.answer + variances.grading) ** 0.5
                        value = 3.2 + hardness + ease + common + own + rng.gauss(0, noise)
                        value += (self.difference if new else 0.0) + of_fixture
                        if self.rubric:
                            value = min(5.0, max(0.0, round(value)))
                        yield Observation(str(fixture), str(fixture), str(probe), f"{state}", value)

    def arms(self, rng: random.Random) -> tuple[ArmValues, ArmValues]:
        """Return base and new on the same conversations."""
        conversations = rng.randrange(2**32)
        base = ArmValues.of(self.observations(rng, conversations, new=False))
        new = ArmValues.of(self.observations(rng, conversations, new=True))
        return base, new

    def compared(self, rng: random.Random) -> Difference:
        """Return one comparison."""
        return _difference(*self.arms(rng))


def false_verdicts(runs: int, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield how often a run without any true difference has any *better* or *worse*."""
    for fixtures in (4, 12, 40):
        world = World(Design(fixtures, 10, 3), replace(TYPICAL, fixture=0.0))
        small = World(Design(fixtures, 2, 2), Variances(0.6, 0.6, 0.3))
        for name, each in (("typical", world), ("few and noisy", small)):
            wrong = 0
            for _ in range(runs):
                differences = {str(n): each.compared(rng) for n in range(MEASURES)}
                judged = judge(differences, dict.fromkeys(differences, 0.3))
                wrong += any(item.verdict in ("better", "worse") for item in judged.values())
            yield (
                f"a wrong verdict on any of {MEASURES} measures, {fixtures} fixtures, {name}",
                "at most 5 %",
                f"{wrong / runs:.1%}",
            )


def coverage(runs: int, rng: random.Random, *, rubric: bool) -> Iterator[tuple[str, str, str]]:
    """Yield how often each interval holds what it is about."""
    scale = "scores 0 to 5" if rubric else "normal values"
    for fixtures in (4, 12, 40):
        fixed = World(Design(fixtures, 10, 3), replace(TYPICAL, fixture=0.0), rubric=rubric)
        varied = World(Design(fixtures, 10, 3), TYPICAL, rubric=rubric)
        inside = _share(runs, lambda: _holds(fixed.compared(rng), elsewhere=False))  # noqa: B023
        outside = _share(runs, lambda: _holds(varied.compared(rng), elsewhere=True))  # noqa: B023
        yield f"on these conversations, {fixtures} fixtures, {scale}", "95 %", f"{inside:.1%}"
        yield f"for new conversations, {fixtures} fixtures, {scale}", "95 %", f"{outside:.1%}"


def want_of_fixtures(runs: int, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield how often twelve fixtures and more cannot tell about a difference that is not there."""
    for fixtures in (12, 40):
        world = World(Design(fixtures, 10, 3), replace(TYPICAL, fixture=0.0))
        share = _share(
            runs,
            lambda: judge({"m": world.compared(rng)}, {"m": 0.3})["m"].verdict == "cannot tell",  # noqa: B023
        )
        yield f"cannot tell, no true difference, {fixtures} fixtures", "0 %", f"{share:.1%}"


def promises(runs: int, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield how often a true difference is found, beside what an estimate promises."""
    for fixtures, probes, states, answers in ((4, 10, 3, 1), (4, 10, 6, 1), (12, 8, 3, 2)):
        design = Design(fixtures, probes, states, answers)
        smallest = detectable(design, TYPICAL, measures=MEASURES)
        for difference in (0.5, round(smallest, 2)):
            world = World(design, replace(TYPICAL, fixture=0.0), difference=difference)
            found = 0
            for _ in range(runs):
                differences = {"overall": world.compared(rng)}
                # The other measures have no true difference: Holm's first step is what counts.
                flat = replace(world, difference=0.0)
                differences |= {str(n): flat.compared(rng) for n in range(MEASURES - 1)}
                judged = judge(differences, dict.fromkeys(differences, 0.3))
                found += judged["overall"].verdict == "better"
            promised = power(difference, design, TYPICAL, measures=MEASURES)
            yield (
                f"true {difference:.2f} found: {fixtures} fixtures, {probes} probes, "
                f"{states} states, {answers} answers",
                f"{promised:.1%}",
                f"{found / runs:.1%}",
            )


def failing_arm(runs: int, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield how often an arm that fails on hard conversations wins by it."""
    world = World(Design(12, 10, 3), TYPICAL, failing=0.7)
    wins = plain = 0
    for _ in range(runs):
        base, new = world.arms(rng)
        plain += new.mean() - base.mean() >= 0.3
        judged = judge({"m": _difference(base, new)}, {"m": 0.3}, failures_rise=True)
        wins += judged["m"].verdict == "better"
    yield (
        "fails on the hard ones: wins by plain means (what must not count)",
        "",
        f"{plain / runs:.1%}",
    )
    yield "fails on the hard ones: verdict better", "0 %", f"{wins / runs:.1%}"


def parts(runs: int, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield the variances that are found, beside the true ones."""
    truth, count = TYPICAL, {"state": 0.0, "probe": 0.0, "answer": 0.0, "grading": 0.0}
    for _ in range(max(20, runs // 20)):
        found = spread_parts(_graded(rng, truth))
        for name in count:
            count[name] += getattr(found, name) / max(20, runs // 20)
    for name, mean in count.items():
        yield f"variance of {name}, mean found", f"{getattr(truth, name):.3f}", f"{mean:.3f}"


def _graded(rng: random.Random, truth: Variances) -> Iterator[Graded]:
    for unit in range(8):
        for state in range(4):
            common = rng.gauss(0, truth.state**0.5)
            for probe in range(8):
                own = common + rng.gauss(0, truth.probe**0.5)
                for answer in range(2):
                    said = own + rng.gauss(0, truth.answer**0.5)
                    for _ in range(2):
                        value = probe + said + rng.gauss(0, truth.grading**0.5)
                        yield Graded(str(unit), str(probe), str(state), str(answer), value)


def _holds(found: Difference, *, elsewhere: bool) -> bool:
    spread = found.elsewhere if elsewhere else found.here
    if spread is None:
        raise RuntimeError("no interval")
    low, high = spread.interval(found.estimate)
    return low <= 0 <= high


def _difference(base: ArmValues, new: ArmValues) -> Difference:
    found = paired_difference(base, new)
    if found is None:
        raise RuntimeError("no probe in both")
    return found


def _share(runs: int, event: Callable[[], bool]) -> float:
    return sum(event() for _ in range(runs)) / runs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    generator = random.Random(given.seed)
    for title, promised, seen in (
        *coverage(given.runs, generator, rubric=False),
        *coverage(given.runs, generator, rubric=True),
        *want_of_fixtures(given.runs, generator),
        *promises(given.runs // 4, generator),
        *false_verdicts(given.runs // 2, generator),
        *failing_arm(given.runs // 4, generator),
        *parts(given.runs, generator),
    ):
        print(f"{title:<90} {promised:>12} {seen:>8}", flush=True)
