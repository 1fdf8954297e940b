"""Differences, intervals and verdicts, against scipy and statsmodels where they do the same."""

import math
import random

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.multitest import multipletests

from compression_eval.analysis.statistics.intervals import (
    Difference,
    Spread,
    paired_difference,
)
from compression_eval.analysis.statistics.observations import ArmValues, Observation
from compression_eval.analysis.statistics.verdicts import judge


def _arm(
    rng: random.Random, *, fixtures: int, probes: int, states: int, shift: float = 0.0
) -> ArmValues:
    return ArmValues.of(
        Observation(f"f{f}", f"f{f}", f"p{p}", f"s{s}", shift + f + rng.gauss(0, 1))
        for f in range(fixtures)
        for p in range(probes)
        for s in range(states)
    )


def _found(base: ArmValues, new: ArmValues) -> Difference:
    found = paired_difference(base, new)
    assert found is not None
    return found


def test_one_conversation_and_probe_is_the_standard_error_of_welch() -> None:
    rng = random.Random(1)
    base, new = (_arm(rng, fixtures=1, probes=1, states=n) for n in (5, 9))
    found = _found(base, new)
    a, b = (list(arm.by_item["f0", "p0"].values()) for arm in (base, new))
    welch = stats.ttest_ind(b, a, equal_var=False)
    assert found.here is not None
    assert found.estimate / found.here.error == pytest.approx(welch.statistic)
    assert found.elsewhere is None


def test_many_states_give_the_interval_of_welch() -> None:
    rng = random.Random(2)
    base, new = (_arm(rng, fixtures=1, probes=1, states=400) for _ in range(2))
    found = _found(base, new)
    a, b = (list(arm.by_item["f0", "p0"].values()) for arm in (base, new))
    expected = stats.ttest_ind(b, a, equal_var=False)
    assert found.here is not None
    interval = expected.confidence_interval()
    assert found.here.interval(found.estimate) == pytest.approx(
        (interval.low, interval.high), abs=1e-3
    )
    assert found.here.p_value(found.estimate) == pytest.approx(expected.pvalue, abs=1e-3)


def test_for_new_conversations_is_the_cluster_robust_interval_of_statsmodels() -> None:
    rng = random.Random(3)
    observations = [
        [
            Observation(f"f{f}", f"f{f}@{cut}", f"p{p}", f"s{s}", f * arm + rng.gauss(0, 1))
            for f in range(7)
            for cut in (1, 2)
            for p in range(2 + f)
            for s in range(3)
        ]
        for arm in (0, 1)
    ]
    base, new = (ArmValues.of(each) for each in observations)
    found = _found(base, new)
    old, later = base.probe_means(), new.probe_means()
    items = sorted(old)
    differences = np.array([later[item] - old[item] for item in items])
    groups = np.array([int(base.fixture_of[unit][1:]) for unit, _ in items])
    model = OLS(differences, np.ones(len(items))).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    assert found.elsewhere is not None
    assert found.estimate == pytest.approx(model.params[0])
    assert found.elsewhere.error == pytest.approx(model.bse[0])
    assert found.elsewhere.interval(found.estimate) == pytest.approx(model.conf_int()[0])


def test_one_probe_per_fixture_is_the_paired_t_test_of_scipy() -> None:
    rng = random.Random(4)
    base, new = (_arm(rng, fixtures=5, probes=1, states=1, shift=n) for n in (0, 1))
    found = _found(base, new)
    expected = stats.ttest_rel(list(new.probe_means().values()), list(base.probe_means().values()))
    assert found.elsewhere is not None
    assert found.elsewhere.p_value(found.estimate) == pytest.approx(expected.pvalue)
    assert found.here is None


def test_probes_of_one_state_are_not_taken_for_independent() -> None:
    """Ten probes that move together with their state say no more than one."""
    rng = random.Random(5)
    moves = {(f, s): rng.gauss(0, 1) for f in range(4) for s in range(3)}

    def arm(probes: int) -> ArmValues:
        return ArmValues.of(
            Observation(f"f{f}", f"f{f}", f"p{p}", f"s{s}", moves[f, s])
            for f in range(4)
            for p in range(probes)
            for s in range(3)
        )

    one, ten = _found(arm(1), arm(1)), _found(arm(10), arm(10))
    assert one.here is not None
    assert ten.here is not None
    assert ten.here.error == pytest.approx(one.here.error)


def test_answers_from_one_state_do_not_count_as_states() -> None:
    def arm(answers: int) -> ArmValues:
        return ArmValues.of(
            Observation("f", "f", "p", f"s{s}", float(s)) for s in range(3) for _ in range(answers)
        )

    one, five = _found(arm(1), arm(1)), _found(arm(5), arm(5))
    assert one == five


def test_only_probes_with_a_value_in_both_are_compared() -> None:
    base = ArmValues.of(
        Observation("f", "f", probe, f"s{s}", value)
        for probe, value in (("easy", 5.0), ("hard", 0.0))
        for s in range(3)
    )
    new = ArmValues.of(Observation("f", "f", "easy", f"s{s}", 4.0) for s in range(3))
    found = _found(base, new)
    assert (found.base, found.new, found.probes) == (5.0, 4.0, 1)
    assert paired_difference(base, ArmValues.of([])) is None


def _difference(estimate: float, error: float, freedom: float = 30) -> Difference:
    return Difference(
        base=3.0,
        new=3.0 + estimate,
        probes=40,
        fixtures=4,
        states=(12, 12),
        here=Spread(error, freedom),
        elsewhere=None,
    )


@pytest.mark.parametrize(
    ("estimate", "error", "expected"),
    [
        (0.5, 0.1, "better"),
        (-0.5, 0.1, "worse"),
        (0.3, 0.01, "better"),
        (0.29, 0.001, "no change"),
        (0.0, 0.05, "no change"),
        (0.5, 0.4, "cannot tell"),
        (0.0, 0.4, "cannot tell"),
        (0.2, 0.1, "cannot tell"),
    ],
)
def test_verdicts(estimate: float, error: float, expected: str) -> None:
    assert judge({"m": _difference(estimate, error)}, {"m": 0.3})["m"].verdict == expected


def test_several_measures_are_accounted_for_as_statsmodels_does() -> None:
    differences = {str(n): _difference(0.3 + n / 50, 0.15) for n in range(6)}
    judged = judge(differences, dict.fromkeys(differences, 0.3))
    raw = [d.here.p_value(d.estimate) for d in differences.values() if d.here]
    expected = multipletests(raw, method="holm")[1]
    assert [item.p_value for item in judged.values()] == pytest.approx(list(expected))
    alone = judge({"5": differences["5"]}, {"5": 0.3})["5"]
    assert alone.verdict == "better"
    assert judged["0"].verdict == "cannot tell"


def test_nothing_is_better_if_failures_rise_but_worse_stays_worse() -> None:
    differences = {"up": _difference(1.0, 0.1), "down": _difference(-1.0, 0.1)}
    judged = judge(differences, {"up": 0.3, "down": 0.3}, failures_rise=True)
    assert (judged["up"].verdict, judged["down"].verdict) == ("cannot tell", "worse")


def test_no_spread_is_certainty_only_for_mechanical_arms() -> None:
    sure = {"m": _difference(0.0, 0.0, math.inf)}
    assert judge(sure, {"m": 0.3})["m"].verdict == "cannot tell"
    assert judge(sure, {"m": 0.3}, same_every_time=True)["m"].verdict == "no change"
    moved = {"m": _difference(1.0, 0.0, math.inf)}
    assert judge(moved, {"m": 0.3}, same_every_time=True)["m"].verdict == "better"
