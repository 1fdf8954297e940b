"""The first call about a state goes ahead, so that it fills the vendor's prompt cache."""

from pathlib import Path

import pytest

from compression_eval.probing import prefix
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, GRADES, Script


def test_one_goes_ahead_and_the_others_follow_together(
    scripts: dict[str, Script], tiny: Path, log_dir: Path
) -> None:
    scripts[ANSWERS].seconds = scripts[GRADES].seconds = 0.2
    small.samples(small.run(log_dir, tiny, epochs=1))
    assert scripts[ANSWERS].most_running == small.PROBES - 1


def test_without_a_prompt_cache_all_go_at_once(
    scripts: dict[str, Script], tiny: Path, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefix, "has_prompt_cache", lambda _: False)
    scripts[ANSWERS].seconds = 0.2
    small.samples(small.run(log_dir, tiny, epochs=1))
    assert scripts[ANSWERS].most_running == small.PROBES


def test_a_first_call_that_fails_lets_the_next_go_ahead(
    scripts: dict[str, Script], tiny: Path, log_dir: Path
) -> None:
    answer = scripts[ANSWERS].reply

    def reply(call: object) -> str:
        if len(scripts[ANSWERS].calls) == 1:
            raise RuntimeError("gone")
        return str(answer(call))  # type: ignore[arg-type]

    scripts[ANSWERS].reply = reply
    log = small.run(log_dir, tiny, epochs=1, options={"fail_on_error": False})
    assert [sample.error is None for sample in small.samples(log)].count(False) == 1
    assert len(scripts[ANSWERS].calls) == small.PROBES
