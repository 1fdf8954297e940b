import random
from collections.abc import Sequence

import pytest

from compression_eval.calibration.scoring import compare


def test_a_lenient_grader_keeps_the_ranks_and_loses_agreement() -> None:
    right = [0.0, 1, 2, 3, 4]
    found = compare([value + 1 for value in right], right)
    assert found.rank == pytest.approx(1)
    assert found.bias == found.error == 1
    assert 0 < found.kappa < 1


def _categories_kappa(given: Sequence[int], right: Sequence[int]) -> float:
    """The textbook's form, over tables of categories."""
    n = len(given)
    observed = sum((x - y) ** 2 for x, y in zip(given, right, strict=True)) / n
    expected = sum((x - y) ** 2 for x in given for y in right) / n**2
    return 1 - observed / expected


def test_kappa_is_the_textbooks_and_ranks_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    draw = random.Random(7)
    right = [draw.randint(0, 5) for _ in range(60)]
    given = [min(5, max(0, value + draw.randint(-2, 2))) for value in right]
    found = compare(given, right)
    assert found.kappa == pytest.approx(_categories_kappa(given, right))
    assert found.rank == pytest.approx(float(stats.spearmanr(given, right).statistic))
    assert found.low < found.kappa < found.high


def test_the_interval_is_the_same_every_time_and_narrows_with_answers() -> None:
    draw = random.Random(1)
    right = [draw.uniform(0, 5) for _ in range(200)]
    given = [value + draw.gauss(0, 1) for value in right]
    many, few = compare(given, right), compare(given[:20], right[:20])
    assert compare(given, right) == many
    assert many.high - many.low < few.high - few.low


def test_answers_of_one_group_are_drawn_together() -> None:
    given, right = [5, 0, 4, 1, 5, 2, 0, 3], [5, 1, 4, 0, 3, 2, 0, 5]
    alone = compare(given, right)
    # Said three times over, nothing more is known.
    names = [f"state {place % 8}" for place in range(24)]
    again = compare(given * 3, right * 3, names)
    assert again.kappa == pytest.approx(alone.kappa)
    assert again.high - again.low == pytest.approx(alone.high - alone.low, abs=0.06)
    assert compare(given * 3, right * 3).low > again.low
