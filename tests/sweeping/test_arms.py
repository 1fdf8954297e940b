"""Which arms a sweep has: controls, the tail of every budget, and a frontier."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.sweeping.arms import sweep_arms
from compression_eval.sweeping.settings import SweepSettings


def labels(fixture: Path, arms: list[Any], **given: Any) -> list[str]:
    settings = SweepSettings(arms=arms, fixtures=[str(fixture)], **given)
    return [arm.label for arm in sweep_arms(settings)]


def test_controls_come_first_and_none_is_there_twice(tiny: Path) -> None:
    assert labels(tiny, ["anchored", "edit"]) == ["full", "none", "tail", "anchored", "edit"]
    assert labels(tiny, ["full", "tail", "edit"]) == ["none", "full", "tail", "edit"]
    assert labels(tiny, ["anchored"], controls=False) == ["anchored"]


def test_a_tail_has_the_budgets_of_the_arm_that_it_controls(tiny: Path) -> None:
    arms = [
        {"compressor": "anchored", "args": {"tail_tokens": 500, "summary_tokens": 900}},
        {"compressor": "regenerative", "args": {"head_tokens": 100, "tail_tokens": 500}},
        {"compressor": "anchored+artifacts", "args": {"tail_tokens": 500, "index_tokens": 90}},
    ]
    found = labels(tiny, arms)
    assert [label for label in found if label.startswith("tail")] == [
        "tail (tail_tokens=500)",
        "tail (head_tokens=100, tail_tokens=500)",
    ]


def test_budgets_make_a_frontier_of_the_arms_that_take_one(tiny: Path) -> None:
    assert labels(tiny, ["anchored", "edit"], budgets=[4000, 2000]) == [
        "full",
        "none",
        "tail (target_tokens=2000)",
        "tail (target_tokens=4000)",
        "anchored (target_tokens=2000)",
        "anchored (target_tokens=4000)",
        "edit",
    ]


def test_an_arm_with_a_target_of_its_own_keeps_it(tiny: Path) -> None:
    arms = ["regenerative", {"compressor": "anchored", "args": {"target_tokens": 900}}]
    found = labels(tiny, arms, budgets=[2000], controls=False)
    assert found == ["regenerative (target_tokens=2000)", "anchored (target_tokens=900)"]


def test_prompts_tell_arms_apart(tiny: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"Summarise, {name}.", encoding="utf-8")
    arms = [{"compressor": "anchored", "prompt": str(tmp_path / f"{n}.md")} for n in ("a", "b")]
    found = labels(tiny, arms, controls=False)
    assert len(set(found)) == 2
    assert all(label.startswith("anchored (prompt=") for label in found)


@pytest.mark.parametrize("name", ["anchored", "tail"])
def test_one_budget_twice_is_one(tiny: Path, name: str) -> None:
    assert labels(tiny, [name], budgets=[900, 900], controls=False) == [
        f"{name} (target_tokens=900)"
    ]
