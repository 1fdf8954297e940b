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

TESTS = {
    "tests/fixtures/test_tokens.py": "bpe-openai",
    "tests/fixtures/test_packing.py": "pyarrow",
    "tests/fixtures/test_sources.py": "fsspec",
    "tests/conversations/test_rows.py": "datasets",
    "tests/conversations/test_import_command.py": "click zstandard",
    "tests/conversations/scrubbing/test_secrets.py": "kingfisher-secret-scanner",
    "tests/conversations/scrubbing/test_personal.py": "english-words",
    "tests/file_ops/test_shell.py": "tree-sitter tree-sitter-bash",
    "tests/embedded/test_answering.py": "bm25s numpy",
    "tests/compressors/test_langchain.py": "langchain",
    "tests/compressors/vendors/test_vendors.py": "anthropic openai",
    "tests/compressors/test_command.py": "anyio",
    "tests/compressors/hermes/test_interpreter.py": "platformdirs",
    "tests/sweeping/test_locking.py": "s3fs universal-pathlib",
    "tests/sweeping/test_settings.py": "pydantic pyyaml",
    "tests/analysis/test_frames.py": "pandas",
    "tests/analysis/report/test_page.py": "jinja2",
    "tests/analysis/report/test_charts.py": "vl-convert-python",
    "tests/analysis/statistics/test_intervals.py": "scipy",
    "tests/test_terminal.py": "rich",
}
"""What is run with the lowest versions, by the packages whose API it touches most.

All quick tests would take as long there as here. They were run when these were chosen.
"""


def _lowest() -> dict[str, str]:
    """By each package that a user's installation asks for: a requirement of its lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for name in EXTRAS for each in extras[name])]
    bounds = (each.partition(">=") for each in wanted)
    return {name: f"{name}=={version}" for name, _, version in bounds}


def test_every_package_is_touched_with_its_lowest_version() -> None:
    by_tests = set(" ".join(TESTS.values()).split())
    assert set(_lowest()) == by_tests | {"inspect-ai"}, "the eval itself is a run of Inspect"


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
