"""The task that continues with the work, run by scripted agents on this machine."""

import copy
import json
import math
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from inspect_ai import score as inspect_score
from inspect_ai.event import CompactionEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelAPI, ModelUsage
from inspect_ai.scorer import Score
from inspect_ai.util import SandboxEnvironment, parse_compose_yaml

from compression_eval.cli import main
from compression_eval.fixtures.locations import data_folder
from compression_eval.fixtures.recording import ENVIRONMENT
from compression_eval.resumption import task
from compression_eval.resumption.bubblewrap import BubblewrapSandboxEnvironment
from compression_eval.resumption.scoring import finishing
from tests.e2e import command
from tests.resumption.working import (
    BANK,
    LACKS,
    SOLUTION,
    TASK,
    TASKS,
    agent,
    calls,
    resumed,
    says,
    write,
)

SETTING = "/proc/sys/vm/swappiness"
WORKS = calls("bash", command=SOLUTION)
RULE: dict[str, Any] = TASKS["tasks"][0]["constraints"][0]
BREAKS = calls("bash", command=RULE["violation"])


@pytest.fixture
def fixture(tmp_path: Path) -> Path:
    return write(tmp_path / "data")


def score_of(log: EvalLog) -> Score:
    assert log.samples
    assert log.samples[0].scores
    return log.samples[0].scores["finishing"]


def why_unscored(log: EvalLog) -> str:
    score = score_of(log)
    assert isinstance(score.value, float)
    assert math.isnan(score.value)
    return str(score.reason)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([WORKS, says("Done.")], {"solved": 1, "finished": 1, "turns": 2, "tokens_used": 220}),
        ([says("Done.")], {"solved": 0, "finished": 0, "constraints_broken": 0, "turns": 1}),
        (
            [WORKS, BREAKS, says("Done.")],
            {"solved": 0, "finished": 1, "constraints_broken": 1, "constraints_asked": 0},
        ),
        (  # what was asked for is not broken, but the work is not solved either
            [calls("ask_user", question="Is VENDOR/ mine?"), WORKS, BREAKS, says("Done.")],
            {"solved": 0, "constraints_broken": 0, "constraints_asked": 1, "questions": 1},
        ),
        (
            [says("It is in vendor/.\n\nIs that all?"), WORKS, BREAKS, says("Done.")],
            {"constraints_broken": 1, "constraints_asked": 0, "questions": 1},
        ),
        (  # only before the first change is something done again
            [
                calls("bash", command="cd . && tail login.log 2>&1 | head -3; cat auth/session.py"),
                calls("bash", command="tail login.log < auth/session.py"),
                calls("python", code="print(open('vendor/pool.py').read())"),
                WORKS,
                calls("bash", command="python -m unittest; cat auth/session.py"),
                says("Done."),
            ],
            {"files_read_again": 1, "commands_run_again": 1, "questions": 0, "solved": 1},
        ),
        (
            [WORKS, calls("bash", command="cat auth/session.py; tail login.log"), says("Done.")],
            {"files_read_again": 0, "commands_run_again": 0},
        ),
        (
            [
                says("vendor/ as well?"),
                calls("ask_user", question="vendor/ as well?"),
                says("Is it **really** so?**"),
                WORKS,
                says("Done. Why? Because you said so."),
            ],
            {"questions": 3, "turns": 5, "solved": 1, "constraints_asked": 0},
        ),
    ],
)
def test_what_an_agent_did_is_counted(
    replies: list[Any], expected: dict[str, float], fixture: Path, tmp_path: Path
) -> None:
    log = resumed(fixture, agent(*copy.deepcopy(replies)), tmp_path / "logs")
    assert log.status == "success", log.error
    value = score_of(log).value
    assert isinstance(value, dict)
    assert {name: value[name] for name in expected} == expected


def test_a_log_says_which_constraint_the_state_had_lost(fixture: Path, tmp_path: Path) -> None:
    for compressor, known in (("full", "yes"), ("none", "no")):
        log = resumed(fixture, agent(WORKS, says("Ok.")), tmp_path, compressor=compressor)
        (step,) = log.plan.steps
        assert step.solver == "compression_eval/resume_from_compressed"
        assert step.params["compressor"] == compressor
        lines = str(score_of(log).explanation).splitlines()
        assert f"| rule | vendor/ is as it was | kept | {known} |" in lines
        metadata = score_of(log).metadata
        assert metadata
        assert metadata["constraints"] == [
            {
                "probe": "off-limits",
                "kind": "rule",
                "outcome": "kept",
                "passed": True,
                "in_state": compressor == "full",
            }
        ]
        assert log.results
        assert {score.scorer for score in log.results.scores} == {"finishing", "compression"}
    again = inspect_score(log, finishing(), action="overwrite", display="none")
    assert score_of(again).value == score_of(log).value
    assert log.samples
    assert log.samples[0].messages[0].role == "system"
    assert log.samples[0].messages[1].text.startswith("The store is called sessions-b")


@pytest.mark.parametrize(
    ("replies", "given", "expected"),
    [
        ([calls("bash", command="ls")] * 9, {"turn_limit": 3}, "limit: Turn limit exceeded"),
        (
            [calls("bash", command="echo 'while :; do :; done' > auth/session.py"), says("Done.")],
            {},
            "check_hangs: the setting: after 1 s",
        ),
    ],
)
def test_what_was_stopped_has_a_reason_and_no_score(
    replies: list[Any],
    given: dict[str, Any],
    expected: str,
    fixture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compression_eval.resumption.agent.CHECK_SECONDS", 1)
    tasks = copy.deepcopy(TASKS)
    tasks["tasks"][0]["checks"][0]["run"] = "bash auth/session.py"
    write(fixture.parent.parent, tasks)
    model = agent(*copy.deepcopy(replies))
    log = resumed(fixture, model, tmp_path / "logs", more=given.items())
    assert why_unscored(log).startswith(f"not_finished: {expected}")
    assert log.status == "error"
    assert log.error
    assert log.error.message == "none of the 1 samples has a grade"
    assert log.samples
    assert (log.samples[0].limit is None) == expected.startswith("check")


def test_a_failed_compression_and_a_bad_sandbox_are_no_scores(
    fixture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = resumed(fixture, agent(), tmp_path / "logs", compressor="tail")
    assert why_unscored(log) == "compression_failed: not_applied"

    async def full(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    for kind in SandboxEnvironment.__subclasses__():
        monkeypatch.setattr(kind, "write_file", full)
    log = resumed(fixture, agent(), tmp_path / "logs")
    assert why_unscored(log) == "not_finished: sandbox_failed: No space left on device"


def test_a_check_that_could_not_be_run_is_no_failed_work(
    fixture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (copies := tmp_path / "copies", programs := tmp_path / "programs"):
        folder.mkdir()
    (programs / "cp").write_text("#!/bin/sh\necho 'cp: No space left on device' >&2; exit 1\n")
    (programs / "cp").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(copies))
    log = resumed(fixture, agent(WORKS, says("Done.")), tmp_path / "logs", unsafe=True)
    assert why_unscored(log) == "not_finished: sandbox_failed: cp: No space left on device"
    assert not list(copies.iterdir())


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is not in /tmp, of which the sandbox has one of its own."""
    if LACKS:
        pytest.skip(f"bubblewrap does not work here: {LACKS}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def test_an_agent_in_bubblewrap_reaches_its_folder_and_nothing_else(
    fixture: Path, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "planted-secret")
    (outside / "notes.txt").write_text("planted-secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        attempts = {
            "write": f"echo x > {outside}/new.txt",
            "write from Python": f'python3 -c \'open("{outside}/new.txt", "w")\'',
            "real home": f"ls {Path.home()} | grep .",
            "read": f"cat {outside}/notes.txt",
            "link": f"ln -s {outside} out && cat out/notes.txt; echo x > out/new.txt",
            "network": f"exec 3<>/dev/tcp/127.0.0.1/{port}",
            "environment": "cat /proc/*/environ | tr '\\0' '\\n' | grep planted",
            "solutions": f"grep -r violation {data_folder()}/continuations",
            "other processes": f"kill -0 {os.getpid()}",
            "settings": f"cat {SETTING} > /tmp/v && cat /tmp/v > {SETTING}",
            "root": "touch /x",
            "capabilities": "mount -t tmpfs none /usr",
        }
        script = "\n".join(f"({line}) && echo 'REACHED {what}'" for what, line in attempts.items())
        log = resumed(
            fixture,
            agent(
                calls("bash", command=f"{script}\necho /tmp > /tmp/kept; echo all tried"),
                calls("python", code="print('still', open('/tmp/kept').read())"),
                WORKS,
                says("Done."),
            ),
            tmp_path / "logs",
        )
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert score_of(log).as_dict()["solved"] == 1
    assert log.samples
    tried, kept = [m.text for m in log.samples[0].messages if m.role == "tool"][-3:-1]
    assert "all tried" in tried
    assert "still /tmp" in kept
    assert "REACHED" not in tried
    assert "planted-secret" not in tried
    assert [path.name for path in outside.iterdir()] == ["notes.txt"]


def test_files_of_bubblewrap_are_those_of_its_folder(outside: Path) -> None:
    async def use() -> None:
        (box,) = (await BubblewrapSandboxEnvironment.sample_init("t", None, {})).values()
        try:
            await box.write_file("a/b.txt", "é\r\n")
            assert await box.read_file("/workspace/a/b.txt") == "é\r\n"
            await box.write_file("raw", b"\xff")
            assert await box.read_file("raw", text=False) == b"\xff"
            with pytest.raises(UnicodeDecodeError):
                await box.read_file("raw")
            (outside / "secret").write_text("x")
            assert (await box.exec(["ln", "-s", str(outside), "out"])).success
            for file in ("none", "out/secret", f"{outside}/secret", "../secret"):
                with pytest.raises(FileNotFoundError):
                    await box.read_file(file)
            for file in ("out/new", f"{outside}/new", "../new", "/usr/new"):
                with pytest.raises(OSError, match=r"Read-only|File exists|No such"):
                    await box.write_file(file, "x")
            with pytest.raises(IsADirectoryError):
                await box.write_file("a", "x")
            with pytest.raises(TimeoutError):
                await box.exec(["sleep", "60"], timeout=1)
            with pytest.raises(RuntimeError, match="bwrap"):
                await box.exec(["true"], cwd="/no/such/folder")
            done = await box.exec(["bash", "-c", "echo 'bwrap: no' >&2; pwd; exit 3"], cwd="a")
            assert (done.returncode, done.stdout) == (3, "/workspace/a\n")
            assert done.stderr == "bwrap: no\n"
        finally:
            await box.sample_cleanup("t", None, {"default": box}, interrupted=False)

    anyio.run(use)
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_without_bubblewrap_local_has_to_be_called_unsafe(
    fixture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (broken := tmp_path / "broken").mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\necho 'bwrap: no namespaces' >&2; exit 1\n")
    (broken / "bwrap").chmod(0o755)
    path = os.environ["PATH"]
    for found, expected in (("/nowhere", "bwrap is not"), (f"{broken}:{path}", "no namespaces")):
        monkeypatch.setenv("PATH", found)
        with pytest.raises(Exception, match=expected) as refused:
            resumed(fixture, agent(), tmp_path / "logs", unsafe=False)
        assert "unsafe=true" in str(refused.value)
        assert "docker" in str(refused.value)
        assert not (tmp_path / "logs").exists()
    monkeypatch.setenv("PATH", path)
    log = resumed(fixture, agent(WORKS, says("Done.")), tmp_path / "logs", unsafe=True)
    assert score_of(log).as_dict()["solved"] == 1
    assert "nothing stops them" in caplog.text


def test_an_agent_can_compress_on_the_way(
    fixture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def count(_: ModelAPI, text: str) -> int:
        return len(text) // 4  # Inspect's own count would download a vocabulary

    monkeypatch.setattr(ModelAPI, "count_text_tokens", count)
    long = [calls("bash", command="seq 600") for _ in range(2)]
    long[1].usage = ModelUsage(input_tokens=1_600, output_tokens=10, total_tokens=1_610)
    log = resumed(
        fixture,
        agent(*long, WORKS, says("Done.")),
        tmp_path / "logs",
        compressor="edit",
        compressor_args={"keep_tool_uses": 1},
        in_run=1_500,
    )
    assert log.status == "success", log.error
    assert score_of(log).as_dict()["solved"] == 1
    assert log.samples
    assert any(isinstance(event, CompactionEvent) for event in log.samples[0].events)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"sandbox": "locale"},
            r"'locale'; did you mean 'local'\? \(expected one of docker, local",
        ),
        ({"unsafe": True, "sandbox": "docker"}, "unsafe: only sandbox=local"),
        ({"in_run": "yes"}, "in_run: 'yes' is not true, false, a share or a number of tokens"),
        ({"probes": "x"}, "unknown task argument: probes"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, Any], expected: str, fixture: Path, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=expected):
        resumed(fixture, agent(), tmp_path / "logs", **arguments)


def test_without_a_language_model_the_task_says_so(fixture: Path, tmp_path: Path) -> None:
    result = command.inspect(["eval", TASK, "-T", f"fixtures={fixture}"], tmp_path)
    assert result.code != 0
    assert "this task needs a language model that can use tools" in result.errors
    assert "Traceback" not in result.errors


def test_the_container_needs_no_network_while_it_runs() -> None:
    folder = Path(task.__file__).parent
    config = parse_compose_yaml(str(folder / "compose.yaml"))
    assert config.services["default"].network_mode == "none"
    assert (folder / "Dockerfile").read_text().count("apt-get install") == 1
    (made,) = [line for line in (folder / "Dockerfile").read_text().split() if "RECORDING" in line]
    assert made == f"RECORDING_NOW={ENVIRONMENT['RECORDING_NOW']}"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"solution": "true"}, "the solution fails 'the setting': the output lacks 'sessions-b'"),
        ({"solution": "sleep 9"}, "the script of the solution hangs"),
        ({"solution": "exit 3"}, "the script of the solution ended with 3"),
        (
            {"constraints": [RULE | {"run": "grep sessions-a vendor/* || sleep 9"}]},
            "'vendor/ is as it was' hangs on the violation of 'vendor/ is as it was'",
        ),
        (
            {"constraints": [RULE | {"violation": SOLUTION}]},
            "the violation of 'vendor/ is as it was' passes 'vendor/ is as it was'",
        ),
        (
            {"constraints": [RULE, RULE | {"what": "the driver", "probe": "driver"}]},
            "the violation of 'the driver' fails 'vendor/ is as it was'",
        ),
        (
            {"constraints": [RULE | {"violation": "rm vendor/pool.py auth/*"}]},
            "the violation of 'vendor/ is as it was' fails 'the setting'",
        ),
        ({"checks": [{"what": "all", "run": "true"}]}, "the untouched code base passes 'all'"),
        ({"message": "Never touch vendor/."}, "the message gives away 'never touch vendor/'"),
        ({"message": None}, "tasks[0].message: there is none, and none of the user after the cut"),
        (
            {"constraints": [RULE | {"probe": "unknown"}]},
            "tasks[0].constraints[0].probe: 'unknown' is not in ",
        ),
        (
            {"constraints": [RULE, RULE | {"what": "again"}]},
            "tasks[0].constraints[1].probe: 'off-limits' is that of an earlier constraint",
        ),
        ({"cut": 6}, "tasks[0].constraints[0].probe: 'off-limits' is asked at the end"),
        (
            {"constraints": [{key: RULE[key] for key in RULE if key != "probe"}]},
            "tasks[0].constraints[0].probe: Field required",
        ),
    ],
)
def test_a_task_that_proves_nothing_is_named(
    change: dict[str, Any], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = copy.deepcopy(TASKS)
    tasks["tasks"][0] |= change
    if "sleep" in str(change):
        monkeypatch.setattr("compression_eval.fixtures.continuations.CHECK_SECONDS", 1)
    (probe,) = BANK["probes"]
    fixture = write(tmp_path, tasks, BANK | {"probes": [probe, probe | {"id": "driver"}]})
    found = CliRunner().invoke(main, ["fixtures", "check", str(fixture), "--continuations"])
    assert found.exit_code == 1
    assert expected in found.output


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"evidence": [3, 11]}, "evidence 11 does not lie before the cut at 11"),
        ({"evidence": [3]}, "'never touch vendor/' is not in its evidence messages [3]"),
        ({"evidence": []}, "'never touch vendor/' has no evidence; it is in [1]"),
        ({"fact": "which folder"}, "the question gives away 'which folder'"),
    ],
)
def test_a_probe_that_says_nothing_about_a_constraint_is_named(
    change: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    bank = copy.deepcopy(BANK)
    bank["probes"][0]["expected_facts"][0] |= change
    found = CliRunner().invoke(main, ["fixtures", "check", str(write(tmp_path, bank=bank))])
    assert found.exit_code == 1
    assert expected in found.output


def test_the_recorded_message_and_the_bank_of_the_fixture_serve(tmp_path: Path) -> None:
    tasks = copy.deepcopy(TASKS)
    tasks["tasks"][0] |= {"message": None, "cut": 6}
    fixture = write(tmp_path, tasks, bank=None)
    (tmp_path / "probes").mkdir()
    own = copy.deepcopy(BANK)
    own["probes"][0]["cut"] = 6
    (tmp_path / "probes" / "tiny.probes.json").write_text(json.dumps(own))
    log = resumed(fixture, agent(WORKS, says("Done.")), tmp_path / "logs")
    assert score_of(log).as_dict()["solved"] == 1
    assert log.samples
    assert log.samples[0].input == "Set the retry limit to 7, not 3."
    assert log.samples[0].metadata["message"] == "recorded"


def test_a_task_qualifies_by_tries_with_the_whole_history_and_with_none(tmp_path: Path) -> None:
    fixture = write(tmp_path)
    logs, tasks = tmp_path / "logs", tmp_path / "continuations"

    def qualify() -> tuple[int, str]:
        given = ["continuations", "qualify", str(logs), "--tasks", str(tasks)]
        done = CliRunner().invoke(main, given)
        return done.exit_code, done.output

    def tried(compressor: str, *replies: Any) -> None:
        model = agent(*copy.deepcopy(replies), says("Done."))
        resumed(fixture, model, logs, compressor=compressor)

    def checked() -> str:
        return CliRunner().invoke(main, ["fixtures", "check", str(fixture)]).output

    logs.mkdir()
    code, said = qualify()
    assert code == 1
    assert "no log of the task resumption with full or none" in said
    tried("full", WORKS)
    tried("none", WORKS, BREAKS)
    code, said = qualify()
    assert code == 1
    assert "tiny/rename: not qualified: 1 of 2 tries with full; 1 of 2 tries with none" in said
    assert "('rename'): tried less than 2 times" in checked()
    tried("full", WORKS)
    tried("none", WORKS, BREAKS)
    assert qualify() == (0, "tiny/rename: qualified\n")
    assert "('rename')" not in checked()
    tried("none", WORKS)
    assert "all kept with nothing" in qualify()[1]
    assert "('rename'): does not qualify" in checked()
    tried("full", calls("ask_user", question="Is vendor/ mine?"), WORKS, BREAKS)
    assert "not kept with the whole history: off-limits" in qualify()[1]
    (other := tmp_path / "other").mkdir()
    given = ["continuations", "qualify", str(logs), "--tasks", str(other)]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 1
    assert "has none of the 1 tasks" in done.output
    changed = copy.deepcopy(TASKS)
    changed["tasks"][0]["message"] = "Call the store sessions-b."
    write(tmp_path, changed)
    assert "('rename'): not tried with the whole history and with none" in checked()
