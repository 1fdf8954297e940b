"""Do intervals hold if readers have habits? Simulation of two equal arms.

    python -m benchmarks.readers

Eight conversations, two rounds of compressions, one value a state: its own spread is 0.15, that
between readers is given. Readers are crossed with conversations and answer both arms, or each arm
has its own in each round. Printed is how often the interval on these conversations contains 0.
"""

import random

from compression_eval.analysis.statistics.intervals import ArmValues, Observation, paired_difference

CONVERSATIONS, ROUNDS, SPREAD, RUNS = 8, 2, 0.15, 1500


def _arm(rng: random.Random, habits: dict[object, float], arm: int, readers: int) -> ArmValues:
    def observed(fixture: int, number: int) -> Observation:
        own = (arm, number, fixture % -readers) if readers < 0 else 0
        reader = own or (fixture + number + 2 * arm) % readers
        value = 3 + habits[reader] + rng.gauss(0, SPREAD)
        return Observation(f"f{fixture}", f"f{fixture}", "p", f"s{number}", value)

    return ArmValues.of(observed(f, n) for f in range(CONVERSATIONS) for n in range(ROUNDS))


def coverage(readers: int, habit: float) -> float:
    """Return how often the interval contains the true difference.

    Args:
        readers: Of all arms, crossed with conversations; if negative, of each arm and round.
        habit: Standard deviation between readers.
    """
    rng, found = random.Random(1), 0
    for _ in range(RUNS):
        places = [(a, n, f) for a in (0, 1) for n in range(ROUNDS) for f in range(CONVERSATIONS)]
        habits = {name: rng.gauss(0, habit) for name in [*places, *range(CONVERSATIONS)]}
        difference = paired_difference(*(_arm(rng, habits, arm, readers) for arm in (0, 1)))
        assert difference is not None and difference.here is not None  # noqa: S101, PT018
        low, high = difference.here.interval(difference.estimate)
        found += low <= 0 <= high
    return found / RUNS


if __name__ == "__main__":
    for readers, told in (
        (-1, "1 of each arm and round"),
        (-3, "3 of each arm and round"),
        (8, "8, crossed"),
    ):
        shown = ", ".join(
            f"{habit:.2f}: {coverage(readers, habit):.1%}" for habit in (0.0, 0.05, 0.1)
        )
        print(f"readers {told}; by spread between readers {shown}")
