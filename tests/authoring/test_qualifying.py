"""From single runs to the verdict on a probe."""

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
        ("+++", "+-+", "-+-", False, "history"),
        ("+++", "---", "-++", True, "tail"),
        ("+-", "--", "--", False, "history"),
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
