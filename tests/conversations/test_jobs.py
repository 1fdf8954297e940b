"""Imports and scrubs in several processes give what one gives, and end cleanly."""

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.engine import Engine
from compression_eval.errors import DataError
from tests.fixtures.building import assistant, fixture_data, user, write_pair

FILES = {
    "a": ["mmuster wrote it", "qvist7 looked", "at 10.20.30.40"],
    "b": ["so Mmuster said", "and what mmuster meant"],
    "c": ['"assignee": "qvist7"', "x" * 5000],
    "d": ["ls /home/mmuster/api", "uid=501(mmuster)", "by @qvist7"],
}
"""What users say: the names are given away in the last files, and are in the first."""

TOOK_OVER = "print('not ours'); raise SystemExit(9)\n"

SCRIPT = """
import sys, threading
from compression_eval.cli import main
if __name__ == "__main__":
    if sys.argv.pop(1) == "threads":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    main()
"""


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    paths = []
    for name, texts in FILES.items():
        messages = [message for text in texts for message in (user(text), assistant("ok"))]
        data = fixture_data(name=name, messages=messages)
        paths.append(write_pair(tmp_path / "in", data).relative_to(tmp_path))
    return paths


class OddError(Exception):
    """Cannot be made again of what pickle keeps of it."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def work(unit: str) -> Any:
    if unit == "odd":
        raise OddError("no", "luck")
    if unit == "lock":
        return Lock()
    if unit == "files":
        return TemporaryDirectory().name
    if unit == "killed" or (unit.startswith("/") and Path(unit).exists()):
        Path(unit).unlink(missing_ok=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return unit


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def contents(folder: str) -> list[tuple[str, bytes]]:
    return sorted((path.name, path.read_bytes()) for path in Path(folder).iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "files"), [(["import", "--scrub", "default"], 4), (["scrub", "--report", "r"], 8)]
)
def test_any_number_of_processes_and_any_order_give_the_same_bytes(
    command: list[str], files: int, sessions: list[Path]
) -> None:
    runs = []
    for jobs, order in ((1, sessions), (2, sessions[::-1])):
        done = run(*command, *order, "--jobs", jobs, "--out", "out")
        assert done.exit_code == 0, done.output
        total = json.loads(Path("r").read_text())["total"] if Path("r").exists() else None
        # Where something was left out first depends on the order of the files.
        lines = sorted(line.partition(" (first at ")[0] for line in done.stdout.splitlines())
        runs.append((lines, total, contents("out")))
        Path("out").rename(f"out{jobs}")
    assert runs[0] == runs[1]
    texts = b"".join(text for _, text in runs[0][2]).lower()
    assert len(runs[0][2]) == files
    assert b"mmuster" not in texts
    assert b"qvist7" not in texts


def workers_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """Wait for the two processes that work for a command."""
    for _ in range(6000):
        assert process.poll() is None, process.communicate()
        found: list[psutil.Process] = psutil.Process(process.pid).children()
        if len(found) == 2:
            return found
        time.sleep(0.01)
    raise AssertionError("no processes were started")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forked processes")
@pytest.mark.parametrize("how", ["a worker is killed", "ctrl-c", "killed"])
def test_the_end_of_a_process_ends_the_command_cleanly_or_loses_nothing(
    how: str, sessions: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("tmp")
    for number in range(12):  # so that the work takes seconds, in which the processes can be found
        texts = [f"step {number}.{step}: file_{step}.py at {step * 7919:x}" for step in range(600)]
        messages = [message for text in texts for message in (user(text), assistant("ok"))]
        write_pair(Path("in"), fixture_data(name=f"long-{number}", messages=messages))
    arguments = ["import", "in", "--scrub", "default", "--jobs", "2", "--out", "out.parquet"]
    alone = tmp_path_factory.mktemp("one") / "out.parquet"
    assert run(*arguments[:-1], alone).exit_code == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "compression_eval.cli", *arguments, "--explain=account.jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    workers = workers_of(process)
    begun = time.monotonic()
    if how == "a worker is killed":
        workers[1].kill()
    else:
        ends = {"ctrl-c": signal.SIGINT, "sigterm": signal.SIGTERM, "killed": signal.SIGKILL}
        process.send_signal(ends[how])
    _, error = process.communicate(timeout=120)
    took = time.monotonic() - begun
    codes = {"a worker is killed": 0, "ctrl-c": 130, "sigterm": 143, "killed": -signal.SIGKILL}
    assert process.returncode == codes[how], error
    assert "Traceback" not in error
    psutil.wait_procs(workers, timeout=10)
    assert not any(worker.is_running() for worker in workers)
    if how == "ctrl-c":
        assert error.strip() == "Interrupted."
        assert took < 5, "a second, on a machine with nothing else to do"
    if how == "a worker is killed":
        assert Path("out.parquet").read_bytes() == alone.read_bytes()
    elif how != "killed":
        assert [path.name for path in Path().iterdir()] == ["in"]
        assert not list(temporary.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_unit_whose_worker_dies_is_done_again_and_named_the_second_time(tmp_path: Path) -> None:
    once = tmp_path / "once"
    once.touch()
    units = ["a", "killed", str(once), "odd", "lock", "b", "c"]
    engine, done = Engine(2), list[tuple[int, str]]()
    told = (
        r"unit killed: the processes that worked on it died\n"
        r".*unit odd: OddError: no luck \(please report this: in work, line \d+ of test_jobs\.py\)"
        r"\n.*unit lock: TypeError: cannot pickle '_thread.lock' object"
    )
    with engine.opened([1] * len(units)):
        with pytest.raises(DataError, match=told):
            done.extend(engine.run("test", work, units, "unit {}".format))
        assert done == [(0, "a"), (2, str(once)), (5, "b"), (6, "c")]
    assert not active_children()


@pytest.mark.skipif(os.name != "posix", reason="forked processes")
@pytest.mark.parametrize("how", ["forked", "threads"])
def test_workers_import_nothing_from_the_current_folder(
    how: str, sessions: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    script = tmp_path_factory.mktemp("script") / "run.py"
    script.write_text(SCRIPT)
    for name in ("compression_eval", "multiprocessing", "concurrent", "click"):
        Path(name).mkdir()
        Path(name, "__init__.py").write_text(TOOK_OVER)
    Path("signal.py").write_text(TOOK_OVER)
    folder = tmp_path_factory.mktemp("t")
    command = [sys.executable, str(script), how]
    done = subprocess.run(
        [*command, "import", "in", "--jobs", "2", "--out", "out"],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "not ours" not in done.stdout + done.stderr
    assert len(contents("out")) == len(FILES)
    assert not list(folder.iterdir())
