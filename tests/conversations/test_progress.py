"""What is shown while an import runs."""

import pytest

from compression_eval.conversations.overview import Progress, printable


def test_where_it_is_and_how_fast(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    shown = Progress(3)
    shown.show(1, "a.jsonl")
    assert capsys.readouterr().err == "", "not for an import that is done in a moment"
    now[0] = 120.0
    shown.show(2, "b\x1b.jsonl", 4000)
    shown.clear()
    said = capsys.readouterr()
    assert said.err == "[2/3] 4,000 messages, 200 a second: b?.jsonl\n"
    assert said.out == ""


def test_text_from_a_file_cannot_move_the_cursor() -> None:
    assert printable("a\r\n\x1b[2Jb\u202e") == "a???[2Jb?"
    assert printable("x" * 300) == "x" * 200 + "…"
    assert printable("path/to/file", 4, end=True) == "…file"
