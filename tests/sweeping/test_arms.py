"""Which arms a sweep has: controls, the tail of every budget, and a frontier."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.compressors.budget import KNOBS
from compression_eval.sweeping.arms import Arm, sweep_arms
from compression_eval.sweeping.settings import SweepSettings
from tests.e2e import small
from tests.sweeping.commanding import run


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
    assert labels(tiny, ["anchored", "summary"], budgets=[4000, 2000]) == [
        "full",
        "none",
        "tail (target_tokens=2000)",
        "tail (target_tokens=4000)",
        "anchored (target_tokens=2000)",
        "anchored (target_tokens=4000)",
        "summary",
    ]


def test_prompts_tell_arms_apart(tiny: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.md", "b.md", "other/b.md")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"Summarise, {path}.", encoding="utf-8")
    arms = [{"compressor": "anchored", "prompt": str(path)} for path in paths]
    *found, last = labels(tiny, arms, controls=False)
    assert found == ["anchored (prompt=a.md)", "anchored (prompt=b.md)"]
    assert last.startswith("anchored (prompt=b.md) #")


@pytest.fixture
def wordy(tmp_path: Path) -> Path:
    """A conversation of 60 turns with a result of about 60 tokens each."""
    conversation = small.conversation()
    for number in range(60):
        conversation["messages"][6:6] = [
            {
                "role": "assistant",
                "content": f"I look at part {number}.",
                "tool_calls": [small.call(f"w{number}", "bash", command=f"cat part{number}.txt")],
            },
            {
                "role": "tool",
                "tool_call_id": f"w{number}",
                "content": " ".join(f"word{number * 31 + at}" for at in range(20)),
            },
        ]
    probes = small.bank()
    for probe in probes["probes"]:
        for fact in probe["expected_facts"]:
            fact["evidence"] = [at + 120 if at >= 6 else at for at in fact["evidence"]]
    return small.write(tmp_path / "wordy", fixture=conversation, probes=probes)


def sizes(fixture: Path, arms: list[Any], budgets: list[int]) -> dict[str, list[Arm]]:
    settings = SweepSettings(arms=arms, fixtures=[str(fixture)], budgets=budgets, controls=False)
    found: dict[str, list[Arm]] = {}
    for arm in sweep_arms(settings):
        found.setdefault(arm.spec.name, []).append(arm)
    return found


def mean(arm: Arm) -> int:
    return int(arm.note.partition("mean ")[2].partition(", ")[0].replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "budgets"), [("pi", [2600, 3200]), ("masking", [3200, 4000])])
def test_products_are_fitted_to_budgets_by_their_own_arguments(
    name: str, budgets: list[int], wordy: Path
) -> None:
    arms, knob = sizes(wordy, [name], budgets)[name], KNOBS[name].argument
    assert len({getattr(arm.spec.arguments, knob) for arm in arms}) == 2
    for arm, budget in zip(arms, budgets, strict=True):
        assert arm.label == f"{name} (budget={budget})"
        assert arm.note.startswith(f"for {budget:,} tokens: {knob}=")
        assert 0.9 * budget < mean(arm) <= budget
        assert arm.budget == budget
        assert not arm.not_fitted


@pytest.mark.slow
def test_what_cannot_be_fitted_is_said_and_run_as_it_is(wordy: Path) -> None:
    masking = {"compressor": "masking", "args": {"keep": 4}}
    given = ["anchored", "clear-tools", masking, "summary"]
    found = sizes(wordy, given, [400, 450])
    notes = {name: [arm.note for arm in arms] for name, arms in found.items()}
    assert notes["anchored"] == ["", ""]
    assert notes["masking"] == ["not fitted: keep is given"]
    assert notes["summary"] == ["not fitted: no argument of it sets the size"]
    (note,) = notes["clear-tools"]
    assert note.startswith("not fitted to 400 and 450 tokens: even with keep=0 its states are of ")
    assert not found["clear-tools"][0].spec.arguments.model_fields_set
    arguments = ["--arms", "codex+artifacts,summary", "--budgets", "2600,3200"]
    place = ["--fixtures", str(wordy), "--log-dir", str(wordy.parent / "none")]
    ended = run("sweep", "--dry-run", *arguments, *place)
    said = " ".join(ended.output.split())
    # Its user messages are few: no budget makes its states larger.
    assert "codex+artifacts (budget=2600 and 3200) for 2,600 tokens: user_tokens=" in said
    assert "(WARNING: this is far below the budget" in said
    assert "summary not fitted: no argument of it sets the size" in said
    (codex,) = sizes(wordy, ["codex+artifacts"], [2600, 3200])["codex+artifacts"]
    assert codex.not_fitted, "it is compared with no arm of these sizes"


@pytest.mark.slow
def test_budgets_that_give_almost_the_same_size_are_one_arm(wordy: Path) -> None:
    (one,) = sizes(wordy, ["pi"], [2600, 2650])["pi"]
    assert one.label == "pi (budget=2600 and 2650)"
    assert one.budget == 2650
    assert 0.97 * 2600 < mean(one) <= 2600


def test_a_target_that_cannot_hold_the_system_prompt_is_told_beforehand(tmp_path: Path) -> None:
    talk = small.conversation("long")
    talk["messages"][0]["content"] = "You are a careful agent. " * 200
    files = [small.write(tmp_path), small.write(tmp_path, "long", fixture=talk)]
    given = ["--arms", "anchored", "--budgets", "300", "--fixtures", ",".join(map(str, files))]
    ended = run("estimate", *given)
    output = " ".join(ended.output.split())
    assert output.count("3 of 6 compressions will fail, error: target_tokens (300) is too") == 2
