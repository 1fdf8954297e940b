"""A program of the user: JSON in, JSON out, limits, and what it says when it fails."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from compression_eval.compressors.registry import compressor_spec, source_digest
from compression_eval.compressors.running import compress
from compression_eval.compressors.strategy import CompressorSpec
from compression_eval.errors import DataError
from tests.compressors.arms import plan_of
from tests.compressors.conftest import conversation_fixture, model_replying
from tests.compressors.yours import run, written

READ = (
    "import json, sys\nmessages = json.load(sys.stdin)\nNOTE = {'role': 'user', 'content': 'n'}\n"
)


def program(folder: Path, source: str, **limits: Any) -> CompressorSpec:
    path = written(folder, source, "program.py")
    return compressor_spec("command", {"command": [sys.executable, str(path)], **limits})


def test_a_program_gives_a_state_with_its_kept_messages_known(tmp_path: Path) -> None:
    spec = program(
        tmp_path, READ + "print(json.dumps([messages[0], NOTE, *messages[-3:]], indent=1))"
    )
    state = run(spec)
    last = len(conversation_fixture().messages)
    assert state.failure == ""
    assert list(state.regions) == ["head", "summary", "tail", "tail", "tail"]
    assert [m.id for m in state.messages][-3:] == [f"m{last - n}" for n in (3, 2, 1)]


@pytest.mark.parametrize(
    ("source", "limits", "says"),
    [
        ("print('[]')", {}, "nothing but the system prompt"),
        ("", {}, "standard output is empty"),
        ("print('no')", {}, "not JSON"),
        ("print('[{}]')", {}, "message 0 of the reply: role: Field required"),
        (READ + "print(json.dumps(messages)); sys.exit(3)", {}, "exited with 3"),
        ("import os; os.kill(os.getpid(), 9)", {}, "exited with -9"),
        ("while True: print('x' * 1000)", {"max_output_bytes": 4000}, "more than 4000 bytes"),
        (
            "import sys\nsys.stderr.write('waiting for the key')\nsys.stderr.flush()\n"
            "import time; time.sleep(60)",
            {"timeout_seconds": 1},
            "within 1 seconds: waiting for the key",
        ),
    ],
)
def test_a_failing_program_fails_the_state(
    tmp_path: Path, source: str, limits: dict[str, Any], says: str
) -> None:
    started = time.monotonic()
    state = run(program(tmp_path, source, **limits))
    assert says in state.failure
    assert state.status in {"error", "empty"}
    assert len(state.failure) < 2_000
    assert time.monotonic() - started < 20


def test_nothing_a_program_started_outlives_it(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(1.5); open({str(mark)!r}, 'w').close()"
    source = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(60)"
    )
    state = run(program(tmp_path, source, timeout_seconds=0.5))
    assert "within 0.5 seconds" in state.failure
    time.sleep(2)
    assert not mark.exists()


def test_a_cancelled_compression_ends_its_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    source = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    plan = plan_of(conversation_fixture(), program(tmp_path, source))

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(compress, plan, 0, model_replying(lambda _: "")[0])
            with anyio.fail_after(60):
                while not pid.exists() or not pid.read_text():
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()

    anyio.run(cancelled)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        READ + "print(json.dumps([{'role': 'user', 'content': sys.argv[1]}]))",
        "program.py",
    )
    text = "$(echo hi) ; `id` && x | y > z *"
    spec = compressor_spec("command", {"command": [sys.executable, str(path), text]})
    assert run(spec).messages[-1].text == text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "command: Field required"),
        ({"command": ["no-such-program-anywhere"]}, "no program 'no-such-program-anywhere'"),
        ({"command": [sys.executable], "shell": True}, "it takes no shell"),
    ],
)
def test_a_command_that_cannot_be_run_is_an_error_at_once(
    arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(DataError, match="compressor_args of 'command'") as error:
        compressor_spec("command", arguments)
    assert says in str(error.value)


def test_the_program_decides_the_digest(tmp_path: Path) -> None:
    first = source_digest(program(tmp_path, READ))
    again = source_digest(program(tmp_path, READ))
    other = source_digest(program(tmp_path, READ + "\n"))
    assert first == again != other


def test_a_program_gets_no_variable_that_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("MY_SETTING", "7")
    source = READ + (
        "import os\nNOTE['content'] = ' '.join(os.environ.get(name, 'none') for name in"
        " ('SOME_API_KEY', 'MY_SETTING'))\nprint(json.dumps([messages[0], NOTE]))"
    )
    assert run(program(tmp_path, source)).messages[-1].text == "none none"
    state = run(program(tmp_path, source, environment=["MY_SETTING"]))
    assert state.messages[-1].text == "none 7"


def test_a_variable_that_is_not_set_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no environment variable 'NOT_SET_AT_ALL'"):
        program(tmp_path, "", environment=["NOT_SET_AT_ALL"])
