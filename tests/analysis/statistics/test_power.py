"""What a design can find, and what would tell."""

from dataclasses import replace

import pytest
from statsmodels.stats.power import TTestIndPower

from compression_eval.analysis.statistics.intervals import Difference, Spread
from compression_eval.analysis.statistics.power import (
    Design,
    More,
    Variances,
    detectable,
    power,
    standard_error,
    what_would_tell,
)

NOISY = Variances(state=0.2, probe=0.4, answer=0.3, grading=0.1, fixture=0.5)


def test_a_single_conversation_is_the_t_test_of_statsmodels() -> None:
    """With many states, the estimated degrees of freedom are those of the plain t-test."""
    design, variances = Design(fixtures=1, probes=1, states=30), Variances(0.5, 0.3, 0.2)
    expected = TTestIndPower().power(effect_size=0.7, nobs1=30, alpha=0.05)
    assert power(0.7, design, variances) == pytest.approx(expected, abs=0.01)
    larger = TTestIndPower().power(effect_size=0.7, nobs1=30, alpha=0.05, alternative="larger")
    assert power(0.7, design, variances, "margin") == pytest.approx(larger, abs=0.01)


def test_the_detectable_difference_has_the_power_that_was_asked_for() -> None:
    design = Design(4, 10, 3)
    found = detectable(design, NOISY)
    assert power(found, design, NOISY) == pytest.approx(0.8, abs=0.01)
    assert detectable(Design(8, 10, 3), NOISY) < found < detectable(Design(4, 10, 2), NOISY)


def test_what_would_tell_has_the_power_that_an_estimate_promises() -> None:
    design = Design(4, 10, 3)
    error = standard_error(design, NOISY)
    seen = Difference(3.0, 2.95, 40, 4, (12, 12), Spread(error, 14), Spread(error, 3))
    more = what_would_tell(seen, 0.3)
    assert more.states is not None
    assert more.fixtures is not None
    for found in (Design(4, 10, more.states), Design(more.fixtures, 10, 3)):
        assert power(0.25, found, NOISY, "margin") >= 0.8
    for fewer in (Design(4, 10, more.states - 1), Design(more.fixtures - 1, 10, 3)):
        assert power(0.25, fewer, NOISY, "margin") < 0.8
    # From single compressions it is only known what more conversations do.
    once = what_would_tell(replace(seen, here=None), 0.3)
    assert once.states is None
    assert once.fixtures is not None
    assert once.fixtures > 4
    assert what_would_tell(replace(seen, here=None, elsewhere=None), 0.3) == More(None, None)
    # Nobody can tell by how much exactly something lies on the margin.
    least = what_would_tell(replace(seen, new=3.0001, here=Spread(9.0, 14)), 0.3)
    assert least == More(None, None)
    flat = replace(seen, fixtures=1, states=(3, 3), here=Spread(0.0, 2))
    assert what_would_tell(flat, 0.3) == More(6, 2)
