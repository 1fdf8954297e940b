"""What must hold of any run: controls, what the answer is given from, what the grader is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import small
from tests.e2e.scripted import ANSWERS, Scripts

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


CHECKS: list[Check] = [
    controls_mean_what_they_say,
    the_answer_is_given_from_the_state,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_product_is_sound(check: Check, scripts: Scripts, tiny: Path, log_dir: Path) -> None:
    check(scripts, tiny, log_dir)
