"""From single runs to the verdict on a probe."""

from dataclasses import replace

import pytest

from compression_eval.authoring.qualify import CONDITIONS, Asked, QualifySettings, verdict
from compression_eval.fixtures.banks import Qualification


def asked(*passed: str) -> list[Asked]:
    """Return runs of each condition, ``+`` for one that passed."""
    return [
        Asked(condition, "demo", "p", epoch, 9, "d", "m", fact_share=run == "+", passed=run == "+")
        for condition, runs in zip(CONDITIONS, passed, strict=True)
        for epoch, run in enumerate(runs, 1)
    ]


def judged(runs: list[Asked], epochs: int) -> Qualification | str:
    return verdict(runs, QualifySettings(epochs=epochs, tail_tokens=50))


@pytest.mark.parametrize(
    ("full", "none", "tail", "qualified", "region"),
    [
        ("+++", "---", "---", True, "history"),
        ("++-", "--+", "--+", True, "history"),
        ("+--", "---", "---", False, "history"),
        ("+++", "+-+", "-+-", False, "history"),
        ("+++", "---", "-++", True, "tail"),
        ("+-", "--", "--", False, "history"),
        ("++", "+-", "+-", True, "history"),
    ],
)
def test_more_than_half_of_the_runs_decide(
    full: str, none: str, tail: str, qualified: bool, region: str
) -> None:
    found = judged(asked(full, none, tail), len(full))
    assert isinstance(found, Qualification)
    assert (found.qualified, found.region) == (qualified, region)
    assert (found.full.passed, found.full.runs) == (full.count("+"), len(full))
    assert found.none.fact_share == pytest.approx(none.count("+") / len(none), abs=0.001)


BOTH = asked("++", "++", "++")
CHANGED = "the fixture or the probe was changed while it was put to the model"


@pytest.mark.parametrize(
    ("runs", "failure"),
    [
        ([*BOTH[:3], *BOTH[4:]], "none: 1 of 2 runs came to an end"),
        ([*BOTH[:5], replace(BOTH[5], failure="no line", cut=0)], "tail, epoch 2: no line"),
        ([*BOTH[:4], *(replace(item, digest="edited") for item in BOTH[4:])], CHANGED),
    ],
)
def test_what_is_not_complete_leaves_no_verdict(runs: list[Asked], failure: str) -> None:
    assert judged(runs, 2) == failure


def test_the_last_cut_of_several_counts() -> None:
    earlier = [replace(item, cut=5, digest="other", passed=False) for item in BOTH]
    found = judged([*earlier, *BOTH], 2)
    assert isinstance(found, Qualification)
    assert (found.cut, found.digest, found.full.passed) == (9, "d", 2)


def test_a_tail_that_is_the_whole_history_has_its_answers() -> None:
    runs = asked("++", "--", "--")
    found = judged([*runs[:4], *(replace(item, nothing_removed=True) for item in runs[4:])], 2)
    assert isinstance(found, Qualification)
    assert (found.qualified, found.region, found.tail) == (True, "tail", found.full)
