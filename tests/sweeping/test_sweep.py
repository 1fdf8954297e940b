"""A sweep runs each arm once, goes on where it was, and refuses a folder made from other things."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval.analysis import samples_frame
from compression_eval.sweeping.running import locked
from tests.e2e import small
from tests.e2e.command import ROOT, TIME_LIMIT, environment
from tests.e2e.scripted import (
    ANSWERS,
    COMPRESSES,
    Call,
    Scripts,
    proper_answer,
)
from tests.sweeping.commanding import EMBEDDED, run, samples, scripted_models, settings_file

pytestmark = pytest.mark.slow

EPOCHS = 2

INTERRUPTED = """
import signal, sys
import anyio
from compression_eval import solver
from compression_eval.cli import main

async def stop(*args, **kwargs):
    signal.raise_signal(signal.SIGINT)
    await anyio.sleep_forever()

solver.compress = stop
main(["sweep", "--max-samples", "1", *sys.argv[1:]])
"""
"""A sweep that gets Ctrl-C at its first compression."""


def keys(folder: Path) -> Counter[tuple[str, str, int]]:
    """Return how often each task, sample and epoch is in a folder."""
    return Counter(
        (str(read_eval_log(log, header_only=True).eval.task_id), str(sample.id), sample.epoch)
        for log in list_eval_logs(str(folder))
        for sample in read_eval_log(log).samples or []
    )


def test_every_arm_is_run_with_every_model_and_says_who_answered(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    models = [f"scripted/{ANSWERS}", EMBEDDED]
    file = settings_file(tmp_path, tiny, **{**scripted_models(), "models": models})
    ended = run("sweep", str(file), "--controls", "-G", "temperature=0.5")
    assert ended.code == 0, ended.errors
    folder = tmp_path / "sweep"
    frame = samples_frame(folder)
    assert len(frame) == 2 * small.PROBES * (2 * EPOCHS + 2), "full and none run once"
    arms = {"full", "none", "tail", "anchored"}
    assert {name.partition(" ")[0] for name in frame["arm"]} == arms
    assert set(frame["model"]) == set(models)
    assert set(frame["graders"]) == {"scripted/grades"}
    assert set(frame["compressor_model"]) == {"scripted/compresses"}
    assert not frame["offline"].any()
    assert len(scripts[COMPRESSES].calls) == len(models) * EPOCHS
    assert {call.config.temperature for call in scripts[ANSWERS].calls} == {0.5}
    for command in ("compare", "report", "inspect view"):
        assert command in ended.output


def test_ctrl_c_stops_a_sweep_and_the_same_command_goes_on(tiny: Path, tmp_path: Path) -> None:
    file, folder = str(settings_file(tmp_path, tiny)), tmp_path / "sweep"
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, file],
        env=environment(tmp_path / "logs", PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert ended.returncode == 130, ended.stderr
    assert ended.stderr.endswith(f"\nStopped. The same command continues in {folder}.\n")
    assert ended.stdout.startswith("folder ")
    assert run("sweep", file).code == 0
    assert len(samples_frame(folder)) == 2 * small.PROBES * EPOCHS


def test_prices_go_into_the_logs(scripts: Scripts, tiny: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    price = "{input: 1.0, output: 2.0, input_cache_write: 0, input_cache_read: 0}"
    names = (f"scripted/{role}" for role in scripts)
    prices.write_text("".join(f"{name}: {price}\n" for name in names), encoding="utf-8")
    file = str(
        settings_file(tmp_path, tiny, **scripted_models(), arms=["full"], state_facts="match")
    )
    assert run("sweep", file, "--prices", str(prices)).code == 0
    for sample in samples(tmp_path / "sweep"):
        costs = [usage.total_cost for usage in sample.model_usage.values()]
        assert costs == [pytest.approx((20 * 1.0 + 5 * 2.0) / 1e6)] * 2


def test_what_an_arm_passes_over_is_said_and_the_others_take_it(tiny: Path, tmp_path: Path) -> None:
    compaction = {"cut": 11, "state": [{"role": "user", "content": "E4401"}, 10]}
    fixture = {**small.conversation("kept"), "recorded_compactions": [compaction]}
    small.write(tiny.parent, "kept", fixture=fixture, probes=small.bank("kept"))
    tiny.with_name("tiny.probes.json").replace(tiny.with_name("gone"))
    small.write(tiny.parent, "plain")
    arms = [{"compressor": "tail", "args": {"tail_tokens": 60}}, "recorded"]
    file = str(settings_file(tmp_path, tiny.parent, arms=arms, epochs=1))
    for command in ("estimate", "sweep"):
        ended = run(command, file)
        assert ended.code == 0, ended.errors
        assert "skipped (2):" in ended.errors
        assert f"  {tiny}: no probe bank" in ended.errors
        assert "for recorded: compressor: nothing was recorded at message 11" in ended.errors
    assert "samples  3 to 6 probes x 1 compressions x 1 answers x 2 tasks = 9" in ended.output
    assert len(samples(tmp_path / "sweep")) == 9


def test_what_is_done_is_not_done_again_and_more_epochs_go_on_from_it(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    file = str(settings_file(tmp_path, tiny, **scripted_models()))
    planned = run("sweep", file, "--dry-run").output
    assert "= 12" in planned
    assert "Nothing was run" in planned
    assert "Calls and tokens by role:" in planned
    lacking = run("sweep", file, "--models", "none-such/x", "--dry-run")
    assert (lacking.code, "Without --dry-run this is an error: models: " in lacking.errors) == (
        0,
        True,
    )
    assert not (tmp_path / "sweep").exists()
    assert run("sweep", file).code == 0
    calls = {role: len(script.calls) for role, script in scripts.items()}
    again = run("sweep", file)
    assert again.code == 0, again.errors
    assert {role: len(script.calls) for role, script in scripts.items()} == calls
    assert f"done     {2 * small.PROBES * EPOCHS}" in again.output
    # What changes no result, and more compressions, go into the same folder.
    more = run("sweep", file, "--epochs", "3", "-G", "max_connections=3", "--max-samples", "2")
    assert more.code == 0, more.errors
    assert len(scripts[ANSWERS].calls) == calls[ANSWERS] // 2 * 3
    assert len(scripts[COMPRESSES].calls) == calls[COMPRESSES] // 2 * 3
    assert set(keys(tmp_path / "sweep").values()) == {1}
    fewer = run("sweep", file, "--epochs", "2")
    assert "epochs: 3, now only 2" in fewer.errors


def test_controls_that_are_the_same_every_time_are_run_once(tiny: Path, tmp_path: Path) -> None:
    file = str(settings_file(tmp_path, tiny, controls=True, models=["embedded/lexical"]))
    ended = run("sweep", file)
    assert ended.code == 0, ended.errors
    counts = Counter(
        log.eval.metadata["compressor"]["name"]
        for log in map(read_eval_log, list_eval_logs(str(tmp_path / "sweep")))
        for _ in log.samples or []
        if log.eval.metadata
    )
    once, twice = small.PROBES, 2 * small.PROBES
    assert counts.pop("full") == counts.pop("none") == once
    assert set(counts.values()) >= {twice}
    assert "; full and none once" in ended.output
    assert run("sweep", file).code == 0, "nothing is missing"


def test_a_task_with_errors_is_taken_up_again_and_the_rest_is_kept(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    def breaks(call: Call) -> str:
        if broken and call.number == 2:
            raise RuntimeError("the connection is gone")
        return proper_answer(call)

    broken = True
    scripts[ANSWERS].reply = breaks
    file, folder = str(settings_file(tmp_path, tiny, **scripted_models())), tmp_path / "sweep"
    first = run("sweep", file, "--retry-attempts", "0")
    assert first.code == 1
    assert "1 of 6 samples failed: " in first.errors
    assert "give the same command again to run what is missing" in first.errors
    asked = len(scripts[ANSWERS].calls)
    assert asked == 2 * small.PROBES * EPOCHS
    (whole, *_) = folder.glob("*.eval")
    half = folder / "2001-01-01T00-00-00-00-00_compression_half.eval"
    half.write_bytes(whole.read_bytes()[:1000])  # as a kill leaves it
    broken = False
    assert run("sweep", file).code == 0
    assert len(scripts[ANSWERS].calls) == asked + 1, "only the one with the error"
    assert len(scripts[COMPRESSES].calls) == EPOCHS
    assert set(keys(folder).values()) == {1}
    assert len(samples_frame(folder)) == 2 * small.PROBES * EPOCHS
    assert [path.name for path in folder.glob("*.broken")] == [f"{half.name}.broken"]


def test_retries_of_a_dead_endpoint_can_be_bounded(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    def dead(call: Call) -> str:
        raise ConnectionRefusedError("nothing listens there")

    scripts[ANSWERS].reply = dead
    file = str(settings_file(tmp_path, tiny, **scripted_models()))
    ended = run("sweep", file, "--max-retries", "1", "--retry-attempts", "1")
    assert ended.code == 1
    # Two arms, each taken up once more, and every call tried twice.
    assert len(scripts[ANSWERS].calls) == 2 * small.PROBES * 2 * 2 * 2
    scripts[ANSWERS].reply = proper_answer
    assert run("sweep", file).code == 0


def test_a_folder_made_from_another_fixture_or_bank_is_refused(tiny: Path, tmp_path: Path) -> None:
    file = str(settings_file(tmp_path, tiny))
    assert run("sweep", file).code == 0
    before = len(samples(tmp_path / "sweep"))
    conversation, bank = small.conversation(), small.bank()
    conversation["messages"][6]["content"] += " Please."
    bank["probes"][0]["question"] += " Be brief."
    for path, data in ((tiny, conversation), (tiny.with_name("tiny.probes.json"), bank)):
        path.write_text(json.dumps(data), encoding="utf-8")
    ended = run("sweep", file)
    assert ended.code == 1
    assert "\n  fixture tiny (tiny.json): " in ended.errors
    assert "\n  bank of tiny (tiny.probes.json): " in ended.errors
    assert "prompt" not in ended.errors
    assert "sweep-2" in ended.errors
    assert len(samples(tmp_path / "sweep")) == before
    fresh = run("sweep", file, "--fresh")
    assert fresh.code == 0, fresh.errors
    assert len(samples(tmp_path / "sweep-2")) == before


def test_what_else_decides_a_result_is_named(tiny: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "mine.md"
    prompt.write_text("Summarise what was decided.", encoding="utf-8")
    arms = [{"compressor": "anchored", "args": small.BUDGETS, "prompt": str(prompt)}]
    file = str(settings_file(tmp_path, tiny, epochs=1, arms=arms))
    headers: dict[str, Any] = {"X-Key": "s3cr3t"}
    given = ("-G", f"extra_headers={json.dumps(headers)}")
    assert run("sweep", file, *given).code == 0
    same = run("sweep", file, *given, "--dry-run")
    assert (same.code, same.errors) == (0, "rehearsing the arms\n")
    for arguments, said in (
        (["--arms", "full"], "arm anchored"),
        (["--cycles", "2"], "setting cycles: 1, now 2"),
        (["-G", "temperature=1"], "generation option temperature: none, now 1"),
        (["-G", "extra_headers={X-Key: s3cond}"], "generation option extra_headers: "),
        (["--model-role", "compressor=embedded/lexical"], "role compressor: none, now "),
        (["-M", "x=1"], "model argument x: none, now "),
    ):
        ended = run("sweep", file, *given, *arguments, "--dry-run")
        assert (ended.code, said in ended.errors) == (0, True), ended.errors
        assert "s3c" not in ended.errors
        assert "done  " not in ended.output, "nothing of that counts for this sweep"
    prompt.write_text("Summarise what was decided, and why.", encoding="utf-8")
    ended = run("sweep", file, *given)
    assert (ended.code, "arm anchored" in ended.errors) == (1, True)


def test_a_folder_with_other_logs_or_another_sweep_is_refused(tiny: Path, tmp_path: Path) -> None:
    small.run(
        tmp_path / "sweep",
        tiny,
        model=EMBEDDED,
        model_roles={},
        compressor="full",
        epochs=1,
        compressor_args={},
    )
    file = str(settings_file(tmp_path, tiny))
    ended = run("sweep", file)
    assert ended.code == 1
    assert "arm full" in ended.errors
    with locked(tmp_path / "other"):
        ended = run("sweep", file, "--log-dir", str(tmp_path / "other"))
    assert ended.code == 1
    assert "another sweep is running in this folder" in ended.errors


def test_a_model_that_cannot_be_had_leaves_nothing_behind(tiny: Path, tmp_path: Path) -> None:
    file = str(settings_file(tmp_path, tiny))
    for arguments in (["--models", "nobody/nothing"], ["--model-role", "grader=nobody/nothing"]):
        ended = run("sweep", file, *arguments)
        assert ended.code == 1
        assert "'nobody/nothing'" in ended.errors
        assert not (tmp_path / "sweep").exists()
