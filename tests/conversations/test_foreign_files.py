"""Files that resemble a format are read whole or skipped by name, never taken for it."""

from pathlib import Path

from click.testing import CliRunner

from compression_eval.cli import main
from tests.conversations.readers.reading import json_lines

_TIME = "2026-01-01T00:00:00Z"


def test_what_a_reader_drops_of_a_message_is_always_listed(tmp_path: Path) -> None:
    odd = {"type": "hologram", "data": "x"}
    blocks = [{"type": "text", "text": "Read a.py."}, odd, odd]
    turn = {"role": "assistant", "content": "Done.", "stopReason": "stop"}
    path = json_lines(
        tmp_path / "a.jsonl",
        {"type": "session", "id": "s", "timestamp": _TIME, "cwd": "/w"},
        {"type": "message", "timestamp": _TIME, "message": {"role": "user", "content": blocks}},
        {"type": "message", "timestamp": _TIME, "message": turn},
    )
    done = CliRunner().invoke(main, ["import", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (
        "Left out by rule:\n"
        "  2 x pi, block hologram: unknown kind of content (first at a.jsonl: line 2)\n"
    ) in done.stdout
