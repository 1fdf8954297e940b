"""The lowest versions that `pyproject.toml` allows are such that the eval runs with them."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_eval_runs_with_the_lowest_versions(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    packages = [f"{ROOT}[analysis,scrub]", "--resolution", "lowest-direct"]
    python = str(scripts / "python")
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", python, *packages]
    subprocess.run(install, check=True, timeout=600)
    logs = tmp_path / "logs"
    run = [str(scripts / "inspect"), "eval", "compression_eval/compression", "--epochs", "1"]
    options = ["--log-dir", str(logs), "--display", "plain"]
    subprocess.run([*run, *options], check=True, timeout=600, cwd=tmp_path)
    (info,) = list_eval_logs(str(logs))
    log = read_eval_log(info)
    assert log.status == "success"
    assert log.results is not None
    assert log.results.scores[0].unscored_samples == 0
