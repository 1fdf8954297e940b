"""What must hold of any run: controls, what the answer is given from, what the grader is asked."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compression_eval.compressors.registry import COMPRESSORS
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, COMPRESSES, GRADES, Scripts, criteria_in

Patch = pytest.MonkeyPatch
Check = Callable[[Scripts, Path, Path], None]


def controls_mean_what_they_say(_: Scripts, fixture: Path, log_dir: Path) -> None:
    """With everything kept all facts are found, with nothing kept none is."""
    given: dict[str, Any] = {"compressor_args": {}, "epochs": 1, "model": "embedded/lexical"}
    given["model_roles"] = {"grader": "embedded/lexical"}
    full = small.means(small.run(log_dir, fixture, compressor="full", **given))
    none = small.means(small.run(log_dir, fixture, compressor="none", **given))
    assert (full["fact_survival"], none["fact_survival"]) == (1, 0)
    assert (full["fact_recall"], none["fact_recall"]) == (1, 0)
    assert full["tokens_removed"] == 0
    assert none["tokens_removed"] > 0.9


def the_answer_is_given_from_the_state(scripts: Scripts, fixture: Path, log_dir: Path) -> None:
    """What the compressor wrote, and the kept tail, are what the answering model reads."""
    log = small.run(log_dir, fixture, epochs=1)
    for sample in small.samples(log):
        assert small.state(sample).status == "ok"
        assert small.state(sample).message_count == 3
    for call in scripts[ANSWERS].calls:
        assert [message.role for message in call.messages] == [
            "system",
            "user",
            "assistant",
            "user",
        ]
        assert "(written by call 0)" in call.messages[1].text
        assert call.messages[2].text.startswith("All green.")
        assert "session check of worker" not in call.text, "the rest of the history leaks in"


ALWAYS = {"accuracy_factual", "accuracy_technical", "completeness_coverage", "completeness_depth"}
ALWAYS |= {"continuity_work_state", "instruction_format"}
BY_TYPE = {
    "recall": ALWAYS | {"context_conversation_state"},
    "artifact": ALWAYS | {"artifact_key_details"},
    "continuation": ALWAYS | {"context_conversation_state"},
}
"""The table of the documentation, for probes without a constraint and without an answer key."""


def the_grader_is_asked_for_every_criterion(scripts: Scripts, fixture: Path, log: Path) -> None:
    """Each type of probe is graded on its criteria, no more and no fewer."""
    small.run(log, fixture, epochs=1)
    types = {probe["question"]: probe["type"] for probe in small.bank()["probes"]}
    asked = {
        types[question]: set(criteria_in(call.text))
        for call in scripts[GRADES].calls
        for question in types
        if question in call.last
    }
    assert asked == BY_TYPE


def the_grader_is_blind(scripts: Scripts, fixture: Path, log_dir: Path) -> None:
    """Arms with the same state and answer ask the grader the same, byte for byte."""
    scripts[COMPRESSES].reply = lambda _: (
        '{"operations": [{"op": "add", "section": "state", "text": "E4401."}]}'
    )
    small.run(log_dir, fixture, epochs=1)
    other = {**small.BUDGETS, "focus_topic": "Redis"}
    small.run(log_dir, fixture, epochs=1, compressor="another_arm", compressor_args=other)
    inputs = [tuple(message.text for message in call.messages) for call in scripts[GRADES].calls]
    first, second = sorted(inputs[: small.PROBES]), sorted(inputs[small.PROBES :])
    assert first == second
    told = "\n".join(text for texts in first for text in texts).lower()
    for name in ("anchored", "another_arm", "scripted/", "focus_topic", "compactor"):
        assert name not in told


@pytest.fixture(autouse=True)
def _another_arm(monkeypatch: Patch) -> None:
    """Register the anchored strategy a second time, under another name."""
    again = replace(COMPRESSORS["anchored"], name="another_arm")
    monkeypatch.setitem(COMPRESSORS, "another_arm", again)


CHECKS: list[Check] = [
    controls_mean_what_they_say,
    the_answer_is_given_from_the_state,
    the_grader_is_asked_for_every_criterion,
    the_grader_is_blind,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_product_is_sound(check: Check, scripts: Scripts, tiny: Path, log_dir: Path) -> None:
    check(scripts, tiny, log_dir)
