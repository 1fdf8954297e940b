import math
from pathlib import Path
from typing import Any

from inspect_ai import Epochs
from inspect_ai.scorer import Score

from compression_eval.grading.scorers import compression
from tests.grading.samples import metric, only_score, record, run, samples, state_record, values


def figures(tmp_path: Path, given: dict[str, Any]) -> Score:
    log = run(compression(), given, tmp_path)
    return only_score(log, "compression")


def test_tokens_and_cycles(tmp_path: Path) -> None:
    score = figures(tmp_path, record())
    assert list(score.as_dict()) == ["tokens_removed", "tokens_retained", "failed_states"]
    assert values(score) == {"tokens_removed": 0.9, "tokens_retained": 100, "failed_states": 0}
    explanation = score.explanation or ""
    assert (
        "- cut 40: SomeStrategy; tokens 1000 → 100; messages 40 → 2; model calls 1 " in explanation
    )
    assert "Status: ok" in explanation
    assert "o200k_base" in explanation


def test_a_failed_compression_counts_and_measures_nothing(tmp_path: Path) -> None:
    failed = state_record(status="not_smaller", failure="grew <b>", state_tokens=2000)
    score = figures(tmp_path, record(state=failed))
    assert values(score)["failed_states"] == 1
    assert math.isnan(values(score)["tokens_removed"])
    assert math.isnan(values(score)["tokens_retained"])
    assert score.reason == "compression_failed: not_smaller"
    assert "Status: not_smaller: grew &#60;b&#62;" in (score.explanation or "")


def test_failed_states_are_counted_not_samples(tmp_path: Path) -> None:
    def sample(replicate: int, *, ok: bool, fixture: str = "one") -> dict[str, Any]:
        status, state_id = "ok" if ok else "error", f"{fixture}-{replicate}"
        state = state_record(status=status, state_id=state_id)
        return record(state=state, replicate=replicate, fixture=fixture)

    records = {
        ("a", 1): sample(0, ok=False),
        ("b", 1): sample(0, ok=False),
        ("c", 1): sample(0, ok=True, fixture="two"),
        ("a", 2): sample(1, ok=False),
        ("b", 2): sample(1, ok=False),
        ("c", 2): sample(1, ok=False, fixture="two"),
    }
    log = run(compression(), records, tmp_path, epochs=Epochs(2, "mean"))
    assert len(samples(log)) == 6
    assert metric(log, "failed_states", "compression_eval/failed_states") == 3
    assert metric(log, "tokens_removed") == 0.9
    assert log.results
    assert {item.name: item.scored_samples for item in log.results.scores} == {
        "tokens_removed": 1,
        "tokens_retained": 1,
        "failed_states": 6,
    }
