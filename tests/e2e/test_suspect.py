"""A summary that looks like none is scored like any other, and marked."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from compression_eval.analysis import samples_frame, states_frame
from compression_eval.compressors import running
from compression_eval.compressors.validity import suspicions
from tests.e2e import small
from tests.e2e.scripted import COMPRESSES, Scripts

GOOD = "The login failed with E4401; auth/session.py was edited and the retry limit is now 7."
CHINESE = (
    "登录失败，错误代码为 E4401。已编辑会话存储，重试上限现在是七次，测试全部通过，下一步是写文档。"
)


def facts_everywhere() -> dict[str, object]:
    """Return a bank with three facts that only a summary of the small fixture could hold."""
    bank = small.bank()
    for probe in bank["probes"]:
        probe["expected_facts"] = [{"fact": "E4401", "evidence": [3]}]
    return bank


@pytest.mark.parametrize(
    ("reply", "signs"),
    [
        (GOOD, set()),
        (f"I could not find out more. {GOOD}", set()),
        (f"{GOOD} I'm sorry, I cannot help you with the rest.", set()),
        ("I'm sorry, but I can’t help with that: E4401 stays what it is.", {"refusal"}),
        ("我无法处理这个请求, E4401, sorry for that, I do nothing of it at all.", {"refusal"}),
        ("## Files\n(none)\n## Pending tasks\n(none)\n## State\n- none", {"blank", "no_fact"}),
        ('```json\n{"a": "I\'m sorry, but I do not look at E4401 again."}\n```\n', {"refusal"}),
        ("Nothing here.", {"short", "no_fact"}),
        (GOOD.replace("E4401", "an error"), {"no_fact"}),
        (CHINESE, {"language"}),
    ],
)
def test_the_signs_stand_in_record_score_and_frame(
    reply: str, signs: set[str], scripts: Scripts, tmp_path: Path, log_dir: Path
) -> None:
    path = small.write(tmp_path / "data", probes=facts_everywhere())
    scripts[COMPRESSES].reply = lambda _: reply
    log = small.run(log_dir, path, compressor="regenerative", epochs=1)
    for sample in small.samples(log):
        found = small.state(sample)
        assert found.status == "ok", found.failure
        assert {sign.partition(":")[0] for sign in found.suspect} == signs
        score = (sample.scores or {})["compression"]
        assert (score.metadata or {})["suspect"] == found.suspect
        assert ("Suspect: " in (score.explanation or "")) == bool(signs)
        assert (sample.scores or {})["six_dimensions"].as_dict()["overall"] == 4
    shown = samples_frame(log.location)["suspect"].tolist()
    assert all(
        {sign.partition(":")[0] for sign in text.split("; ") if sign} == signs for text in shown
    )
    assert states_frame(log.location)["suspect"].tolist() == shown[:1]


BLANK_LINES = """
from compression_eval.compressors.validity import suspicions
for filling in ("\\n", " ", "<", " \\n", "```"):
    for text in (filling * 100_000, "## Files" + filling * 100_000 + "none"):
        suspicions([text + "x", "{" + text], [], [], None, len)
"""


def test_long_runs_of_blank_lines_are_read_through_once() -> None:
    # Had it to be read through for each place in it, this would take days.
    subprocess.run([sys.executable, "-c", BLANK_LINES], timeout=120, check=True)


def test_signs_are_looked_for_beside_the_event_loop(
    scripts: Scripts, tiny: Path, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del scripts
    in_loop: list[bool] = []

    def looked(*given: Any) -> list[str]:
        in_loop.append(threading.current_thread() is threading.main_thread())
        return suspicions(*given)

    monkeypatch.setattr(running, "suspicions", looked)
    small.run(log_dir, tiny, epochs=1)
    assert in_loop == [False]
