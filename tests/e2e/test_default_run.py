"""The default, as a newcomer runs it: no model chosen, no network, nothing installed next to it."""

from math import isnan
from pathlib import Path
from statistics import fmean

import pytest
from inspect_ai.log import EvalLog, read_eval_log
from scipy import stats

from compression_eval.grading.rubric import structure
from tests.e2e import command, small


def ran(log_dir: Path, *arguments: str) -> EvalLog:
    """Run ``inspect eval`` and read its log."""
    result = command.inspect(["eval", *arguments], log_dir)
    assert result.code == 0, result.errors
    return read_eval_log(str(command.logs(log_dir)[-1]))


@pytest.fixture(scope="module")
def by_file(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """The shipped task by its file, on the two short fixtures."""
    fixtures = "fixtures=[zh-log-rotation, ja-csv-import]"
    folder = tmp_path_factory.mktemp("logs")
    return ran(folder, "tasks/compression.py", "-T", fixtures, "--epochs", "1")


def test_all_six_dimensions_have_values(by_file: EvalLog) -> None:
    samples = small.samples(by_file)
    assert len(samples) >= 16
    assert {small.record(sample).fixture for sample in samples} == {
        "zh-log-rotation",
        "ja-csv-import",
    }
    for sample in samples:
        values = small.values(sample, "six_dimensions")
        assert list(values) == ["knowledge", "overall", *structure().dimensions]
        # The embedded grader has no formula for key details that a bank does not list.
        measured = {key: value for key, value in values.items() if not isnan(value)}
        assert set(values) - set(measured) <= {"artifact_trail"}
        assert all(0 <= value <= 5 for value in measured.values())
    means = small.means(by_file)
    assert all(0 < means[key] <= 5 for key in ("knowledge", "overall", *structure().dimensions))


def test_the_viewer_trusts_what_is_shipped_and_nothing_else(
    by_file: EvalLog, tmp_path: Path
) -> None:
    assert by_file.eval.viewer is not None
    assert by_file.eval.viewer.trust_content is True
    own = small.write(tmp_path / "data")
    log = small.run(tmp_path / "logs", own, model="embedded/lexical", model_roles={}, epochs=1)
    assert log.eval.viewer is not None
    assert log.eval.viewer.trust_content is False


def test_the_log_says_that_no_language_model_took_part(by_file: EvalLog) -> None:
    metadata = by_file.eval.metadata or {}
    assert by_file.eval.model == "embedded/lexical"
    assert "no language model" in metadata["note"]
    assert "no-language-model" in (by_file.eval.tags or [])
    assert metadata["compression_eval"]
    assert "o200k_base" in metadata["token_counter"]
    assert all(
        small.state(s).token_counter == metadata["token_counter"] for s in small.samples(by_file)
    )


def interval_of(log: EvalLog) -> list[float]:
    assert log.results
    (score,) = (score for score in log.results.scores if score.name == "knowledge")
    limits = (score.metrics.get(f"compression_eval/interval_{end}") for end in ("lower", "upper"))
    return [limit.value for limit in limits if limit]


def test_knowledge_has_an_interval_over_conversations(by_file: EvalLog, tmp_path: Path) -> None:
    by_fixture: dict[str, list[float]] = {}
    for sample in small.samples(by_file):
        value = small.values(sample, "six_dimensions")["knowledge"]
        by_fixture.setdefault(small.record(sample).fixture, []).append(value)
    means = [fmean(values) for values in by_fixture.values()]
    expected = stats.t.interval(0.95, len(means) - 1, loc=fmean(means), scale=stats.sem(means))
    assert interval_of(by_file) == pytest.approx(expected)
    own = small.write(tmp_path / "data")
    log = small.run(
        tmp_path / "logs",
        own,
        model="embedded/lexical",
        model_roles={},
        epochs=1,
        options={"limit": 1},
    )
    assert interval_of(log) == []


def test_the_log_says_by_what_it_was_compressed(by_file: EvalLog) -> None:
    (step,) = by_file.plan.steps
    assert step.solver == "compression_eval/answer_from_compressed"
    assert step.params["compressor"] == "anchored"
    assert step.params["compressor_args"]["tail_tokens"] > 0, "defaults are named, too"


def test_states_are_compressed_and_none_stays_beside_the_log(by_file: EvalLog) -> None:
    for sample in small.samples(by_file):
        state = small.state(sample)
        assert state.status == "ok", state.failure
        assert 0 < state.state_tokens < state.original_tokens
        assert sample.messages[-1].role == "assistant"
    assert not (Path(by_file.location).parent / "compression_states").exists()


def mean_of(log: EvalLog, key: str) -> float:
    """Return a mean over fixtures of the means over their probes."""
    by_fixture: dict[str, list[float]] = {}
    for sample in small.samples(log):
        value = small.values(sample, "fact_retention")[key]
        assert not isnan(value)
        by_fixture.setdefault(small.record(sample).fixture, []).append(value)
    return sum(sum(values) / len(values) for values in by_fixture.values()) / len(by_fixture)


@pytest.mark.slow
def test_strategies_stand_between_the_controls(log_dir: Path) -> None:
    recall = {}
    for compressor in ("full", "anchored", "regenerative", "tail", "none"):
        log = small.run(
            log_dir,
            ["ja-csv-import", "pr-triage"],
            epochs=1,
            compressor=compressor,
            compressor_args={},
            model="embedded/lexical",
            model_roles={"grader": "embedded/lexical"},
        )
        recall[compressor] = mean_of(log, "fact_recall")
    assert recall["full"] > recall["anchored"] > recall["tail"], recall
    assert recall["full"] > recall["regenerative"] > recall["tail"], recall
    assert recall["tail"] > recall["none"], recall
