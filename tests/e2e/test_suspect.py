"""A summary that looks like none is scored like any other, and marked."""

from pathlib import Path

import pytest

from compression_eval.analysis import samples_frame, states_frame
from tests.e2e import small
from tests.e2e.scripted import COMPRESSES, Scripts

GOOD = "The login failed with E4401; auth/session.py was edited and the retry limit is now 7."


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
        (f"{GOOD} I'm sorry, I cannot help you with the rest.", set()),
        ("我无法处理这个请求, E4401, sorry for that, I do nothing of it at all.", {"refusal"}),
        ("## Files\n(none)\n## Pending tasks\n(none)\n## State\n- none", {"blank", "no_fact"}),
        ("Nothing here.", {"short", "no_fact"}),
        (GOOD.replace("E4401", "an error"), {"no_fact"}),
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
