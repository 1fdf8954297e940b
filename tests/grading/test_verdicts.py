"""How a run reports qualified probes and the others apart."""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog

from compression_eval.fixtures.banks import Probe, verdict_digest
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.loading import load_pair
from compression_eval.grading.metrics import MEAN
from tests.e2e import small

LEXICAL = "embedded/lexical"


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))


def runs(passed: int) -> dict[str, Any]:
    return {"fact_share": passed / 3, "passed": passed, "runs": 3}


def verdict(path: Path, probe: Probe, *, qualified: bool, cut: int = 11) -> dict[str, Any]:
    fixture = load_pair(path).fixture
    return {
        "qualified": qualified,
        "region": "history",
        "full": runs(3),
        "none": runs(0 if qualified else 3),
        "tail": runs(0),
        "model": LEXICAL,
        "judged_by": "facts",
        "tail_tokens": 60,
        "cut": cut,
        "digest": verdict_digest(digest(fixture), probe, cut),
    }


def with_verdicts(folder: Path, cut: int = 11) -> Path:
    """Write the small fixture with a qualified probe, one that is not, and one without verdict."""
    path = small.write(folder)
    bank = small.bank()
    found = load_pair(path).bank.probes
    for position, qualified in ((0, True), (1, False)):
        bank["probes"][position]["qualification"] = verdict(
            path, found[position], qualified=qualified, cut=cut
        )
    return small.write(folder, probes=bank)


def run(path: Path, log_dir: Path, **given: Any) -> EvalLog:
    log = small.run(
        log_dir, path, epochs=1, model=LEXICAL, model_roles={"grader": LEXICAL}, **given
    )
    assert log.status == "success", log.error
    return log


def metrics(log: EvalLog, key: str) -> dict[str, float]:
    """Return what stands apart under one key, by verdict."""
    assert log.results is not None
    (score,) = [score for score in log.results.scores if score.name == key]
    return {
        metric.name: metric.value
        for metric in score.metrics.values()
        if metric.group == "by_verdict"
    }


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    folder = tmp_path_factory.mktemp("verdicts")
    return run(with_verdicts(folder / "data"), folder / "logs")


def test_samples_say_what_is_known_of_their_probe(log: EvalLog) -> None:
    found = {small.names(sample): sample.metadata for sample in small.samples(log)}
    assert {id_: (data["qualified"], data["region"]) for id_, data in found.items()} == {
        "tiny/code": ("qualified", "history"),
        "tiny/file": ("not qualified", "history"),
        "tiny/next": ("unknown", "unknown"),
    }


@pytest.mark.parametrize(
    ("scorer", "key"), [("six_dimensions", "knowledge"), ("fact_retention", "fact_recall")]
)
def test_results_stand_apart_beside_the_headline(log: EvalLog, scorer: str, key: str) -> None:
    values = {small.names(s): small.values(s, scorer)[key] for s in small.samples(log)}
    assert metrics(log, key) == {
        "qualified": values["tiny/code"],
        "not qualified": values["tiny/file"],
        "unknown": values["tiny/next"],
    }
    assert small.means(log)[key] == pytest.approx(sum(values.values()) / 3)
    assert log.results is not None
    headline = log.results.headline
    assert headline is not None
    assert (headline.scorer, headline.score, headline.metric) == (
        "six_dimensions",
        "knowledge",
        MEAN,
    )


def test_the_viewer_has_a_column(log: EvalLog) -> None:
    scores = {small.names(s): (s.scores or {})["qualification"] for s in small.samples(log)}
    assert scores["tiny/code"].value == 1
    assert scores["tiny/file"].value == 0
    assert scores["tiny/next"].reason == "no_verdict"
    assert small.means(log)["qualification"] == 0.5
    assert "score__qualification__qualification" in columns(log)
    graded = [name for name in columns(log) if "six_dimensions" in name]
    assert graded[0] == "score__six_dimensions__knowledge"
    counts = {"qualified": 1, "not qualified": 1, "unknown": 1}
    assert (log.eval.metadata or {})["probes_by_verdict"] == counts


def columns(log: EvalLog) -> list[str]:
    assert log.eval.viewer is not None
    view = log.eval.viewer.task_samples_view
    assert view is not None
    assert not isinstance(view, list)
    return [str(column.id) for column in view.columns or []]


def test_without_a_verdict_nothing_is_shown(tmp_path: Path) -> None:
    plain = run(small.write(tmp_path / "data"), tmp_path / "logs")
    assert {sample.metadata["qualified"] for sample in small.samples(plain)} == {"unknown"}
    assert metrics(plain, "knowledge") == metrics(plain, "fact_recall") == {}
    assert "qualification" not in small.means(plain)
    assert "score__qualification__qualification" not in columns(plain)
    assert "probes_by_verdict" not in (plain.eval.metadata or {})
    assert plain.results is not None
    for score in plain.results.scores:
        assert not any("verdict" in name for name in score.metrics)
