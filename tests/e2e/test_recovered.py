"""A sample that Inspect recovered without its store is scored and reported like others."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai import eval_retry, score
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput, get_model

from compression_eval.analysis import criteria_frame, facts_frame, samples_frame
from compression_eval.analysis.frames import fact_rows
from compression_eval.analysis.logs import find_logs
from compression_eval.grading.scorers import fact_retention, six_dimensions
from compression_eval.record import ProbeRecord
from tests.e2e import command, small
from tests.e2e.scripted import COMPRESSES, GRADES, ScriptedModel, Scripts


def without_stores(log: EvalLog, folder: Path, *, events: bool = True) -> str:
    """Write a log as recovery leaves it: the compressor's messages and output, and no store."""
    for sample in small.samples(log):
        sample.store = {}
        sample.messages = [ChatMessageUser(content="summarise")]
        sample.output = ModelOutput.from_content("compressor", "the summary")
        if not events:
            sample.events = []
    folder.mkdir()
    write_eval_log(log, path := str(folder / Path(log.location).name))
    return path


def requests(scripts: Scripts) -> list[str]:
    """Return what the grader was asked, but for where one user message ends and another begins."""
    texts = (call.text.replace("[user]", "") for call in scripts[GRADES].calls)
    return sorted(re.sub(r"(\\n)+", " ", text) for text in texts)


@pytest.mark.parametrize("collapses", [False, True], ids=["question apart", "question merged"])
@pytest.mark.parametrize("compressor", ["anchored", "summary"])
def test_tables_and_scores_are_the_same_without_the_store(
    compressor: str,
    collapses: bool,
    scripts: Scripts,
    tiny: Path,
    log_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ScriptedModel, "collapse_user_messages", lambda _: collapses)
    arguments = small.BUDGETS if compressor == "anchored" else {}
    run = small.run(log_dir, tiny, compressor=compressor, compressor_args=arguments, epochs=1)
    whole = run.location
    stripped = without_stores(read_eval_log(whole), tmp_path / "recovered")
    for frame in (samples_frame, criteria_frame, facts_frame):
        rows, expected = frame(stripped), frame(whole)
        assert not expected.empty
        assert rows.drop(columns="log_path", errors="ignore").equals(
            expected.drop(columns="log_path", errors="ignore")
        )
    first = requests(scripts)
    scripts[GRADES].calls.clear()
    again = score(
        read_eval_log(stripped),
        [six_dimensions(), fact_retention(state_facts="match")],
        action="overwrite",
        model="scripted/answers",
        model_roles={"grader": get_model(f"scripted/{GRADES}")},
    )
    assert small.means(again)["overall"] == 4
    assert small.means(again)["fact_recall"] == small.means(run)["fact_recall"]
    assert requests(scripts) == first
    assert len(scripts[COMPRESSES].calls) == 1


def test_what_cannot_be_recovered_is_named(
    scripts: Scripts, tiny: Path, log_dir: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = small.run(log_dir, tiny, epochs=1)
    path = without_stores(run, tmp_path / "recovered", events=False)
    assert fact_rows(find_logs([path])) == []
    assert f"{small.PROBES} scored samples have no record" in caplog.text
    caplog.clear()
    samples_frame(path)
    assert f"{small.PROBES} scored samples have no record" in caplog.text


RECOVERED = """
import os, signal, sys
from pathlib import Path
from tests.e2e import scripted, small

log_dir, fixture, dies_at = sys.argv[1:]
scripted.SCRIPTS.update(scripted.proper_scripts())
asked = 0

def grade(call):
    global asked
    asked += 1
    if asked == int(dies_at):
        os.kill(os.getpid(), signal.SIGKILL)
    return scripted.proper_grading(call)

scripted.SCRIPTS["grades"].reply = grade
# Samples are not written to the log one by one, so those that are done stand in the buffer alone.
options = {"max_samples": 1, "log_buffer": 100, "log_realtime": True}
small.run(Path(log_dir), Path(fixture), options=options)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_samples_recovered_from_the_buffer_of_a_killed_run_keep_their_record(
    scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", RECOVERED, str(log_dir), str(tiny), "6"],
        cwd=command.ROOT,
        env=command.environment(log_dir, PYTHONPATH=str(command.ROOT)),
        capture_output=True,
        check=False,
        timeout=command.TIME_LIMIT,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    (path,) = command.logs(log_dir)
    log = eval_retry(str(path), log_dir=str(log_dir), display="log")[0]
    samples = small.samples(log)
    assert len(samples) == small.PROBES * small.EPOCHS
    bare = [sample for sample in samples if sample.store_as(ProbeRecord).sample is None]
    assert bare, "some were recovered without a store"
    rows = samples_frame(log.location)
    assert rows["state_id"].notna().all()
    assert rows["answer"].str.startswith("In reply to").all()
    assert rows["overall"].tolist() == [4] * len(samples)
    assert facts_frame(log.location)["stage"].notna().all()
    assert len(facts_frame(log.location)) == len(samples)
    asked = len(scripts[GRADES].calls)
    again = score(
        read_eval_log(log.location),
        six_dimensions(),
        action="overwrite",
        model="scripted/answers",
        model_roles={"grader": get_model(f"scripted/{GRADES}")},
    )
    assert small.means(again)["overall"] == 4
    requests = [call.text for call in scripts[GRADES].calls[asked:]]
    assert len(requests) == len(samples)
    assert all("E4401 (written by call" in text for text in requests), "the state is shown"
