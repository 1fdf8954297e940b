"""Tokens per correct answer: the same in frames, report and comparison as in the logs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai.log import read_eval_log, write_eval_log

from compression_eval.analysis import samples_frame
from compression_eval.cli import main
from tests.analysis.embedded import TAIL, embedded
from tests.e2e import small


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two arms, one of them once with and once without fetching."""
    folder = tmp_path_factory.mktemp("spending")
    tiny = small.write(folder / "data")
    embedded(folder / "plain", tiny, **TAIL)
    embedded(folder / "fetching", tiny, refetch=True, **TAIL)
    embedded(folder / "none", tiny, compressor="none", refetch=True)
    return folder


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code in (0, 3), result.output
    return result.stdout


def test_a_report_says_what_a_correct_answer_takes(logs: Path, tmp_path: Path) -> None:
    run("report", logs / "fetching", logs / "none", "--out", tmp_path / "out")
    spending = json.loads((tmp_path / "out" / "figures.json").read_text())["spending"]
    frame = samples_frame([logs / "none"])
    assert len(frame) == small.PROBES
    after = spending["none"]["with fetching"]
    assert after["answers"] == small.PROBES
    assert after["tokens"] == pytest.approx(frame["refetch_tokens"].mean())
    assert after["correct"] == pytest.approx(frame["refetch_correct"].mean())
    assert after["correct"] > 0
    assert after["per_correct"] == pytest.approx(after["tokens"] / after["correct"])
    before = spending["none"]["state alone"]
    assert (before["correct"], before["per_correct"]) == (0, None)
    assert before["tokens"] == pytest.approx(frame["answer_all_tokens"].mean())
    assert "### Tokens per correct answer" in (tmp_path / "out" / "report.md").read_text()
    assert 'id="spending"' in (tmp_path / "out" / "index.html").read_text()


def test_where_a_model_graded_only_its_word_counts(logs: Path, tmp_path: Path) -> None:
    (path,) = (logs / "fetching").glob("*.eval")
    log = read_eval_log(str(path))
    for number, sample in enumerate(log.samples or []):
        metadata = (sample.scores or {})["fact_retention"].metadata or {}
        metadata["recall_by"] = "grader"
        for row in metadata["facts"]:  # of all but one, the grader said nothing
            row |= {"in_answer": True, "in_answer_read": None if number else "absent"}
    write_eval_log(log, str(tmp_path / "graded.eval"))
    run("report", tmp_path / "graded.eval", "--out", tmp_path / "out")
    (spent,) = json.loads((tmp_path / "out" / "figures.json").read_text())["spending"].values()
    assert (spent["state alone"]["answers"], spent["state alone"]["correct"]) == (1, 0)


@pytest.mark.filterwarnings("error::pandas.errors.PerformanceWarning")
def test_first_answers_compare_with_and_without_fetching(logs: Path) -> None:
    sides = ("compare", logs / "plain", "--to", logs / "fetching")
    page = run(*sides)
    assert "byte for byte the same" in page
    assert "Tokens per correct answer" in page
    spending = json.loads(run(*sides, "--format", "json"))["spending"]
    assert set(spending["base"]) == {"state alone"}
    assert set(spending["new"]) == {"state alone", "with fetching"}
    assert spending["base"]["state alone"] == spending["new"]["state alone"]
