"""What a design can find, and where spread comes from."""

import math
import random
from collections.abc import Iterator

import pytest
from statsmodels.stats.power import TTestIndPower

from compression_eval.analysis.statistics.power import (
    Design,
    Variances,
    detectable,
    power,
    standard_error,
)
from compression_eval.analysis.statistics.spread import Graded, spread_parts

NOISY = Variances(state=0.2, probe=0.4, answer=0.3, grading=0.1, fixture=0.5)


def test_a_single_conversation_without_threshold_is_the_t_test_of_statsmodels() -> None:
    """With many states, the estimated degrees of freedom are those of the plain t-test."""
    design, variances = Design(fixtures=1, probes=1, states=30), Variances(0.5, 0.3, 0.2)
    expected = TTestIndPower().power(effect_size=0.7, nobs1=30, alpha=0.05)
    assert power(0.7, design, variances, threshold=0.0) == pytest.approx(expected, abs=0.01)


def test_more_of_anything_makes_the_error_smaller_and_only_states_help_against_states() -> None:
    base = Design(4, 10, 3)
    error = standard_error(base, NOISY)
    assert standard_error(Design(8, 10, 3), NOISY) == pytest.approx(error / math.sqrt(2))
    assert standard_error(Design(4, 10, 6), NOISY) == pytest.approx(error / math.sqrt(2))
    state_alone = math.sqrt(2 * NOISY.state / 12)
    assert standard_error(Design(4, 10_000, 3, 1), NOISY) == pytest.approx(state_alone, rel=0.01)
    assert standard_error(base, NOISY, elsewhere=True) > error


def test_the_detectable_difference_has_the_power_that_was_asked_for() -> None:
    design = Design(4, 10, 3)
    found = detectable(design, NOISY, measures=8)
    assert power(found, design, NOISY, measures=8) == pytest.approx(0.8, abs=0.01)
    assert found > detectable(design, NOISY, measures=1) > 0.3


def test_one_compression_can_detect_nothing() -> None:
    assert power(5.0, Design(4, 10, 1), NOISY) == 0
    assert detectable(Design(4, 10, 1), NOISY) == math.inf


def _graded(
    rng: random.Random, truth: Variances, *, states: int, answers: int, gradings: int
) -> Iterator[Graded]:
    for unit in range(60):
        for state in range(states):
            common = rng.gauss(0, truth.state**0.5)
            for probe in range(6):
                own = common + probe + rng.gauss(0, truth.probe**0.5)
                for answer in range(answers):
                    said = own + rng.gauss(0, truth.answer**0.5)
                    for _ in range(gradings):
                        value = said + rng.gauss(0, truth.grading**0.5)
                        yield Graded(f"u{unit}", f"p{probe}", f"s{state}", f"a{answer}", value)


def test_spread_is_split_into_compressions_answers_and_gradings() -> None:
    found = spread_parts(_graded(random.Random(1), NOISY, states=4, answers=3, gradings=3))
    assert found.state == pytest.approx(NOISY.state, rel=0.25)
    assert found.probe == pytest.approx(NOISY.probe, rel=0.15)
    assert found.answer == pytest.approx(NOISY.answer, rel=0.1)
    assert found.grading == pytest.approx(NOISY.grading, rel=0.1)
    assert found.missing == []


def test_what_was_not_repeated_cannot_be_split_off() -> None:
    once = spread_parts(_graded(random.Random(1), NOISY, states=3, answers=1, gradings=1))
    assert (once.answer, once.grading) == (None, None)
    assert once.probe == pytest.approx(0.4 + 0.3 + 0.1, rel=0.1)
    assert len(once.missing) == 2
    single = spread_parts(_graded(random.Random(1), NOISY, states=1, answers=1, gradings=1))
    assert single.state is None
    assert single.variances() is None
