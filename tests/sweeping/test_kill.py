"""A sweep that is killed loses nothing that it had, and the same command continues from there."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval.analysis import samples_frame
from tests.e2e import command, small
from tests.sweeping.commanding import settings_file

EPOCHS = 2

COUNTING = """
import os, signal, sys
from pathlib import Path
from compression_eval import solver
from compression_eval.cli import main

file, dies_after = Path(sys.argv[1]), int(sys.argv[2])
compress = solver.compress
seen = 0

async def counted(*args, **kwargs):
    global seen
    seen += 1
    if seen == dies_after:
        os.kill(os.getpid(), signal.SIGKILL)
    result = await compress(*args, **kwargs)
    with file.open("a") as lines:
        lines.write("compression" + chr(10))
    return result

solver.compress = counted
main(["sweep", "--max-samples", "1", "--max-tasks", "1", "--log-buffer", "1", *sys.argv[3:]])
"""
"""The sweep, one sample at a time. It kills itself at its nth compression and counts the others."""


def sweep(file: Path, count: Path, dies_after: int = 0) -> int:
    environment = command.environment(file.parent / "logs", PYTHONPATH=str(command.ROOT))
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, str(count), str(dies_after), str(file)],
        cwd=command.ROOT,
        env=environment,
        capture_output=True,
        timeout=command.TIME_LIMIT,
        check=False,
    )
    return done.returncode


def finished(folder: Path) -> dict[tuple[str, object, int], str]:
    """Return the id that each sample of a folder was run under, by task, sample and epoch."""
    return {
        (log.eval.task_id, sample.id, sample.epoch): str(sample.uuid)
        for log in map(read_eval_log, list_eval_logs(str(folder), descending=False))
        for sample in log.samples or []
    }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_kill_loses_nothing_and_nothing_is_run_twice(tmp_path: Path) -> None:
    fixtures = [small.write(tmp_path / "data", name) for name in ("tiny", "other")]
    file = settings_file(
        tmp_path, fixtures[0], fixtures=[str(path) for path in fixtures], epochs=EPOCHS
    )
    folder, count = tmp_path / "sweep", tmp_path / "count"
    # At the second arm's third of four compressions: one task is done, another under way.
    assert sweep(file, count, dies_after=2 * EPOCHS + 3) == -signal.SIGKILL
    before = finished(folder)
    assert len(before) > 2 * small.PROBES * EPOCHS
    assert sweep(file, count) == 0
    frame = samples_frame(folder)
    assert len(frame) == 2 * 2 * small.PROBES * EPOCHS
    assert not frame.duplicated(["arm", "sample", "epoch"]).any()
    after = {uuid for log in set(frame["log_path"]) for uuid in uuids(str(log))}
    assert set(before.values()) <= after, "what was done is in the logs as it was"
    # What was under way may be compressed again: one state of one sample.
    assert Counter(count.read_text().split())["compression"] <= 2 * 2 * EPOCHS + 1


def uuids(path: str) -> list[str]:
    return [
        str(sample.uuid) for sample in read_eval_log(path.removeprefix("file://")).samples or []
    ]
