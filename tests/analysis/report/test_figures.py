"""Which arms another one dominates and which differ, and by whose word facts survive."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pandas import DataFrame, concat

from compression_eval.analysis.comparison.measures import HEADLINE
from compression_eval.analysis.facts import FactTotals, Share
from compression_eval.analysis.logs import find_logs
from compression_eval.analysis.report.figures import Survival, common, figures, read_frames
from compression_eval.analysis.report.sections import summary
from compression_eval.analysis.report.tradeoff import (
    Frontier,
    Point,
    ReportedArm,
    Role,
    frontier,
    same_answers,
)
from compression_eval.text.tables import Table


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
    assert found.probes == 2
    assert found.left_out == ["full", "seldom"]


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


def fact(
    in_state: bool | None, read: str | None, stage: str = "unused", graded: str | None = None
) -> dict[str, Any]:
    return {
        "stage": stage,
        "in_answer_read": graded,
        "in_state": in_state,
        "in_state_read": read,
        "age_share": 0.9,
        "cycles": 1.0,
        "type": "recall",
        "region": "",
    }


def test_stages_decide_and_a_failed_compression_counts_nowhere() -> None:
    facts = [
        fact(False, "stated", "used", "stated"),
        fact(True, "absent", "dropped", "contradicted"),
        fact(None, "derivable"),
        fact(True, None),
        fact(True, "stated"),
        fact(True, "stated", "compression_failed"),
        fact(True, None, "not_in_history"),
    ]
    found = Survival.of(FactTotals(DataFrame(facts)))
    assert found.by_cycle == {"1": Share(4, 5)}
    assert found.by_age == {"first quarter": Share(4, 5)}
    assert found.read == 4
    # Of three that were both read and looked up one is the same.
    assert found.fact_agreement == 1 / 3
    assert found.contradicted == 1 / 2


def test_in_older_logs_the_readers_word_is_the_share_in_states() -> None:
    folder = Path(__file__).parents[3] / "docs" / "findings" / "logs"
    of = figures(read_frames(find_logs([str(next(folder.glob("*compression-tail_*.eval")))])))
    table = summary(of).blocks[0]
    assert isinstance(table, Table)
    # As docs/findings.md says; the look-up found 26 %.
    assert table.rows[0][list(table.heads).index("Facts in state")] == "14 %"
