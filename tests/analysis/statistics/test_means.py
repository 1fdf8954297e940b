"""Means of one arm and normalised retention, beside what can be computed by other means."""

import math
import random

import pytest
from scipy import stats

from compression_eval.analysis.statistics.intervals import (
    ArmValues,
    Observation,
    arm_mean,
    retention,
)


def arm(values: dict[tuple[str, str, str], float]) -> ArmValues:
    """Return an arm from values by fixture, probe and state."""
    return ArmValues.of(
        Observation(fixture, fixture, probe, state, value)
        for (fixture, probe, state), value in values.items()
    )


def random_arm(seed: int, centre: float, fixtures: int = 6) -> ArmValues:
    source = random.Random(seed)
    return arm(
        {
            (f"f{f}", f"p{p}", f"s{s}"): centre + source.gauss(0, 0.4)
            for f in range(fixtures)
            for p in range(4)
            for s in range(3)
        }
    )


def test_one_fixture_is_the_plain_t_interval_of_its_states() -> None:
    found = arm_mean(arm({("f", "p", f"s{n}"): value for n, value in enumerate([1.0, 2.0, 4.0])}))
    assert found is not None
    assert (found.probes, found.fixtures, found.states) == (1, 1, 3)
    assert found.elsewhere is None
    assert found.here is not None
    expected = stats.t.interval(0.95, 2, loc=7 / 3, scale=stats.sem([1.0, 2.0, 4.0]))
    assert found.here == pytest.approx(expected)


def test_new_conversations_are_a_t_interval_over_fixtures() -> None:
    values = [1.0, 2.0, 2.5, 4.0]
    found = arm_mean(arm({(f"f{n}", "p", "s"): value for n, value in enumerate(values)}))
    assert found is not None
    assert found.here is None
    assert found.elsewhere is not None
    expected = stats.t.interval(0.95, 3, loc=found.mean, scale=stats.sem(values))
    assert found.elsewhere == pytest.approx(expected)


def test_no_value_is_no_mean() -> None:
    assert arm_mean(arm({})) is None
    assert retention(arm({}), random_arm(1, 1), random_arm(2, 4), closest=0.5) is None


def test_floor_and_ceiling_are_nothing_and_all() -> None:
    floor, ceiling = random_arm(1, 1), random_arm(2, 4)
    low, high = (retention(each, floor, ceiling, closest=0.5) for each in (floor, ceiling))
    assert low is not None
    assert high is not None
    assert (low.share, high.share) == pytest.approx((0, 1))


def test_close_controls_give_no_share() -> None:
    found = retention(random_arm(1, 2), random_arm(2, 2), random_arm(3, 2.1), closest=0.5)
    assert found is not None
    assert (found.share, found.here, found.elsewhere) == (None, None, None)


def test_only_shared_probes_count() -> None:
    one = arm({("f", "p", "s"): 2.0, ("f", "q", "s"): 5.0})
    floor, ceiling = arm({("f", "p", "s"): 1.0}), arm({("f", "p", "s"): 5.0})
    found = retention(one, floor, ceiling, closest=0.5)
    assert found is not None
    assert (found.share, found.probes, found.here) == (0.25, 1, None)


def test_the_limits_cover_the_truth_as_often_as_they_say() -> None:
    inside = {"here": 0, "elsewhere": 0}
    rounds = 400
    for seed in range(rounds):
        three = [random_arm(3 * seed + n, centre) for n, centre in enumerate((2.2, 1.0, 4.0))]
        found = retention(*three, closest=0.5)
        assert found is not None
        for name in inside:
            limits = getattr(found, name)
            inside[name] += limits[0] <= 0.4 <= limits[1]
    for covered in inside.values():
        assert covered / rounds == pytest.approx(0.95, abs=0.03)


def test_limits_that_would_be_unbounded_are_left_out() -> None:
    wide = {("f", "p", f"s{n}"): value for n, value in enumerate([0.0, 5.0, 4.0])}
    floor = arm({("f", "p", f"s{n}"): value for n, value in enumerate([0.0, 4.0, 1.0])})
    found = retention(arm(wide), floor, arm(wide), closest=0.5)
    assert found is not None
    assert found.share is not None
    assert not math.isnan(found.share)
    assert found.here is None
