"""Which arms another one dominates and which differ, and by whose word facts survive."""

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame, concat

from compression_eval.analysis.comparison.measures import HEADLINE
from compression_eval.analysis.logs import find_logs
from compression_eval.analysis.report.figures import Share, common, figures, read_frames, survival
from compression_eval.analysis.report.sections import between, findings, summary
from compression_eval.analysis.report.tradeoff import (
    Frontier,
    Point,
    ReportedArm,
    Role,
    Whole,
    frontier,
    retained,
    same_answers,
)
from compression_eval.text.tables import Cell


def arm(name: str, role: Role = "") -> ReportedArm:
    return ReportedArm(
        name, name, "{}", "", role, "m", "m", "g", False, False, ["log"], 2, 4, 4, ""
    )


def samples(scores: dict[str, float], tokens: dict[str, float]) -> DataFrame:
    """Return an arm's samples: one probe on each conversation, two compressions of it."""
    return DataFrame(
        [
            {
                "fixture": unit,
                "unit": unit,
                "probe_id": "probe",
                "log_path": "log",
                "state": state,
                **dict.fromkeys(HEADLINE, score + shift),
                "failure": "failed" if math.isnan(score) else "",
                "scored": not math.isnan(score),
                "tokens_state": math.nan if math.isnan(score) else tokens[unit],
            }
            for unit, score in scores.items()
            for state, shift in (("0", -0.1), ("1", 0.1))
        ]
    )


def made(**of: tuple[dict[str, float], dict[str, float]]) -> Frontier:
    by_arm = {name: samples(*given) for name, given in of.items()}
    arms = [
        replace(
            arm(name, "ceiling" if name == "full" else ""),
            samples=len(own),
            scored=int(own["scored"].sum()),
        )
        for name, own in by_arm.items()
    ]
    every = concat([own.assign(arm=name) for name, own in by_arm.items()], ignore_index=True)
    beside, _ = common(every)
    return frontier(arms, {name: beside[beside["arm"] == name] for name in of})


def points(**of: tuple[dict[str, float], dict[str, float]]) -> dict[str, Point]:
    return {point.arm: point for point in made(**of).points}


SMALL, LARGE = {"a": 100.0, "b": 300.0}, {"a": 400.0, "b": 600.0}


def test_larger_and_worse_is_dominated() -> None:
    found = points(
        full=({"a": 5, "b": 5}, {"a": 9000, "b": 9000}),
        good=({"a": 4, "b": 3}, SMALL),
        better=({"a": 4, "b": 4}, LARGE),
        worse=({"a": 2, "b": 3}, LARGE),
    )
    assert found["worse"].dominated_by in {"good", "better"}
    assert [found[name].dominated_by for name in ("full", "good", "better")] == ["", "", ""]
    assert (found["good"].tokens, found["good"].quality) == (200, 3.5)
    low, high = found["good"].interval or (0, 0)
    assert low < 3.5 < high


def test_quality_and_size_are_of_the_conversations_that_no_arm_failed_on() -> None:
    sizes = {"a": 100.0, "b": 300.0, "big": 5000.0}
    arms = {
        "full": ({"a": 5.0, "b": math.nan, "big": 5.0}, sizes),
        "steady": ({"a": 4.0, "b": 4.0, "big": 1.0}, sizes),
        "failing": ({"a": 4.0, "b": 4.0, "big": math.nan}, dict.fromkeys(sizes, 90.0)),
        "seldom": ({"a": 4.0, "b": math.nan, "big": math.nan}, SMALL),
    }
    found = made(**arms)
    steady, failing = found.points
    assert (steady.arm, steady.tokens, steady.quality) == ("steady", 200, 4)
    # Smaller and as good, but only where it did not fail.
    assert (failing.tokens, failing.quality, steady.dominated_by) == (90, 4, "")
    assert (found.probes, found.conversations) == (2, (2, 3))
    assert found.left_out == ["full", "seldom"]
    assert found.whole["steady"] == Whole("", 1800, 3)
    assert found.whole["failing"] == Whole("2 of 6 failed", 90, 2)
    assert [line.partition("reaches")[0] for line in findings(found)] == [
        "At about 90 tokens: failing ",
        "At about 200 tokens: steady ",
    ]
    assert "4.00 of 5 on these 2 conversations (2 of 6 failed)" in findings(found)[0]
    # Then no conversation is left out, and nothing is told of any.
    without = made(steady=arms["steady"], other=arms["steady"])
    assert (without.probes, without.whole, without.points[0].tokens) == (3, {}, 1800)


def test_a_failed_grader_takes_the_probe_from_all() -> None:
    one = samples({"easy": 4, "hard": 1}, {"easy": 100, "hard": 100}).assign(arm="one")
    other = samples({"easy": 3, "hard": math.nan}, {"easy": 100, "hard": 100}).assign(arm="other")
    other["failure"] = other["failure"].replace("failed", "grader_failed: error")
    beside, probes = common(concat([one, other], ignore_index=True))
    assert (probes, set(beside["unit"])) == (1, {"easy"})
    # In one of two epochs is enough: the other one alone would stand for both.
    other.loc[2, "knowledge"] = 1.0
    other.loc[2, "failure"] = ""
    other.loc[2, "scored"] = True
    beside, probes = common(concat([one, other], ignore_index=True))
    assert (probes, len(beside), set(beside["unit"])) == (1, 4, {"easy"})


def test_a_failure_counts_only_on_measures_that_the_probe_is_graded_on() -> None:
    one = samples({"a": 4}, {"a": 100}).assign(arm="one", artifact_trail=math.nan)
    other = samples({"a": math.nan, "b": 3}, {"a": 100, "b": 100}).assign(arm="other")
    other.loc[other["unit"] == "a", "artifact_trail"] = math.nan
    beside, probes = common(concat([one, other], ignore_index=True))
    failed = beside[beside["arm"] == "other"]
    assert probes == 1
    assert set(failed["knowledge"]) == {0.0}
    assert failed["artifact_trail"].isna().all()


def test_the_best_of_equal_arms_leads_by_chance() -> None:
    arms = {f"arm {n}": ({"a": 3 + n / 100, "b": 3.0}, SMALL) for n in range(5)}
    lead = made(**arms).lead
    assert lead is not None
    assert (lead.arm, lead.arms) == ("arm 4", 5)
    assert lead.above == pytest.approx(0.01)
    # Each mean has an error of 0.1 / sqrt(2); of five normals the largest is 1.163 errors above.
    assert lead.by_chance == pytest.approx(1.163 * 0.1 / math.sqrt(2), rel=0.02)
    assert lead.by_chance < lead.seldom_more
    assert made(one=arms["arm 0"], other=arms["arm 1"]).lead is None


def test_the_same_answers_are_told() -> None:
    def answered(*texts: str) -> DataFrame:
        return samples({"a": 3}, SMALL).assign(answer=texts)

    by_arm = {
        "one": answered("x", "y"),
        "other": answered("y", "x"),
        "often": answered("x", "x"),
        "failing": answered("x", "y"),
        "third": answered("z", "z"),
    }
    by_arm["failing"].loc[0, "failure"] = "failed"
    arms = [arm(name) for name in by_arm]
    assert same_answers(arms, by_arm) == [["one", "other"]]


def test_retention_counts_the_conversations_that_it_rests_on() -> None:
    """Where arms share no probe, each keeps conversations that its controls do not have."""
    by_arm = {
        "none": samples({"a": 1}, SMALL),
        "full": samples({"a": 5, "b": 5}, LARGE),
        "one": samples({"a": 3, "b": 3}, SMALL),
    }
    roles: dict[str, Role] = {"none": "floor", "full": "ceiling", "one": ""}
    arms = [arm(name, role) for name, role in roles.items()]
    assert retained(arms, by_arm)["one"].conversations == 1


def test_a_token_or_a_hundredth_dominates_nobody() -> None:
    """Which two runs of one arm differ by as well."""
    alike = ({"a": 2.96, "b": 2.96}, {"a": 101.0, "b": 301.0})
    found = points(
        one=({"a": 3.0, "b": 3.0}, SMALL), same=({"a": 3.0, "b": 3.0}, SMALL), alike=alike
    )
    assert {point.dominated_by for point in found.values()} == {""}


def test_what_dominates_is_higher_so_that_nothing_goes_round_in_circles() -> None:
    wide = {f"c{n}": 3.0 for n in range(8)}
    small, large = dict.fromkeys(wide, 100.0), dict.fromkeys(wide, 400.0)
    # As good with fewer tokens is no more than that.
    found = points(small=(wide, small), large=(dict.fromkeys(wide, 3.05), large))
    assert {point.dominated_by for point in found.values()} == {""}
    # The best of a size names the smaller arm that dominates it.
    both = made(small=(dict.fromkeys(wide, 4.0), small), large=(wide, large))
    assert [(size.best, size.dominated_by) for size in both.sizes] == [
        ("small", ""),
        ("large", "small"),
    ]
    assert findings(both)[1].endswith("on these 8 conversations; dominated by small 4.00.")
    chance = random.Random(7)
    for _ in range(20):
        arms = {
            f"arm {n}": (
                {unit: chance.uniform(2.5, 3.5) for unit in wide},
                dict.fromkeys(wide, chance.uniform(95, 110)),
            )
            for n in range(6)
        }
        drawn = made(**arms)
        by_name = {point.arm: point for point in drawn.points}
        dominated = [point for point in drawn.points if point.dominated_by]
        for point in dominated:
            other = by_name[point.dominated_by]
            assert other.quality > point.quality
            pair = next(p for p in drawn.pairs if {p.higher, p.lower} == {other.arm, point.arm})
            assert pair.interval is not None
            assert pair.interval[0] > 0


def test_every_two_arms_have_a_verdict_and_controls_none() -> None:
    found = made(
        full=({"a": 5, "b": 5}, LARGE),
        good=({"a": 4, "b": 4}, SMALL),
        alike=({"a": 4, "b": 4.02}, SMALL),
        worse=({"a": 2, "b": 2}, SMALL),
    )
    verdicts = {frozenset((pair.higher, pair.lower)): pair.verdict for pair in found.pairs}
    assert verdicts == {
        frozenset(("good", "alike")): "no change",
        frozenset(("good", "worse")): "better",
        frozenset(("alike", "worse")): "better",
    }
    # By Holm's method the smallest of three p-values counts three times.
    alone = made(good=({"a": 4, "b": 4}, SMALL), worse=({"a": 2, "b": 2}, SMALL))
    smallest = min(pair.p_value or 0 for pair in found.pairs)
    assert alone.pairs[0].p_value is not None
    assert smallest == pytest.approx(3 * alone.pairs[0].p_value, rel=0.05)
    (size,) = found.sizes
    assert (size.best, size.close, size.worse) == ("alike", ["good"], ["worse"])
    here = "of 5 on these 2 conversations"
    assert findings(found) == [
        f"At about 200 tokens: alike reaches a knowledge of 4.01 {here}; less than 0.3 away from "
        "it: good 4.00; worse: worse 2.00."
    ]
    (line,) = findings(found, [["good", "alike"]])
    assert line.endswith(f"{here}; the same answers, byte by byte: good; worse: worse 2.00.")


def test_an_arm_that_fails_more_often_is_not_better() -> None:
    steady, failing = arm("steady"), replace(arm("failing"), scored=2)
    by_arm = {
        "steady": samples({"a": 3, "b": 3}, SMALL),
        "failing": samples({"a": 4, "b": 4}, SMALL),
    }
    found = frontier([steady, failing], by_arm)
    (pair,) = found.pairs
    assert (pair.higher, pair.verdict) == ("failing", "not worse")
    assert pair.why.endswith("higher, but it fails more often")
    assert findings(found)[0].endswith("; lower, but fails less often: steady 3.00.")
    (pair,) = frontier([steady, replace(failing, scored=4)], by_arm).pairs
    assert (pair.higher, pair.verdict) == ("failing", "better")


def test_one_compression_each_is_decided_by_the_spread_between_conversations() -> None:
    scores = {f"c{number}": 3 + number / 10 for number in range(6)}
    sizes = dict.fromkeys(scores, 100.0)
    by_arm = {
        "high": samples(scores, sizes),
        "low": samples({unit: score - 1 - score / 20 for unit, score in scores.items()}, sizes),
    }
    once = {name: each[each["state"] == "0"] for name, each in by_arm.items()}
    (pair,) = frontier([arm("high"), arm("low")], once).pairs
    assert (pair.higher, pair.verdict, pair.over_conversations) == ("high", "better", True)
    assert pair.interval is not None
    assert pair.interval[0] < pair.change < pair.interval[1]
    (pair,) = frontier([arm("high"), arm("low")], by_arm).pairs
    assert (pair.verdict, pair.over_conversations) == ("better", False)


def test_a_size_is_shown_within_its_scale() -> None:
    assert between((-0.4, 5.6), "overall") == "0.00 to 5.00"
    assert between((0.9, 1.2), "fact_recall") == "90 % to 100 %"
    assert between((-0.4, 0.6)) == "-0.40 to 0.60"


def test_without_a_shared_probe_there_is_no_frontier() -> None:
    assert points(one=({"a": 3.0}, SMALL), other=({"b": 3.0}, SMALL)) == {}


def fact(in_state: bool | None, read: str | None, stage: str = "unused") -> dict[str, Any]:
    return {
        "stage": stage,
        "in_state": in_state,
        "in_state_read": read,
        "age_share": 0.9,
        "cycles": 1.0,
    }


def test_the_readers_word_goes_before_the_look_up() -> None:
    facts = [
        fact(False, "stated"),
        fact(True, "absent", "dropped"),
        fact(None, "derivable"),
        fact(True, None),
        fact(True, "stated"),
        fact(True, "stated", "compression_failed"),
    ]
    found = survival(DataFrame(facts))
    assert found.by_cycle == {"1": Share(4, 6)}
    assert found.read == 4
    # Of three that were both read and looked up one is the same.
    assert found.fact_agreement == 1 / 3


def test_in_older_logs_the_readers_word_is_the_share_in_states() -> None:
    folder = Path(__file__).parents[3] / "docs" / "findings" / "logs"
    of = figures(read_frames(find_logs([str(next(folder.glob("*compression-tail_*.eval")))])))
    table = summary(of)
    # As docs/findings.md says; the look-up found 26 %.
    assert table.rows[0][list(table.heads).index("Facts in state")] == Cell("14 %")


def test_without_a_reader_there_is_nothing_to_agree_on() -> None:
    found = survival(DataFrame([fact(True, None), fact(False, None, "lost")]))
    assert (found.by_cycle, found.read, found.fact_agreement) == ({"1": Share(1, 2)}, 0, None)
