"""Bad input on Inspect's command line: a failing exit, and a message at the end of the output."""

import json
from pathlib import Path

import pytest

from tests.e2e import command, small


@pytest.mark.slow
def test_the_command_fails_with_a_message(tiny: Path, log_dir: Path) -> None:
    tiny.write_text(json.dumps(small.conversation())[:-20])
    given = ["tasks/compression.py", "-T", f"fixtures={tiny}", "--model", "mockllm/model"]
    result = command.inspect(["eval", *given], log_dir)
    assert result.code != 0
    assert "tiny.json: not JSON" in " ".join(result.errors.splitlines()[-3:])
    assert "Traceback" not in result.errors
    assert not log_dir.exists() or list(log_dir.iterdir()) == []
