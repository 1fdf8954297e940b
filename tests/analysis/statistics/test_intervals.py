"""Means, differences, intervals and verdicts, against scipy and statsmodels."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import WLS
from statsmodels.stats.multitest import multipletests

from compression_eval.analysis.statistics.intervals import (
    ArmValues,
    Difference,
    Observation,
    Spread,
    arm_mean,
    paired_difference,
    retention,
)
from compression_eval.analysis.statistics.significance import Failing, decide, judge


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


@pytest.mark.parametrize(("states", "digits"), [((5, 9), 0), ((400, 400), 3)])
def test_one_conversation_and_probe_is_the_test_of_welch(
    states: tuple[int, int], digits: int
) -> None:
    """Its standard error always; its interval where the degrees of freedom are known well."""
    rng = random.Random(1)
    base, new = (_arm(rng, fixtures=1, probes=1, states=n) for n in states)
    found = _found(base, new)
    a, b = (list(arm.by_item["f0", "p0"].values()) for arm in (base, new))
    welch = stats.ttest_ind(b, a, equal_var=False)
    assert found.here is not None
    assert found.elsewhere is None
    assert found.estimate / found.here.error == pytest.approx(welch.statistic)
    if digits:
        interval, close = welch.confidence_interval(), {"abs": 10**-digits}
        expected = pytest.approx((interval.low, interval.high), **close)
        assert found.here.interval(found.estimate) == expected
        assert found.here.p_value(found.estimate) == pytest.approx(welch.pvalue, **close)


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
    # Each conversation counts the same, however many probes it has.
    weights = 1 / np.bincount(groups)[groups]
    model = WLS(differences, np.ones(len(items)), weights=weights).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    assert found.elsewhere is not None
    assert found.estimate == pytest.approx(model.params[0])
    assert found.elsewhere.error == pytest.approx(model.bse[0])
    assert found.elsewhere.interval(found.estimate) == pytest.approx(model.conf_int()[0])


def test_on_these_conversations_is_the_sum_of_the_variances_of_the_conversations() -> None:
    """Recomputed with numpy: an array per conversation, a row per state, a column per probe."""
    rng = random.Random(9)
    sizes = (2, 5, 11)
    arms = [
        [np.array([[rng.gauss(0, 1) for _ in range(n)] for _ in range(4)]) for n in sizes]
        for _ in range(2)
    ]
    base, new = (
        ArmValues.of(
            Observation(f"f{f}", f"f{f}", f"p{p}", f"s{s}", float(value))
            for f, table in enumerate(tables)
            for (s, p), value in np.ndenumerate(table)
        )
        for tables in arms
    )
    found = _found(base, new)
    variances = np.array([stats.sem(table.mean(axis=1)) ** 2 for arm in arms for table in arm])
    assert found.here is not None
    assert found.here.error == pytest.approx(np.sqrt(variances.sum()) / len(sizes))
    freedom = variances.sum() ** 2 / (variances**2 / (3 + 2)).sum() - 2
    assert found.here.freedom == pytest.approx(min(max(freedom, 3), 18))


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
    ("estimate", "error", "why"),
    [
        (0.29, 0.05, "better, whether by 0.30 is open"),
        (0.5, 0.05, "better, by at least the margin of 0.30"),
        (0.5, 0.11, "better, whether by 0.30 is open"),  # 0.28 is in the 95 % interval
        (0.15, 0.05, "better, by less than the margin of 0.30"),
        (-0.29, 0.05, "worse, whether by 0.30 is open"),
        (-0.3, 0.0, "worse, by at least the margin of 0.30"),
        (-0.15, 0.05, "worse, by less than the margin of 0.30"),
        (0.0, 0.05, "not worse by more than 0.30, nor better"),
        (0.28, 0.2, "not worse by more than 0.30, whether it is better is open"),
        (-0.28, 0.5, "whether worse by more than 0.30 cannot be told"),
    ],
)
def test_what_decides_and_what_stands_beside_it_say_the_same(
    estimate: float, error: float, why: str
) -> None:
    difference = _difference(estimate, error)
    judged, decided = judge({"m": difference}, {"m": 0.3})["m"], decide(difference, 0.3)
    assert judged.why == ", ".join(filter(None, decided.words)) == why
    assert decided.verdict == judged.verdict.replace("no change", "not worse")


def test_several_measures_are_accounted_for_as_statsmodels_does() -> None:
    differences = {str(n): _difference(0.3 + n / 50, 0.15) for n in range(6)}
    judged = judge(differences, dict.fromkeys(differences, 0.3))
    raw = [d.here.p_value(d.estimate) for d in differences.values() if d.here]
    expected = multipletests(raw, method="holm")[1]
    assert [item.p_value for item in judged.values()] == pytest.approx(list(expected))
    alone = judge({"5": differences["5"]}, {"5": 0.3})["5"]
    assert alone.verdict == "better"
    assert judged["0"].verdict == "not worse"


def test_runs_that_all_came_out_the_same_are_a_sign_test() -> None:
    for runs in (3, 5, 12):
        spread = Spread(0.0, runs - 1)
        expected = stats.binomtest(runs, runs, 0.5, alternative="greater").pvalue
        assert spread.tail(0.3) == pytest.approx(expected)
        assert spread.p_value(-1.0) == pytest.approx(min(1, 2 * expected))
        assert (spread.tail(-0.1), spread.p_value(0.0)) == (1.0, 1.0)
    few, many = (Difference(3, 3, 9, 3, (9, 9), Spread(0.0, n), None) for n in (3, 8))
    assert judge({"m": few}, {"m": 0.3})["m"].verdict == "cannot tell"
    assert judge({"m": many}, {"m": 0.3})["m"].verdict == "no change"


@pytest.mark.parametrize(
    ("estimate", "error", "expected"),
    [
        (-0.1, 0.1, "not worse"),
        (0.25, 0.1, "better"),
        (-0.1, 0.02, "worse, by less than the margin"),
        (-0.25, 0.1, "worse"),
        (-0.3, 0.3, "cannot tell"),
        (-0.4, 0.0, "worse"),
    ],
)
def test_one_measure_decides(estimate: float, error: float, expected: str) -> None:
    found = decide(_difference(estimate, error, 30), 0.3)
    assert found.verdict == expected
    assert not found.over_conversations
    if error:
        # The same two tests in scipy, from the summary of a sample that has these moments.
        spread = error * math.sqrt(31)
        sample = np.array([-1.0, 1.0] * 15 + [0.0])
        sample = sample / sample.std(ddof=1) * spread + estimate
        assert found.p_value == pytest.approx(stats.ttest_1samp(sample, 0).pvalue)
        loss = stats.ttest_1samp(sample, -0.3, alternative="greater")
        assert found.p_margin == pytest.approx(loss.pvalue)


def test_one_compression_each_is_decided_over_conversations() -> None:
    rng = random.Random(11)
    base, new = (_arm(rng, fixtures=8, probes=2, states=1, shift=-3 * n) for n in (0, 1))
    found = decide(_found(base, new), 0.3)
    expected = stats.ttest_rel(
        list(new.conversation_means().values()), list(base.conversation_means().values())
    )
    assert (found.verdict, found.over_conversations) == ("worse", True)
    assert found.p_value == pytest.approx(expected.pvalue)
    lone = decide(replace(_difference(0.0, 0.1), here=None), 0.3)
    assert (lone.verdict, lone.p_value, lone.p_margin) == ("cannot tell", None, None)


def test_failures_are_a_family_with_the_difference() -> None:
    lower = _difference(-0.2, 0.09)
    alone = decide(lower, 0.3)
    assert alone.p_value is not None
    assert (alone.verdict, alone.p_value < 0.05) == ("worse", True)
    beside = decide(lower, 0.3, Failing(0.9, 0.0))
    assert beside.p_value == pytest.approx(2 * alone.p_value)
    assert beside.verdict == "cannot tell"
    assert decide(lower, 0.3, Failing(0.01, -0.5)).verdict == "fails more"
    equal = _difference(0.0, 0.05)
    assert decide(equal, 0.3, Failing(0.2, -0.25)).verdict == "not worse"
    held = decide(equal, 0.3, Failing(0.2, -0.5))
    assert (held.verdict, held.blocked) == ("cannot tell", True)
    higher = _difference(0.3, 0.05)
    assert decide(higher, 0.3, Failing(0.2, -0.1)).verdict == "not worse"
    assert decide(higher, 0.3, Failing(0.9, 0.0)).verdict == "better"


def arm(values: dict[tuple[str, str, str], float]) -> ArmValues:
    """Return an arm from values by fixture, probe and state."""
    return ArmValues.of(
        Observation(f, f, probe, s, value) for (f, probe, s), value in values.items()
    )


def random_arm(seed: int, centre: float) -> ArmValues:
    source = random.Random(seed)
    keys = ((f"f{f}", f"p{p}", f"s{s}") for f in range(6) for p in range(4) for s in range(3))
    return arm({key: centre + source.gauss(0, 0.4) for key in keys})


def test_no_value_is_no_mean() -> None:
    assert arm_mean(arm({})) is None
    assert retention(arm({}), random_arm(1, 1), random_arm(2, 4), closest=0.5) is None


def test_a_share_lies_between_floor_and_ceiling() -> None:
    floor, ceiling = random_arm(1, 1), random_arm(2, 4)
    low, high = (retention(each, floor, ceiling, closest=0.5) for each in (floor, ceiling))
    assert low is not None
    assert high is not None
    assert (low.share, high.share) == pytest.approx((0, 1))
    close = retention(random_arm(1, 2), random_arm(2, 2), random_arm(3, 2.1), closest=0.5)
    assert close is not None
    assert (close.share, close.here, close.elsewhere) == (None, None, None)
    # Only the probes that all three have count.
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
