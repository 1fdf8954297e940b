"""Logs of four arms on a small conversation that is full of markup."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from tests.analysis.embedded import embedded
from tests.e2e import small

EVIL = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='x'\">"
"""Said in the conversation, asked for, and expected in an answer."""


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose ``logs`` contain full, none, tail and a compression that fails."""
    folder = tmp_path_factory.mktemp("report")
    conversation, bank = small.conversation(), small.bank()
    conversation["messages"][-1]["content"] += f" The banner is {EVIL} and 日誌 stays."
    bank["probes"][2]["question"] = f"Which document is next, and is <b>{EVIL}</b> 日誌 in it?"
    bank["probes"][2]["expected_facts"].append({"fact": EVIL, "evidence": [10]})
    tiny = small.write(folder / "data", fixture=conversation, probes=bank)
    for compressor, arguments, status in (
        ("full", {}, "success"),
        ("none", {}, "success"),
        ("tail", {"tail_tokens": 120}, "success"),
        # A run in which nothing was graded counts as failed.
        ("trim", {"preserve": 0.99}, "error"),
    ):
        given = {"compressor": compressor, "compressor_args": arguments}
        embedded(folder / "logs", tiny, epochs=2, status=status, **given)
    return folder


@pytest.fixture(scope="session")
def logs(run_folder: Path) -> Path:
    return run_folder / "logs"


@pytest.fixture(scope="session")
def made(run_folder: Path) -> Path:
    """A report of those logs, with the published figures."""
    out = run_folder / "report"
    done = report(run_folder / "logs", "--out", out, "--reference")
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="session")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not installed: the page is not tried in a browser")
    return found
