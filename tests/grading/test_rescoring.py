import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import score
from inspect_ai.log import EvalLog, read_eval_log

from compression_eval.grading.metrics import MEAN
from compression_eval.grading.scorers import compression, fact_retention, six_dimensions
from tests.grading.samples import MockGrader, metric, record, reply, run, samples

SCORERS = Path(__file__).parents[2] / "scorers"


@pytest.fixture
def log(tmp_path: Path) -> EvalLog:
    grader = MockGrader([reply(4)])
    made = run(
        [six_dimensions(), fact_retention(), compression()],
        {("a", 1): record(), ("b", 1): record(answer="It uses 3000.", fixture="two")},
        tmp_path,
        grader,
    )
    return read_eval_log(made.location)


def test_another_grader_reads_a_log_from_disk(log: EvalLog) -> None:
    second = MockGrader([reply(2)], name="mockllm/second")
    again = score(
        log,
        six_dimensions(),
        model_roles={"grader": second.model},
        action="overwrite",
        display="log",
    )
    assert metric(again, "overall") == 2
    assert len(second.requests) == 2
    for sample in samples(again):
        assert sample.scores is not None
        graders = (sample.scores["six_dimensions"].metadata or {})["graders"]
        assert [grader["model"] for grader in graders] == ["mockllm/second"]


def test_appending_keeps_the_first_grading(log: EvalLog) -> None:
    second = MockGrader([reply(2)], name="mockllm/second")
    again = score(
        log,
        six_dimensions(criteria="by_type", grader_context="none"),
        model_roles={"grader": second.model},
        action="append",
        display="log",
    )
    assert again.results
    means = {
        item.scorer: item.metrics[MEAN].value
        for item in again.results.scores
        if item.name == "overall"
    }
    assert means == {"six_dimensions": 4, "six_dimensions1": 2}


@pytest.mark.slow
@pytest.mark.parametrize("scorer", [str(SCORERS / "fact_retention.py"), "scorers/compression.py"])
def test_the_command_line_finds_the_front_doors(log: EvalLog, tmp_path: Path, scorer: str) -> None:
    out = tmp_path / "again.eval"
    command: list[Any] = [sys.executable, "-m", "inspect_ai", "score", log.location]
    command += ["--scorer", scorer, "--action", "overwrite", "--output-file", out]
    done = subprocess.run(
        [*command, "--display", "none"],
        capture_output=True,
        text=True,
        cwd=SCORERS.parent,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    again = read_eval_log(str(out))
    assert {item.scorer for item in (again.results.scores if again.results else [])} == {
        Path(scorer).stem
    }
