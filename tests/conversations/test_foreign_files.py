"""Files that resemble a format are read whole or skipped by name, never taken for it."""

from pathlib import Path

from click.testing import CliRunner

from compression_eval.cli import main
from tests.conversations.readers.reading import json_lines

_TIME = "2026-01-01T00:00:00Z"
_ASKED = {"type": "text", "text": "Read a.py."}
_USE = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}}
_PARTS = [{"functionCall": {"id": "t1", "name": "read_file", "args": {"path": "a.py"}}}]


def test_what_a_reader_drops_of_a_message_is_always_listed(tmp_path: Path) -> None:
    blocks = [_ASKED, {"type": "hologram", "data": "x"}, {"type": "hologram", "data": "y"}]
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
