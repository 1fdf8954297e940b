"""The scanner of Inspect Scout, on a log of an agent that was compacted."""

import json
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner
from inspect_ai.model import CompactionSummary
from inspect_scout import scan, scan_results_df, transcripts_from

from compression_eval.cli import main
from compression_eval.postmortem.scanner import fetched_again
from compression_eval.postmortem.sessions import read_sessions
from tests.conversations.readers.inspect_logs import agent, looks, path_of, run


def test_the_scanner_says_of_transcripts_what_a_post_mortem_says_of_their_log(
    tmp_path: Path,
) -> None:
    strategy = CompactionSummary(threshold=4000, memory=False)
    log = path_of(run(tmp_path, agent(strategy), looks(80)))
    (row,) = read_sessions([str(log)])
    assert row.compactions
    done = scan(
        [fetched_again()],
        transcripts=transcripts_from(str(log)),
        scans=str(tmp_path / "scans"),
        max_processes=1,
        display="none",
    )
    assert done.complete, done.errors
    frame = scan_results_df(done.location).scanners["fetched_again"]
    assert list(frame["label"]) == [told.verdict for told in row.compactions]
    held = [told.compaction.window.held for told in row.compactions if told.compaction.window]
    assert list(frame["value"].dropna()) == held
    assert held
    page = tmp_path / "page"
    told = CliRunner().invoke(main, ["report", str(log), "--out", str(page)])
    assert told.exit_code == 0, told.output
    (arm,) = json.loads((page / "figures.json").read_text())["arms"]
    assert arm["means"]["fetched_again"]["mean"] == pytest.approx(fmean(held))
