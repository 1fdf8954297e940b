"""The first call about a state goes ahead, so that it fills the vendor's prompt cache."""

from pathlib import Path

import pytest
from tenacity import wait_fixed

from compression_eval import sharing
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, GRADES, Call, ScriptedModel, Scripts


def test_one_goes_ahead_and_the_others_follow_together(
    scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[ANSWERS].seconds = scripts[GRADES].seconds = 0.2
    small.samples(small.run(log_dir, tiny, epochs=1))
    assert scripts[ANSWERS].most_running == small.PROBES - 1


def test_a_first_attempt_that_fails_lets_the_others_go_ahead(
    scripts: Scripts, tiny: Path, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "MAX_WAIT_SECONDS", 30)
    monkeypatch.setattr(ScriptedModel, "should_retry", lambda *_: True)
    monkeypatch.setattr(ScriptedModel, "retry_wait", lambda _: wait_fixed(0.5))
    answer = scripts[ANSWERS].reply
    tried: list[str] = []

    def reply(call: Call) -> str:
        tried.append(call.last)
        # It works once all others have been answered, as after retries without an end.
        if call.last == tried[0] and len(set(tried)) < small.PROBES:
            raise RuntimeError("try again")
        return str(answer(call))

    scripts[ANSWERS].reply = reply
    log = small.run(log_dir, tiny, epochs=1)
    assert small.means(log)["overall"] == 4
    assert tried.index(tried[0], 1) >= small.PROBES, "the others came before the second attempt"
