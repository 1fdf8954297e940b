"""A run that dies is taken up again with the states it has; nothing is compressed twice."""

import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from uuid import uuid4

import pytest
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, read_eval_log

from compression_eval import sharing
from compression_eval.record import ProbeRecord
from tests.e2e import command, scripted, small
from tests.e2e.scripted import ANSWERS, COMPRESSES, Call, Script, Scripts, proper_answer


def random_compression(call: Call) -> str:
    """Summarise in words that no other call uses."""
    return scripted.operations(f"E4401, summary {uuid4().hex}")


def states_over(*logs: EvalLog) -> dict[tuple[str, int], set[str]]:
    """Return the ids of the states of each fixture and epoch, over all samples that finished."""
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for log in logs:
        for sample in log.samples or []:
            # A sample that was interrupted early has no record.
            record = sample.store_as(ProbeRecord).sample
            if record is not None:
                found[record.fixture, sample.epoch].add(record.state.state_id)
    return found


def breaking_at(number: int) -> Script:
    """An answering model that breaks at one call, and works from then on."""

    def reply(call: Call) -> str:
        if call.number == number:
            raise RuntimeError("the connection is gone")
        return proper_answer(call)

    return Script(reply)


@pytest.mark.parametrize(("dies_at", "places"), [(0, 1), (1, 2), (5, 2)])
def test_a_retried_run_goes_on_with_its_states(
    dies_at: int, places: int, scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    scripts[ANSWERS] = breaking_at(dies_at)
    scripts[COMPRESSES].reply = random_compression
    first = small.run(log_dir, tiny, options={"max_samples": places})
    assert first.status == "error"
    kept = len(list((log_dir / sharing.STATES_FOLDER).rglob("*.state.gz")))
    assert kept >= 1
    scripts[COMPRESSES].calls.clear()
    second = eval_retry(first, log_dir=str(log_dir), display="log")[0]
    assert len(small.samples(second)) == small.PROBES * small.EPOCHS
    assert second.eval.task_id == first.eval.task_id
    # One that was under way when the run died is not kept.
    assert len(scripts[COMPRESSES].calls) == small.EPOCHS - kept, "nothing was compressed twice"
    over_both = states_over(first, second)
    assert [len(ids) for ids in over_both.values()] == [1] * small.EPOCHS
    assert small.means(second)["overall"] == 4


@pytest.mark.parametrize("lost", [False, True])
def test_a_retry_into_another_folder_finds_its_states_or_says_that_it_mixes_them(
    lost: bool, scripts: Scripts, tiny: Path, tmp_path: Path, log_dir: Path
) -> None:
    scripts[ANSWERS] = breaking_at(0)
    scripts[COMPRESSES].reply = random_compression
    first = small.run(log_dir, tiny, epochs=1, options={"fail_on_error": False})
    if lost:
        shutil.rmtree(log_dir / sharing.STATES_FOLDER)
    second = eval_retry(first, log_dir=str(tmp_path / "elsewhere"), display="log")[0]
    assert len(scripts[COMPRESSES].calls) == 1 + lost
    assert [len(ids) for ids in states_over(second).values()] == [1 + lost]
    failures = (second.metadata or {}).get("failures", [])
    assert any("1 replicate mixes samples" in line for line in failures) == lost
    assert not list(tmp_path.rglob(sharing.STATES_FOLDER)), "nothing goes on with them"


def test_a_retried_run_does_not_try_a_failed_compression_again(
    scripts: Scripts, tiny: Path, tmp_path: Path, log_dir: Path
) -> None:
    other = small.write(tmp_path / "data", "other")
    scripts[ANSWERS] = breaking_at(2)
    scripts[COMPRESSES].reply = lambda call: "" if call.number == 0 else random_compression(call)
    first = small.run(
        log_dir, [tiny, other], compressor="regenerative", epochs=1, options={"max_samples": 1}
    )
    assert first.status == "error"
    second = eval_retry(first, log_dir=str(log_dir), display="log")[0]
    assert small.means(second)["failed_states"] == 1
    assert len(scripts[COMPRESSES].calls) == 2


def test_swapped_states_are_computed_anew(scripts: Scripts, tiny: Path, log_dir: Path) -> None:
    other = small.write(tiny.parent, "other")
    scripts[ANSWERS] = breaking_at(3)
    scripts[COMPRESSES].reply = random_compression
    first = small.run(log_dir, [tiny, other], epochs=1, options={"max_samples": 1})
    assert first.status == "error"
    one, two = log_dir.rglob("*.state.gz")
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    second = eval_retry(first, log_dir=str(log_dir), display="log")[0]
    for sample in small.samples(second):
        assert small.record(sample).fixture == small.names(sample).partition("/")[0]
    assert len(scripts[COMPRESSES].calls) > 2, "neither was believed"


PROGRAM = """
import os, signal, sys
from pathlib import Path
from tests.e2e import scripted, small
from tests.e2e.test_retry import counted, random_compression

log_dir, fixture, count, dies_at = sys.argv[1:]
scripted.SCRIPTS.update(scripted.proper_scripts())
scripted.SCRIPTS["compresses"].reply = counted(Path(count))

def reply(call):
    if call.number == int(dies_at):
        os.kill(os.getpid(), signal.SIGKILL)
    return scripted.proper_answer(call)

scripted.SCRIPTS["answers"].reply = reply
options = {"max_samples": 2, "log_buffer": 1, "log_realtime": True}
small.run(Path(log_dir), Path(fixture), options=options)
"""


def counted(file: Path) -> scripted.Reply:
    """Return a compressing reply that adds a line to a file at each call."""

    def reply(call: Call) -> str:
        with file.open("a") as lines:
            lines.write("compressed\n")
        return random_compression(call)

    return reply


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_run_goes_on_with_its_states(
    scripts: Scripts, tiny: Path, tmp_path: Path, log_dir: Path
) -> None:
    count = tmp_path / "count"
    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(log_dir), str(tiny), str(count), "4"],
        cwd=command.ROOT,
        env=command.environment(log_dir, PYTHONPATH=str(command.ROOT)),
        capture_output=True,
        check=False,
        timeout=command.TIME_LIMIT,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    before = len(count.read_text().splitlines())
    assert before >= 1
    kept = list((log_dir / "compression_states").rglob("*.state.gz"))
    assert len(kept) >= 1
    assert not list(log_dir.rglob("*.partial"))
    (path,) = command.logs(log_dir)
    first = read_eval_log(str(path))
    assert first.status == "started"
    scripts[COMPRESSES].reply = counted(count)
    second = eval_retry(first, log_dir=str(log_dir), display="log")[0]
    assert len(small.samples(second)) == small.PROBES * small.EPOCHS
    assert len(count.read_text().splitlines()) == small.EPOCHS
    over_both = states_over(first, second)
    assert [len(ids) for ids in over_both.values()] == [1] * small.EPOCHS


def died(scripts: Scripts, log_dir: Path, *fixtures: Path) -> EvalLog:
    """Run something whose third answer breaks it."""
    scripts[ANSWERS] = breaking_at(2)
    log = small.run(log_dir, list(fixtures), epochs=1, options={"max_samples": 1})
    assert log.status == "error"
    return log


def calls(scripts: Scripts) -> int:
    return sum(len(script.calls) for script in scripts.values())


def test_a_retry_after_an_edit_is_refused_before_any_call(
    scripts: Scripts, tiny: Path, log_dir: Path
) -> None:
    bank = tiny.with_name("tiny.probes.json")
    before = bank.read_text(encoding="utf-8")
    first = died(scripts, log_dir, tiny)
    called = calls(scripts)
    bank.write_text(before.replace("Which error code", "What error code"), encoding="utf-8")
    for log in (first, eval_retry(first, log_dir=str(log_dir), display="log")[0]):
        # A retry of the refused retry is refused as well.
        refused = eval_retry(log, log_dir=str(log_dir), display="log")[0]
        assert refused.status == "error"
        assert refused.error is not None
        assert "made from something else" in refused.error.message
        assert "bank of tiny (tiny.probes.json): " in refused.error.message
        assert "fixture tiny" not in refused.error.message
        assert calls(scripts) == called
    bank.write_text(before, encoding="utf-8")
    # The refused log can be continued, too: its samples are those of the first.
    again = eval_retry(refused, log_dir=str(log_dir), display="log")[0]
    assert again.status == "success"
    assert len(small.samples(again)) == small.PROBES
