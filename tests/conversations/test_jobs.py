"""Imports and scrubs in several processes give what one gives, and end cleanly."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.conversations.processes import Apart, Workers
from compression_eval.conversations.sources import Input
from tests.fixtures.building import assistant, fixture_data, user, write_pair

FILES = {
    "a": ["mmuster wrote it", "qvist7 looked", "at 10.20.30.40"],
    "b": ["so Mmuster said", "and what mmuster meant"],
    "c": ['"assignee": "qvist7"', "x" * 5000],
    "d": ["ls /home/mmuster/api", "uid=501(mmuster)", "by @qvist7"],
}
"""What users say: the names are given away in the last files, and stand in the first."""

INTERRUPTED = """
import os, random, signal, sys, time
from multiprocessing import active_children
from compression_eval.conversations.processes import Apart
for _ in range(int(sys.argv[1])):
    with Apart("json") as process:
        process.call("here", len, [])
        (child,) = active_children()
        os.kill(child.pid, signal.SIGINT)
        end = time.perf_counter() + random.random() * 0.0005
        while time.perf_counter() < end:
            pass
    print(child.exitcode)
"""
"""As after ctrl-c, which reaches both processes, at times close to each other."""


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
    """Cannot be made anew of what pickle keeps of it."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def fail(*_: object) -> Any:
    raise OddError("no", "luck")


class Worker:
    def stay(self, _: Input) -> Iterator[str]:
        with TemporaryDirectory() as folder:
            yield folder
            time.sleep(600)

    def fail(self, _: Input) -> Iterator[Any]:
        yield fail()

    def give_a_lock(self, _: Input) -> Iterator[Any]:
        yield Lock()


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
        runs.append((sorted(done.stdout.splitlines()), total, contents("out")))
        Path("out").rename(f"out{jobs}")
    assert runs[0] == runs[1]
    texts = b"".join(text for _, text in runs[0][2]).lower()
    assert len(runs[0][2]) == files
    assert b"mmuster" not in texts
    assert b"qvist7" not in texts


@pytest.mark.slow
def test_an_audit_says_the_same_in_several_processes(sessions: list[Path]) -> None:
    alone, together = (run("audit", *sessions, "--jobs", jobs) for jobs in (1, 2))
    assert alone.exit_code == together.exit_code == 1
    assert alone.stdout == together.stdout
    assert "in/a.json: messages[4].content: addresses: ipv4" in alone.stdout


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_named_and_stops_only_what_it_must(
    sessions: list[Path],
) -> None:
    bad = Path("in/bb.json")
    bad.write_text('{"messages": [{"role": "user", "content": ' + "[" * 100_000)
    files = [*sessions[:2], bad, *sessions[2:]]
    imported = run("import", *files, "--scrub", "default", "--jobs", 2, "--out", "imported")
    assert imported.exit_code == 1
    assert "in/bb.json: no known format" in imported.stdout
    assert len(contents("imported")) == len(FILES)
    scrubbed = run("scrub", *files, "--jobs", 2, "--out", "scrubbed")
    assert scrubbed.exit_code == 1
    assert isinstance(scrubbed.exception, SystemExit)
    assert "in/bb.json: " in scrubbed.stderr
    assert contents("scrubbed") == []


def workers_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """Wait for the two processes that work for a command."""
    for _ in range(6000):
        assert process.poll() is None, process.communicate()
        # They are forked from a process of the command that has imported what they need.
        found = [each for one in psutil.Process(process.pid).children() for each in one.children()]
        if len(found) == 2:
            return found
        time.sleep(0.01)
    raise AssertionError("no processes were started")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("a worker is killed", 1, ".json: the process that worked on it ended by signal 9\n"),
        ("ctrl-c", 130, "Interrupted."),
        ("sigterm", 128 + signal.SIGTERM, ""),
    ],
)
def test_the_end_of_a_process_ends_the_command_cleanly(
    how: str, code: int, said: str, sessions: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("tmp")
    arguments = ["import", "in", "--scrub", "default", "--jobs", "2", "--out", "out.parquet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "compression_eval.cli", *arguments, "--explain=account.jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    workers = workers_of(process)
    if how == "a worker is killed":
        workers[1].kill()
    else:
        process.send_signal(signal.SIGINT if how == "ctrl-c" else signal.SIGTERM)
    _, error = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in error
    assert said in error
    assert not any(worker.is_running() for worker in workers)
    assert [path.name for path in Path().iterdir()] == ["in"]
    assert not list(temporary.iterdir())


def test_workers_that_are_ended_leave_no_files() -> None:
    handler = signal.getsignal(signal.SIGTERM)
    items = [Input(name, named=True) for name in "ab"]
    with Workers(partial(Worker), items, jobs=2) as workers:
        _, results = next(workers.each("", Worker.stay, items))
        folder = Path(next(results))
        assert folder.is_dir()
    assert not folder.exists()
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize(
    ("method", "function", "error"),
    [
        (Worker.fail, fail, "OddError: no luck"),
        (Worker.give_a_lock, Lock, "cannot pickle '_thread.lock' object"),
    ],
)
def test_what_cannot_go_to_another_process_is_told(method: Any, function: Any, error: str) -> None:
    with Apart(__name__) as process, pytest.raises((RuntimeError, TypeError), match=error):
        process.call("here", function)
    items = [Input(name, named=True) for name in "ab"]
    with Workers(partial(Worker), items, jobs=2) as workers:
        ((_, results), *_) = workers.each("", method, items)
        with pytest.raises((RuntimeError, TypeError), match=error):
            next(results)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_process_that_is_interrupted_and_ended_at_once_ends_in_order() -> None:
    times = 60
    command = [sys.executable, "-c", INTERRUPTED, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == ""
    assert done.stdout.split() == [str(128 + signal.SIGTERM)] * times


def test_an_error_of_all_workers_is_told() -> None:
    items = [Input(name, named=True) for name in "ab"]
    with (
        Workers(partial(Worker), items, jobs=2) as workers,
        pytest.raises(RuntimeError, match="OddError: no luck"),
    ):
        workers.all(fail)


def test_a_process_that_cannot_be_started_ends_those_before_it(
    sessions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, start = signal.getsignal(signal.SIGTERM), BaseProcess.start

    def start_one(self: BaseProcess) -> None:
        if active_children():
            raise EOFError("unexpected EOF")
        start(self)

    monkeypatch.setattr(BaseProcess, "start", start_one)
    done = run("import", *sessions, "--jobs", 2, "--out", "out")
    assert done.exit_code == 1
    assert done.stderr == "Error: a process cannot be started: unexpected EOF\n"
    assert not active_children()
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.slow
def test_the_temporary_folder_may_have_a_long_name(
    sessions: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("t" * 100)
    command = [sys.executable, "-m", "compression_eval.cli", "import", "in", "--jobs", "2"]
    environment = os.environ | {"TMPDIR": str(folder)}
    subprocess.run([*command, "--out", "out"], check=True, env=environment)
    assert len(contents("out")) == len(FILES)
    assert not list(folder.iterdir())
