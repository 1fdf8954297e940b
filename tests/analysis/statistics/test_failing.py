"""The exact test of failures, besides what scipy computes and next to counting all choices."""

import random
from itertools import combinations, product

import pytest
from numpy import array
from pandas import DataFrame
from scipy import stats

from compression_eval.analysis.comparison.measures import chance_of_rise


def _side(failed: dict[str, list[int]], probes: int = 1) -> DataFrame:
    """Return samples of a side: by conversation, how many probes failed in each compression."""
    return DataFrame(
        {"unit": unit, "log_path": "log", "state": str(state), "failure": "error" * (probe < count)}
        for unit, counts in failed.items()
        for state, count in enumerate(counts)
        for probe in range(probes)
    )


def test_one_conversation_is_the_exact_test_of_fisher() -> None:
    base, new = [1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 1]
    expected = stats.fisher_exact(array([[5, 1], [1, 6]]), alternative="greater").pvalue
    assert chance_of_rise(_side({"f": base}), _side({"f": new})) == pytest.approx(expected)


def test_compressions_that_fail_as_a_whole_count_once() -> None:
    """Ten probes that fail with their state say no more than one."""
    base, new = {"f": [0, 0, 0], "g": [0, 1, 0]}, {"f": [1, 0, 1], "g": [1, 1, 0]}
    whole = [
        {unit: [10 * n for n in counts] for unit, counts in each.items()} for each in (base, new)
    ]
    once = chance_of_rise(_side(base), _side(new))
    assert chance_of_rise(_side(whole[0], 10), _side(whole[1], 10)) == pytest.approx(once)


def test_it_is_what_counting_all_choices_gives() -> None:
    rng = random.Random(6)
    base, new = ({f: [rng.randrange(4) for _ in range(3)] for f in "abc"} for _ in range(2))
    choices = [list(combinations([*base[f], *new[f]], 3)) for f in "abc"]
    sums = [sum(map(sum, each)) for each in product(*choices)]
    observed = sum(map(sum, new.values()))
    expected = sum(total >= observed for total in sums) / len(sums)
    assert chance_of_rise(_side(base, 4), _side(new, 4)) == pytest.approx(expected)
