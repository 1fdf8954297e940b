"""What must contain of any run: the controls, and what the answer is given from."""

from pathlib import Path
from typing import Any

from tests.e2e import small
from tests.e2e.scripted import ANSWERS, Scripts


def test_with_everything_kept_all_facts_are_found_with_nothing_kept_none(
    tiny: Path, log_dir: Path
) -> None:
    given: dict[str, Any] = {"compressor_args": {}, "epochs": 1, "model": "embedded/lexical"}
    given["model_roles"] = {"grader": "embedded/lexical"}
    full = small.means(small.run(log_dir, tiny, compressor="full", **given))
    none = small.means(small.run(log_dir, tiny, compressor="none", **given))
    assert (full["fact_survival"], none["fact_survival"]) == (1, 0)
    assert (full["fact_recall"], none["fact_recall"]) == (1, 0)
    assert full["tokens_removed"] == 0
    assert none["tokens_removed"] > 0.9


def test_the_answer_is_given_from_the_state_alone(
    scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    log = small.run(log_dir, tiny, epochs=1)
    for sample in small.samples(log):
        assert small.state(sample).status == "ok"
        assert small.state(sample).message_count == 3
    for call in scripts[ANSWERS].calls:
        roles = [message.role for message in call.messages]
        assert roles == ["system", "user", "assistant", "user"]
        assert "(written by call 0)" in call.messages[1].text
        assert call.messages[2].text.startswith("All green.")
        assert "session check of worker" not in call.text, "the rest of the history leaks in"
