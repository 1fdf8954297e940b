"""The lowest versions that `pyproject.toml` allows are such that the eval and its tests run."""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

ROOT = Path(__file__).parents[2]

EXTRAS = ("analysis", "scrub", "langchain")
# The Flask that the lowest Jinja allows, for moto's server, does not know Werkzeug 3.
FOR_TESTS = ("pytest", "pytest-xdist", "statsmodels", "moto[server]", "werkzeug<3")

TESTS = (
    "tests/fixtures",
    "tests/file_ops",
    "tests/conversations/scrubbing",
    "tests/compressors/test_langchain.py",
    "tests/compressors/vendors",
    "tests/analysis/report",
    "tests/analysis/statistics",
    "tests/analysis/test_frames.py",
)
"""What touches most of the packages, in far less time than all tests take."""


def _lowest() -> dict[str, str]:
    """By each package that a user's installation asks for: a requirement of its lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in EXTRAS for each in extras[name])]
    bounds = (each.partition(">=") for each in wanted)
    return {name: f"{name}=={version}" for name, _, version in bounds}


@pytest.mark.slow
def test_the_eval_and_its_tests_run_with_the_lowest_versions(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    # Exactly these versions: a bound that another package raises, a test's own too, is refused.
    packages = ["-e", f"{ROOT}[{','.join(EXTRAS)}]", *_lowest().values(), *FOR_TESTS]
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", python, *packages]
    subprocess.run(install, check=True, timeout=600)
    logs = tmp_path / "logs"
    run = [str(scripts / "inspect"), "eval", "compression_eval/compression", "--epochs", "1"]
    run += ["--limit", "20"]
    options = ["--log-dir", str(logs), "--display", "plain"]
    subprocess.run([*run, *options], check=True, timeout=600, cwd=tmp_path)
    (info,) = list_eval_logs(str(logs))
    log = read_eval_log(info)
    assert log.status == "success"
    assert log.results is not None
    assert log.results.scores[0].unscored_samples == 0
    # A test that starts a command is to find that of these versions.
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    pytest_ = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(
        pytest_,
        check=False,
        env=environment,
        cwd=ROOT,
        timeout=900,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
