"""A sweep that is killed again and again ends with what an undisturbed one ends with."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval.analysis import criteria_frame, facts_frame, samples_frame, states_frame
from tests.e2e import command, small
from tests.sweeping.commanding import settings_file

KILLS = 10
EPOCHS = 6

_CHANCE = {
    *("log", "log_path", "eval_id", "created", "sample_uuid", "state_id"),
    *("total_seconds", "compress_seconds", "computed_here"),
}
"""Columns that no two runs have alike. Which of the samples that need a state comes first, and so
carries its costs, is chance as well; the table of states has the costs."""

COUNTING = """
import os, signal, sys
from pathlib import Path
import anyio
from compression_eval.compressors import running
from compression_eval.embedded.provider import EmbeddedAPI
from compression_eval import solver

file, dies_after = Path(sys.argv[1]), int(sys.argv[2])
seen = 0

def counted(what, inner):
    async def call(*args, **kwargs):
        global seen
        seen += 1
        if seen == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        await anyio.sleep(0.3)
        result = await inner(*args, **kwargs)
        with file.open("a") as lines:
            lines.write(what + chr(10))
        return result
    return call

EmbeddedAPI.generate = counted("call", EmbeddedAPI.generate)
solver.compress = counted("compression", solver.compress)

from compression_eval.cli import main
main(["sweep", "--max-samples", "1", *sys.argv[3:]])
"""
"""The sweep, with calls that take a while. It kills itself at its nth call or compression, and
counts those that came back."""


def start(file: Path, count: Path, dies_after: int) -> "subprocess.Popen[bytes]":
    environment = command.environment(file.parent / "logs", PYTHONPATH=str(command.ROOT))
    return subprocess.Popen(
        [sys.executable, "-c", COUNTING, str(count), str(dies_after), str(file)],
        cwd=command.ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finished(file: Path, count: Path) -> None:
    process = start(file, count, 0)
    _, errors = process.communicate(timeout=command.TIME_LIMIT)
    assert process.returncode == 0, errors.decode()


def tables(folder: Path) -> dict[str, list[str]]:
    """Return every table of a folder: its rows as text, in an order of their own."""
    found = {}
    for frame in (samples_frame, criteria_frame, facts_frame, states_frame):
        rows = frame(folder).drop(columns=list(_CHANCE), errors="ignore")
        if frame is samples_frame:
            costs = [name for name in rows if str(name).startswith("compress_")]
            rows = rows.drop(columns=costs)
        found[frame.__name__] = sorted(map(str, rows.astype(str).to_dict("records")))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_ten_kills_change_nothing(tmp_path: Path) -> None:
    fixtures = [small.write(tmp_path / "data", name) for name in ("tiny", "other")]
    (tmp_path / "plain").mkdir()
    (tmp_path / "killed").mkdir()
    given = {"fixtures": [str(path) for path in fixtures], "epochs": EPOCHS}
    plain = settings_file(tmp_path / "plain", fixtures[0], **given)
    killed = settings_file(tmp_path / "killed", fixtures[0], **given)
    finished(plain, tmp_path / "plain.count")
    whole = Counter((tmp_path / "plain.count").read_text().split())
    seed = int(os.environ.get("COMPRESSION_EVAL_SEED", random.randrange(10**6)))
    print(f"seed {seed}")  # noqa: T201 - a failure can be had again with it
    chance = random.Random(seed)
    ended = 0
    for number in range(KILLS):
        # Half at a random moment, wherever that is; half surely in the middle of the work.
        by_clock = number % 2 == 0
        process = start(killed, tmp_path / "killed.count", 0 if by_clock else chance.randint(1, 8))
        if by_clock:
            time.sleep(chance.uniform(0.5, 5))
            process.kill()
        _, errors = process.communicate(timeout=command.TIME_LIMIT)
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        ended += process.returncode == -signal.SIGKILL
    assert ended == KILLS, "it was killed ten times before it was done"
    finished(killed, tmp_path / "killed.count")

    folder = tmp_path / "killed" / "sweep"
    samples = Counter(
        (read_eval_log(log, header_only=True).eval.task_id, sample.id, sample.epoch)
        for log in list_eval_logs(str(folder))
        for sample in read_eval_log(log).samples or []
    )
    assert len(samples) == 2 * 2 * small.PROBES * EPOCHS
    assert set(samples.values()) == {1}, "every sample once"
    assert tables(folder) == tables(tmp_path / "plain" / "sweep")
    count = Counter((tmp_path / "killed.count").read_text().split())
    print(f"undisturbed {dict(whole)}, killed {ended} times {dict(count)}")  # noqa: T201
    # A kill can lose the samples that were under way (two tasks, one sample of each at a time): a
    # compression, an answer and a grading of each. Everything else is done once.
    assert count["compression"] <= whole["compression"] + ended * 2
    assert count["call"] <= whole["call"] + ended * 2 * 3
