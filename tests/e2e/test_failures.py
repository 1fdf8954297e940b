"""A compression that fails: the run goes on, its samples have a reason and no score."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import small
from tests.e2e.scripted import COMPRESSES, Call, Script, Scripts, output, proper_compression

KEYS = ("overall", "accuracy", "continuity", "fact_recall", "fact_survival", "tokens_removed")


def failing_for(name: str) -> Script:
    """A compressor that says nothing about one fixture and does well on the others."""

    def reply(call: Call) -> str:
        return "" if f"We speak of {name}." in call.text else proper_compression(call)

    return Script(reply)


def named(folder: Path, name: str) -> Path:
    """Write a fixture whose history says what its name is."""
    data = small.conversation(name)
    data["messages"][1]["content"] += f" We speak of {name}."
    return small.write(folder, name, fixture=data)


def test_only_the_failed_states_samples_are_unscored(
    scripts: Scripts, tmp_path: Path, log_dir: Path
) -> None:
    good, bad = (named(tmp_path / "data", name) for name in ("good", "bad"))
    alone = small.means(small.run(log_dir, good))
    scripts[COMPRESSES] = failing_for("bad")
    log = small.run(log_dir, [bad, good])
    for sample in small.samples(log):
        assert sample.scores is not None
        score = sample.scores["six_dimensions"]
        if small.record(sample).fixture == "bad":
            assert math.isnan(float(score.value))  # type: ignore[arg-type]
            assert score.reason == "compression_failed: empty"
            assert sample.scores["fact_retention"].reason == "compression_failed: empty"
            assert sample.scores["compression"].as_dict()["failed_states"] == 1
            assert sample.output.completion == ""
        else:
            assert score.as_dict()["overall"] == 4
    means = small.means(log)
    assert means["failed_states"] == small.EPOCHS, "states are counted, not their samples"
    assert {key: means[key] for key in KEYS} == pytest.approx({key: alone[key] for key in KEYS})
    assert log.results is not None
    by_key = {score.name: score for score in log.results.scores}
    assert by_key["overall"].scored_samples == small.PROBES
    assert by_key["overall"].unscored_samples == small.PROBES


def test_a_failing_compression_is_not_tried_again_by_each_probe(
    scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[COMPRESSES].reply = lambda _: output("", "content_filter")
    log = small.run(log_dir, tiny)
    assert len(scripts[COMPRESSES].calls) == small.EPOCHS
    assert {small.state(sample).status for sample in small.samples(log, "error")} == {"aborted"}
    assert small.means(log)["failed_states"] == small.EPOCHS


@pytest.mark.usefixtures("scripts")
def test_the_same_compression_passes_or_fails(tiny: Path, log_dir: Path) -> None:
    arm: dict[str, Any] = {"compressor": "tail", "compressor_args": {"tail_tokens": 60}}
    log = small.run(log_dir, tiny, **arm)
    assert small.means(log)["failed_states"] == 0
    assert (log.eval.metadata or {})["min_removed"] == 0.1
    log = small.run(log_dir, tiny, min_removed=0.99, **arm)
    assert small.means(log)["failed_states"] == small.EPOCHS
    for sample in small.samples(log, "error"):
        assert small.state(sample).status == "not_smaller"
        scores = sample.scores or {}
        assert scores["six_dimensions"].reason == "compression_failed: not_smaller"
        assert (scores["compression"].metadata or {})["status"] == "not_smaller"
        told = scores["compression"].explanation or ""
        assert "Status: not_smaller: " in told
        assert "at least 99.0% is asked for (min" in told
        stages = {row["stage"] for row in (scores["fact_retention"].metadata or {})["facts"]}
        assert stages == {"compression_failed"}
