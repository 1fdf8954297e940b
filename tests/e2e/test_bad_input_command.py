"""Bad input on Inspect's command line: a failing exit, and a message at the end of the output."""

import json
from pathlib import Path

import pytest

from tests.e2e import command, small

FILE, PACKAGE = "tasks/compression.py", "compression_eval/compression"

CASES: dict[str, tuple[list[str], list[str]]] = {
    "unknown argument": ([FILE, "-T", "fixturess=x"], ["fixturess", "arguments: fixtures, probes"]),
    "unknown fixture": (
        [PACKAGE, "-T", "fixtures=pr-triag"],
        ["'pr-triag'", "did you mean pr-triage"],
    ),
    "malformed file": ([FILE, "-T", "fixtures=DATA/broken.json"], ["broken.json: not JSON"]),
}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[command.Ended, Path]]:
    """Run all commands side by side, each with a place of its own for logs."""
    data = tmp_path_factory.mktemp("data")
    small.write(data)
    (data / "broken.json").write_text(json.dumps(small.conversation())[:-20])
    (data / "broken.probes.json").write_text(json.dumps(small.bank("broken")))
    started = {}
    for case, (arguments, _) in CASES.items():
        given = [part.replace("DATA", str(data)) for part in arguments]
        log_dir = tmp_path_factory.mktemp("logs")
        started[case] = (
            command.start(["eval", *given, "--model", "mockllm/model"], log_dir),
            log_dir,
        )
    return {case: (command.finish(process), folder) for case, (process, folder) in started.items()}


@pytest.mark.parametrize("case", CASES)
def test_the_command_fails_with_a_message(
    case: str, ended: dict[str, tuple[command.Ended, Path]]
) -> None:
    result, log_dir = ended[case]
    assert result.code != 0
    closing = " ".join(result.errors.splitlines()[-3:])
    for part in CASES[case][1]:
        assert part in closing
    assert "Traceback" not in result.errors
    assert "hooks" not in result.output + result.errors
    assert list(log_dir.iterdir()) == []
