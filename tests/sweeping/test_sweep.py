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
from compression_eval.sweeping.folder import locked
from tests.e2e import small
from tests.e2e.command import ROOT, TIME_LIMIT, environment
from tests.e2e.scripted import ANSWERS, COMPRESSES, Call, Scripts, proper_answer
from tests.sweeping.commanding import (
    EMBEDDED,
    run,
    samples,
    scripted_models,
    settings_file,
)

pytestmark = pytest.mark.slow

EPOCHS = 2

INTERRUPTED = """
import signal, sys
import anyio
from compression_eval.cli import main
from compression_eval.embedded.provider import EmbeddedAPI

once = iter([signal.SIGINT])

async def stop(*args, **kwargs):
    for number in once:
        signal.raise_signal(number)
    await anyio.sleep_forever()

EmbeddedAPI.generate = stop
main(["sweep", *sys.argv[1:]])
"""
"""A sweep that gets Ctrl-C at its first call of a model."""


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
    assert len(frame) == 4 * 2 * small.PROBES * EPOCHS
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


def test_the_embedded_model_stands_in_where_none_was_chosen(tiny: Path, tmp_path: Path) -> None:
    assert run("sweep", str(settings_file(tmp_path, tiny))).code == 0
    frame = samples_frame(tmp_path / "sweep")
    assert set(frame["model"]) == set(frame["graders"]) == {EMBEDDED}
    assert frame["offline"].all()
    (tail,) = set(frame[frame["compressor"] == "tail"]["log_path"])
    assert "no-language-model" in (read_eval_log(tail, header_only=True).eval.tags or [])


def test_no_other_grader_stands_in_for_a_second_sweep_of_one_process(
    tiny: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        given = {"arms": ["tail"], "models": [f"scripted/{ANSWERS}"], "epochs": 1}
        run("sweep", str(settings_file(folder, tiny, **given)))
    logs = list_eval_logs(str(tmp_path))
    roles = [read_eval_log(log, header_only=True).eval.model_roles for log in logs]
    assert [each or {} for each in roles] == [{}, {}]


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
    assert ended.returncode == 130
    assert ended.stderr.endswith(f"\nStopped. The same command goes on in {folder}.\n")
    assert "Error: " not in ended.stderr
    assert run("sweep", file).code == 0
    assert len(samples(folder)) == 2 * small.PROBES * EPOCHS


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


def test_a_dry_run_says_what_there_is_to_do_and_does_nothing(tiny: Path, tmp_path: Path) -> None:
    ended = run("sweep", str(settings_file(tmp_path, tiny)), "--dry-run")
    assert ended.code == 0
    assert f"= {2 * small.PROBES * EPOCHS}" in ended.output
    assert not (tmp_path / "sweep").exists()


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
        assert "passed over (2):" in ended.errors
        assert f"  {tiny}: no probe bank; looked for" in ended.errors
        assert (
            "for recorded: compressor: nothing was recorded at message 11 of 'plain'"
            in ended.errors
        )
    assert "samples  3 to 6 probes x 1 compressions x 1 answers x 2 tasks = 9" in ended.output
    assert len(samples(tmp_path / "sweep")) == 9


def test_what_is_done_is_not_done_again_and_more_epochs_go_on_from_it(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    file = str(settings_file(tmp_path, tiny, **scripted_models()))
    assert run("sweep", file).code == 0
    calls = {role: len(script.calls) for role, script in scripts.items()}
    again = run("sweep", file)
    assert again.code == 0, again.errors
    assert {role: len(script.calls) for role, script in scripts.items()} == calls
    assert f"done     {2 * small.PROBES * EPOCHS}" in again.output
    assert run("sweep", file, "--epochs", "3").code == 0
    assert len(scripts[ANSWERS].calls) == calls[ANSWERS] // 2 * 3
    assert len(scripts[COMPRESSES].calls) == calls[COMPRESSES] // 2 * 3
    assert set(keys(tmp_path / "sweep").values()) == {1}
    fewer = run("sweep", file, "--epochs", "2")
    assert "epochs: 3, now only 2" in fewer.errors


def test_a_task_with_errors_is_taken_up_again_and_the_rest_is_kept(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    def breaks(call: Call) -> str:
        if broken and call.number == 2:
            raise RuntimeError("the connection is gone")
        return proper_answer(call)

    broken = True
    scripts[ANSWERS].reply = breaks
    file = str(settings_file(tmp_path, tiny, **scripted_models()))
    first = run("sweep", file, "--retry-attempts", "0")
    assert first.code != 0
    assert "the same command takes up what is missing" in first.errors
    asked = len(scripts[ANSWERS].calls)
    assert asked == 2 * small.PROBES * EPOCHS
    broken = False
    assert run("sweep", file).code == 0
    assert len(scripts[ANSWERS].calls) == asked + 1, "only the one with the error"
    assert len(scripts[COMPRESSES].calls) == EPOCHS
    folder = tmp_path / "sweep"
    assert set(keys(folder).values()) == {1}
    assert len(samples_frame(folder)) == 2 * small.PROBES * EPOCHS


def changed(data: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


def test_a_folder_made_from_another_fixture_or_bank_is_refused(tiny: Path, tmp_path: Path) -> None:
    file = str(settings_file(tmp_path, tiny))
    assert run("sweep", file).code == 0
    before = len(samples(tmp_path / "sweep"))
    conversation, bank = small.conversation(), small.bank()
    conversation["messages"][6]["content"] += " Please."
    changed(conversation, tiny)
    bank["probes"][0]["question"] += " Be brief."
    changed(bank, tiny.with_name("tiny.probes.json"))
    ended = run("sweep", file)
    assert ended.code != 0
    assert "\n  fixture tiny: " in ended.errors
    assert "\n  probe bank of tiny: " in ended.errors
    assert "prompt" not in ended.errors
    assert "sweep-2" in ended.errors
    assert len(samples(tmp_path / "sweep")) == before
    fresh = run("sweep", file, "--fresh")
    assert fresh.code == 0, fresh.errors
    assert len(samples(tmp_path / "sweep-2")) == before


def test_a_folder_made_with_another_prompt_is_refused(tiny: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "mine.md"
    prompt.write_text("Summarise what was decided.", encoding="utf-8")
    arm = {"compressor": "anchored", "args": small.BUDGETS, "prompt": str(prompt)}
    file = str(settings_file(tmp_path, tiny, arms=[arm]))
    assert run("sweep", file).code == 0
    prompt.write_text("Summarise what was decided, and why.", encoding="utf-8")
    ended = run("sweep", file)
    assert ended.code != 0
    assert "arm anchored" in ended.errors
    assert str(prompt) not in (tmp_path / "sweep" / "sweep.json").read_text(encoding="utf-8")


def test_what_else_decides_a_result_is_named(tiny: Path, tmp_path: Path) -> None:
    file = str(settings_file(tmp_path, tiny, epochs=1))
    assert run("sweep", file).code == 0
    manifest = tmp_path / "sweep" / "sweep.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    # As the folders of every version so far have it.
    assert content["settings"] == {
        "cut": "auto",
        "cycles": 1,
        "answers": 1,
        "min_removed": 0.1,
        "criteria": "by_type",
        "grader_context": "state",
    }
    for arguments, said in (
        (["--arms", "full"], "arm anchored"),
        (["--cycles", "2"], "setting cycles: 1, now 2"),
        (["-G", "temperature=1"], "generation option temperature: added"),
        (["--model-role", "compressor=embedded/lexical"], "role compressor: added"),
        (["-M", "x=1"], "model argument x: added"),
    ):
        ended = run("sweep", file, *arguments, "--dry-run")
        assert (ended.code, said in ended.errors) == (0, True)
    for part, name, said in (
        ("prompts", "anchored.md", "prompt anchored.md: "),
        ("prompts", "question.md", "prompt question.md: "),
        ("rubrics", "en", "rubric en: "),
    ):
        assert name in content[part]
        changed({**content, part: {**content[part], name: "0123456789ab"}}, manifest)
        ended = run("sweep", file, "--dry-run")
        assert (ended.code, said in ended.errors) == (0, True)
        assert "done  " not in ended.output, "nothing of that counts for this sweep"


def test_more_arms_and_what_changes_no_result_go_into_the_same_folder(
    tiny: Path, tmp_path: Path
) -> None:
    file = str(settings_file(tmp_path, tiny, epochs=1))
    assert run("sweep", file).code == 0
    more = run("sweep", file, "--controls", "-G", "max_connections=3", "--max-samples", "2")
    assert more.code == 0, more.errors
    assert len(samples(tmp_path / "sweep")) == 5 * small.PROBES - small.PROBES


def test_a_folder_with_other_logs_or_another_sweep_is_refused(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    small.run(
        folder,
        tiny,
        model=EMBEDDED,
        model_roles={},
        compressor="full",
        epochs=1,
        compressor_args={},
    )
    file = str(settings_file(tmp_path, tiny))
    ended = run("sweep", file)
    assert ended.code != 0
    assert "holds logs that no sweep made" in ended.errors
    with locked(tmp_path / "other"):
        ended = run("sweep", file, "--log-dir", str(tmp_path / "other"))
    assert ended.code != 0
    assert "another sweep is running in this folder" in ended.errors


def test_a_model_that_cannot_be_had_leaves_nothing_behind(tiny: Path, tmp_path: Path) -> None:
    file = str(settings_file(tmp_path, tiny))
    for arguments in (["--models", "nobody/nothing"], ["--model-role", "grader=nobody/nothing"]):
        ended = run("sweep", file, *arguments)
        assert ended.code != 0
        assert "'nobody/nothing'" in ended.errors
        assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"format": 99}'])
def test_a_manifest_that_cannot_be_read_is_named(content: str, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "sweep.json").write_text(content, encoding="utf-8")
    ended = run("sweep", str(settings_file(tmp_path, tiny)))
    assert ended.code != 0
    assert "sweep.json" in ended.errors
