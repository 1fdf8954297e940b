"""Import one file as a user does, and look at the fixture and the account."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.models import Fixture


@dataclass(frozen=True)
class Imported:
    """What the command made of a file."""

    stdout: str
    fixture: Fixture
    left_out: list[dict[str, Any]]
    """What ``--explain`` writes."""

    @property
    def format(self) -> str:
        """The format that the file was recognised as."""
        return self.stdout.partition(": ")[2].partition(",")[0]

    @property
    def said(self) -> list[tuple[str, str]]:
        """Role and text of every message."""
        return [(message.role, message.text) for message in self.fixture.messages]

    @property
    def calls(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Id, name and arguments of every call."""
        return [
            (call.id, call.function.name, call.function.parsed())
            for message in self.fixture.messages
            for call in message.calls
        ]

    @property
    def results(self) -> list[tuple[str, str]]:
        """Call and text of every result."""
        return [
            (message.tool_call_id or "", message.text)
            for message in self.fixture.messages
            if message.role == "tool"
        ]

    @property
    def injected(self) -> list[bool]:
        """Of every user message, whether the agent put it in."""
        return [message.injected for message in self.fixture.messages if message.role == "user"]

    @property
    def caveats(self) -> list[str]:
        """What the fixture says that it lacks."""
        return self.fixture.source.caveats if self.fixture.source else []

    @property
    def unknown(self) -> list[str]:
        """What is unknown or damaged."""
        return [one["what"] for one in self.left_out if not one["known"]]

    def state(self, number: int) -> list[tuple[str, str]]:
        """Return role and text of what the agent continued with after a compaction."""
        state = self.fixture.recorded_compactions[number].state
        assert state is not None
        messages = [self.fixture.messages[m] if isinstance(m, int) else m for m in state]
        return [(message.role, message.text) for message in messages]


def imported_all(path: Path, folder: Path, *options: str, exit_code: int = 0) -> list[Imported]:
    """Import a file into a folder."""
    folder.mkdir(exist_ok=True)
    explained, out = folder / "explained.jsonl", folder / "fixtures"
    arguments = ["import", str(path), "--out", str(out), "--explain", str(explained), *options]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == exit_code, done.output
    lines = [json.loads(line) for line in explained.read_text().splitlines()]
    left_out = {line["fixture"]: line["left_out"] for line in lines if line["fixture"]}
    fixtures = [
        load_fixture(written) for written in sorted(out.glob("*.json"), key=lambda at: at.stem)
    ]
    return [Imported(done.stdout, each, left_out[each.name]) for each in fixtures]


def imported(path: Path, folder: Path, *options: str) -> Imported:
    """Import a file that contains one conversation."""
    (found,) = imported_all(path, folder, *options)
    return found
