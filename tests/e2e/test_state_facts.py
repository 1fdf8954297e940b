"""Facts of states as the grader reads them, in whole runs."""

import csv
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai.log import write_eval_log

from compression_eval.analysis.frames import facts_frame, samples_frame
from compression_eval.cli import main
from tests.e2e import small
from tests.e2e.scripted import GRADES, Call, Scripts, is_reading, proper_grading


def readings(scripts: Scripts) -> list[Call]:
    return [call for call in scripts[GRADES].calls if is_reading(call)]


def test_each_state_is_read_once_for_all_probes(
    tmp_path: Path, log_dir: Path, scripts: Scripts
) -> None:
    fixture = small.write(tmp_path / "data")
    log = small.run(log_dir, fixture, epochs=2, answers=1, state_facts=None)
    assert len(small.samples(log)) == 6
    asked = readings(scripts)
    assert len(asked) == 2, "one for each compression, since no two say the same"
    assert all(name in asked[0].last for name in ("E4401", "auth/session.py", "docs/retry.md"))
    means = small.means(log)
    assert means["fact_survival"] == pytest.approx(1 / 3)
    assert not math.isnan(means["fact_agreement"])
    assert "failures" not in log.metadata


def test_a_reader_that_fails_is_told_and_costs_no_grade(
    tmp_path: Path, log_dir: Path, scripts: Scripts
) -> None:
    scripts[GRADES].reply = lambda call: (
        "I would rather not." if is_reading(call) else proper_grading(call)
    )
    fixture = small.write(tmp_path / "data")
    log = small.run(log_dir, fixture, epochs=1, state_facts=None, max_failed=0)
    assert all(small.values(sample, "six_dimensions") for sample in small.samples(log))
    assert log.metadata["failures"][-1] == ("1 of 1 state reading failed: unusable reply: not_json")
    means = small.means(log)
    assert math.isnan(means["fact_survival"])
    assert not math.isnan(means["fact_recall"])


def test_the_words_are_in_tables_and_frames(
    tmp_path: Path, log_dir: Path, scripts: Scripts
) -> None:
    log = small.run(log_dir, small.write(tmp_path / "data"), epochs=1, state_facts="reader")
    table = tmp_path / "facts.csv"
    done = CliRunner().invoke(main, ["facts", log.location, "--csv", str(table)])
    assert done.exit_code == 0, done.stderr
    assert "look-up and reader agree on the state for" in done.stdout
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert [row["in_state_read"] for row in rows] == ["stated", "absent", "absent"]
    assert rows[0]["state_quotes"] == "You are a coding agent."
    frame = facts_frame(log.location)
    assert list(frame["in_state_read"]) == ["stated", "absent", "absent"]
    kept = {
        row["fact"]: row["stage"]
        for sample in small.samples(log)
        for row in (sample.scores or {})["fact_retention"].metadata["facts"]  # type: ignore[index]
    }
    assert dict(zip(frame["fact"], frame["stage"], strict=True)) == kept
    samples = samples_frame(log.location)
    assert samples["fact_survival"].tolist() == [1, 0, 0]
    assert set(samples["survival_by"]) == {"reader"}
    assert set(samples["recall_by"]) == {"grader"}


@pytest.mark.parametrize("failed", ["fact_survival", "fact_recall"])
@pytest.mark.usefixtures("scripts")
def test_a_reading_that_failed_in_an_older_log_has_no_value(
    tmp_path: Path, log_dir: Path, failed: str
) -> None:
    log = small.run(log_dir, small.write(tmp_path / "data"), epochs=1, state_facts="reader")
    for sample in small.samples(log):
        score = (sample.scores or {})["fact_retention"]
        values: dict[str, float] = score.as_dict()  # type: ignore[assignment]
        for key in ("fact_recall", "fact_survival"):
            values[f"{key}_read"] = math.nan if key == failed else values[key]
            values[key] = 0.5  # by look-up
        del score.metadata["survival_by"], score.metadata["recall_by"]  # type: ignore[index]
    older = tmp_path / "older.eval"
    write_eval_log(log, str(older))
    frame = samples_frame(str(older))
    assert frame[failed].isna().all()
    (other,) = {"fact_survival", "fact_recall"} - {failed}
    assert (frame[other] != 0.5).all()
    assert (set(frame["survival_by"]), set(frame["recall_by"])) == ({"reader"}, {"grader"})


@pytest.mark.usefixtures("scripts")
def test_logs_of_older_versions_have_the_new_name_of_a_stage(tmp_path: Path, log_dir: Path) -> None:
    log = small.run(
        log_dir, small.write(tmp_path / "data"), epochs=1, compressor="none", compressor_args=None
    )
    for sample in small.samples(log):
        kept = sample.store["ProbeRecord:sample"]
        kept["state"].pop("asked")
        score = (sample.scores or {})["fact_retention"]
        for row in (score.metadata or {})["facts"]:
            for name in ("in_state_read", "state_quotes", "state_read_problem", "in_answer_read"):
                row.pop(name)
            row["stage"] = row["stage"].replace("answered_not_found", "guessed")
        del score.metadata["survival_by"], score.metadata["recall_by"]  # type: ignore[index]
    older = tmp_path / "older.eval"
    write_eval_log(log, str(older))
    stages = set(facts_frame(str(older))["stage"])
    assert "answered_not_found" in stages
    assert "guessed" not in stages
    assert set(samples_frame(str(older))["survival_by"]) == {"look-up"}
