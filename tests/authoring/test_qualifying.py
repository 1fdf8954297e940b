"""From single runs to the verdict on a probe."""

from dataclasses import replace

import pytest

from compression_eval.authoring.qualifying import CONDITIONS, Asked, Condition, Outcome, outcomes
from compression_eval.fixtures.banks import Qualification


def runs(condition: Condition, *passed: bool, **fields: object) -> list[Asked]:
    """Return one run per value, each with an epoch of its own."""
    one = Asked(condition, "demo", "p", 0, cut=9, digest="d", model="m")
    return [
        replace(one, epoch=number, passed=value, fact_share=float(value), **fields)  # type: ignore[arg-type]
        for number, value in enumerate(passed, 1)
    ]


def judged(asked: list[Asked], epochs: int) -> Outcome:
    (only,) = outcomes(asked, epochs=epochs, judged_by="facts", tail_tokens=50)
    return only


def verdict(full: list[bool], none: list[bool], tail: list[bool]) -> Qualification:
    asked = [*runs("full", *full), *runs("none", *none), *runs("tail", *tail)]
    found = judged(asked, len(full)).qualification
    assert found is not None
    return found


T, F = True, False


@pytest.mark.parametrize(
    ("full", "none", "tail", "qualified", "region"),
    [
        ([T, T, T], [F, F, F], [F, F, F], True, "history"),
        ([T, T, F], [F, F, T], [F, F, T], True, "history"),
        ([T, F, F], [F, F, F], [F, F, F], False, "history"),
        ([T, T, T], [T, F, T], [F, T, F], False, "history"),
        ([T, T, T], [F, F, F], [F, T, T], True, "tail"),
        ([T, F], [F, F], [F, F], False, "history"),
        ([T, T], [T, F], [T, F], True, "history"),
    ],
)
def test_more_than_half_of_the_runs_decide(
    full: list[bool], none: list[bool], tail: list[bool], qualified: bool, region: str
) -> None:
    found = verdict(full, none, tail)
    assert (found.qualified, found.region) == (qualified, region)
    assert (found.full.passed, found.full.runs) == (sum(full), len(full))
    assert found.none.fact_share == pytest.approx(sum(none) / len(none), abs=0.001)


def complete() -> dict[Condition, list[Asked]]:
    return {condition: runs(condition, True, True) for condition in CONDITIONS}


def test_a_missing_run_leaves_no_verdict() -> None:
    asked = complete()
    asked["none"].pop()
    only = judged([item for items in asked.values() for item in items], 2)
    assert only.qualification is None
    assert only.failure == "none: 1 of 2 runs came to an end"


def test_a_failed_run_leaves_no_verdict() -> None:
    asked = complete()
    asked["tail"][1] = replace(asked["tail"][1], failure="the line is down", cut=0)
    only = judged([item for items in asked.values() for item in items], 2)
    assert (only.qualification, only.failure) == (None, "tail, epoch 2: the line is down")


def test_runs_about_different_files_leave_no_verdict() -> None:
    asked = complete()
    asked["none"] = [replace(item, digest="edited") for item in asked["none"]]
    only = judged([item for items in asked.values() for item in items], 2)
    assert only.failure == "the fixture or the probe was changed while it was put to the model"


def test_the_last_cut_of_several_counts() -> None:
    asked = [item for items in complete().values() for item in items]
    earlier = [replace(item, cut=5, digest="other", passed=False) for item in asked]
    found = judged([*earlier, *asked], 2).qualification
    assert found is not None
    assert (found.cut, found.digest, found.full.passed) == (9, "d", 2)


def test_a_tail_that_is_the_whole_history_has_its_answers() -> None:
    asked = [
        *runs("full", True, True),
        *runs("none", False, False),
        *runs("tail", False, False, nothing_removed=True),
    ]
    found = judged(asked, 2).qualification
    assert found is not None
    assert (found.qualified, found.region, found.tail) == (True, "tail", found.full)
