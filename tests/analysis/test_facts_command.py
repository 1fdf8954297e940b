"""`compression-eval facts` on logs of real runs of small conversations."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import read_eval_log, write_eval_log

from compression_eval.cli import main
from tests.analysis.embedded import TAIL, embedded, foreign
from tests.e2e import small

COLUMNS = (
    "log,compressor,fixture,cut,probe,type,fact,epoch,replicate,stage,region,fed,in_state,"
    "in_answer,in_state_read,in_answer_read,state_quotes,instead,age_messages,age_share,cycles,found,status,state_id"
)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["facts", *map(str, arguments)])


def refused(done: Result, code: int = 1) -> str:
    """Return the error of a command that ended with one clean line."""
    assert done.exit_code == code
    assert isinstance(done.exception, SystemExit)
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("Error: ").rstrip("\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log of a run that went well, of one that failed, and of another eval."""
    folder: Path = tmp_path_factory.mktemp("facts")
    for name, status, given in (
        ("tiny", "success", {"compressor_args": small.BUDGETS}),
        ("tail", "success", TAIL),
        # A run in which nothing was graded counts as failed.
        ("failing", "error", {"compressor": "trim", "compressor_args": {"preserve": 0.9}}),
    ):
        fixture = small.write(folder / "data", name)
        embedded(folder / "logs", fixture, epochs=2, status=status, **given)
    foreign(folder / "others")
    return folder


def one_log(folder: Path, fixture: str) -> Path:
    for path in sorted((folder / "logs").glob("*.eval")):
        if read_eval_log(str(path), header_only=True).eval.dataset.name == fixture:
            return path
    raise AssertionError(f"no log of {fixture}")


def test_one_row_per_fact_and_epoch(folder: Path, tmp_path: Path) -> None:
    table, array = tmp_path / "facts.csv", tmp_path / "facts.json"
    done = run(one_log(folder, "tiny"), "--csv", table, "--json", array)
    assert done.exit_code == 0, done.stderr
    written = json.loads(array.read_text("utf-8"))
    assert written["schema"] == 1
    rows = written["facts"]
    facts = [fact["fact"] for probe in small.bank()["probes"] for fact in probe["expected_facts"]]
    assert Counter(row["fact"] for row in rows) == dict.fromkeys(facts, 2)
    assert {row["epoch"] for row in rows} == {1, 2}
    first = next(row for row in rows if row["fact"] == "E4401")
    told: dict[str, object] = {
        "fixture": "tiny",
        "compressor": "anchored",
        "probe": "code",
        "type": "recall",
    }
    told |= {
        "status": "ok",
        "age_messages": 11 - 3,
        "age_share": round(8 / 11, 3),
        "cycles": 1,
        "found": [],
    }
    assert first == first | told
    lines = table.read_text("utf-8").splitlines()
    assert lines[0] == COLUMNS
    read = list(csv.DictReader(lines))
    assert [row["fact"] for row in read] == [row["fact"] for row in rows]
    assert [row["stage"] for row in read] == [row["stage"] for row in rows]


def test_totals_add_up(folder: Path) -> None:
    done = run(one_log(folder, "tiny"))
    assert done.exit_code == 0
    blocks = done.stdout.split("\n\n")
    assert blocks[0] == "6 facts in 2 states"
    *tables, legend = blocks[1:]
    titles = [block.splitlines()[0] for block in tables]
    # Every fact has been through one compression, so there is nothing to tell by cycles.
    assert titles == ["by probe type:", "by region of the state:", "by age (part of the history):"]
    stages = {line.split()[0] for line in tables[0].splitlines()[2:-1]}
    assert {line.split()[0] for line in legend.splitlines()[1:] if line[0] != " "} == stages
    assert "used      in the answer, and in what the compression wrote" in legend
    for block in tables:
        head, *lines, total = [line.split() for line in block.splitlines()[1:]]
        assert head[:2] == ["stage", "facts"]
        assert total[:2] == ["all", "6"]
        assert sum(int(line[1]) for line in lines) == 6
        assert sum(int(cell) for cell in total[2:]) == 6


def test_a_folder_with_a_failed_state(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    done = run(folder)
    assert caplog.messages[-1] == f"{folder}: skipped 1 logs of other evals"
    assert done.exit_code == 0
    assert "18 facts in 6 states, of which 2 failed (not_smaller 2)\n" in done.stdout
    head, *lines = done.stdout.split("\n\n")[1].splitlines()[1:]
    assert head.split()[:3] == ["arm", "used", "verbatim"]
    assert head.split()[-3:] == ["lost", "compression", "failed"]
    by_arm = {line.split()[0]: line.split()[1:] for line in lines}
    assert set(by_arm) == {"anchored", "tail", "trim"}
    assert by_arm["trim"][-1] == "6"
    assert set(by_arm["trim"][:-1]) == {"-"}
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_what_is_no_log_of_ours(folder: Path, tmp_path: Path) -> None:
    others = folder / "others"
    path = next(others.glob("*.eval"))
    assert "no such file or folder" in refused(run(tmp_path / "none.eval"), 2)
    assert "no log of compression_eval in this folder" in refused(run(tmp_path))
    assert refused(run(path)) == f"{path}: a log of 'other', not of compression_eval"
    assert "(1 of other evals)" in refused(run(others))


def test_a_run_that_ended_early_is_read_and_named(folder: Path, tmp_path: Path) -> None:
    log = read_eval_log(str(one_log(folder, "tiny")))
    log.status = "cancelled"
    log.samples = (log.samples or [])[:1]
    path = tmp_path / "cut.eval"
    write_eval_log(log, str(path))
    done = run(path)
    assert done.exit_code == 0
    assert done.stderr == f"{path}: the run ended early (cancelled)\n"
    assert done.stdout.startswith("1 fact in 1 state")
