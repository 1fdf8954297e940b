"""A sweep whose tasks are spread over workers, here over processes of this machine."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval.engine import Engine
from compression_eval.sweeping.commands import ArmResult
from compression_eval.sweeping.planning import current_logs, sweep_plan
from compression_eval.sweeping.settings import SweepSettings
from tests.sweeping.commanding import EMBEDDED, run, samples, settings_file

pytestmark = pytest.mark.slow

SPREAD = ("--engine", "ray")


@pytest.fixture(autouse=True)
def _workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compression_eval.sweeping.commands.engine_of", lambda *_: Engine(1))


def test_a_folder_of_one_machine_is_not_run_again_on_a_cluster(tiny: Path, tmp_path: Path) -> None:
    file, folder = str(settings_file(tmp_path, tiny, epochs=1)), tmp_path / "sweep"
    assert run("sweep", file).code == 0
    before = len(samples(folder))
    ended = run("sweep", file, *SPREAD)
    assert ended.code == 1
    assert f"{folder}: has logs of a sweep that ran on one machine" in ended.errors
    assert "sweep-2" in ended.errors
    assert len(samples(folder)) == before


def test_a_worker_names_a_fitted_arm_by_its_budget(tiny: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"arms": ["edit"], "budgets": [300], "epochs": 1}
    file = str(settings_file(tmp_path, tiny, **given))
    ended = run("sweep", file, *SPREAD)
    assert ended.code == 0, ended.errors
    (log,) = list_eval_logs(str(tmp_path / "sweep"))
    header = read_eval_log(log, header_only=True)
    assert (header.eval.metadata or {})["fitted"]["budgets"] == [300]
    # A log of an earlier attempt is no further one.
    path = Path(log.name.removeprefix("file://"))
    shutil.copy(path, path.with_name(f"2001-{path.name}"))
    assert len(current_logs(tmp_path / "sweep")) == 1
    assert "done: 1 logs" in run("sweep", file, *SPREAD).output
    # Another budget that the same argument fits would give the task another name.
    other = run("sweep", file, *SPREAD, "--budgets", "300,440", "--dry-run")
    assert "budgets that fit keep_tool_uses: 300, now 300 and 440" in other.errors


def test_a_key_of_the_model_is_neither_compared_nor_told(tiny: Path, tmp_path: Path) -> None:
    file = str(settings_file(tmp_path, tiny, epochs=1, models=[EMBEDDED]))
    for key in ("s3cr3t", "s3cond"):
        ended = run("sweep", file, "-M", f"api_key={key}")
        assert ended.code == 0, ended.errors
        assert "s3c" not in ended.output + ended.errors


def test_a_log_at_an_address_is_named_and_not_removed_by_a_command(
    tiny: Path, tmp_path: Path
) -> None:
    assert run("sweep", str(settings_file(tmp_path, tiny, epochs=1))).code == 0
    log, *_ = current_logs(tmp_path / "sweep")
    (arm,) = sweep_plan(SweepSettings(arms="full", controls=False, fixtures=str(tiny))).arms
    assert ArmResult("full", log, arm, None, "nothing").removal.startswith("rm ")
    log.location = "s3://bucket/logs/one.eval"
    assert ArmResult("full", log, arm, None, "nothing").removal == log.location
