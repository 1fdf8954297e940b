"""Files compressed with Zstandard."""

import json
from pathlib import Path

import pytest
import zstandard

from compression_eval.conversations import sources
from compression_eval.conversations.sources import Value, source_file

LINES = b"".join(json.dumps({"n": n, "text": "é" * 50}).encode() + b"\n" for n in range(5000))


def _values(tmp_path: Path, data: bytes) -> list[Value]:
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(data)
    return list(source_file(path).values())


def test_a_compressed_file_reads_as_if_it_were_not(tmp_path: Path) -> None:
    found = _values(tmp_path, zstandard.compress(LINES))
    assert [value.value["n"] for value in found] == list(range(5000))
    assert len(source_file(tmp_path / "x.jsonl.zst").head) == 60


def test_frames_one_after_another_are_all_read(tmp_path: Path) -> None:
    half = LINES.index(b"\n", len(LINES) // 2) + 1
    data = zstandard.compress(LINES[:half]) + zstandard.compress(LINES[half:])
    assert len(_values(tmp_path, data)) == 5000


def test_a_file_that_was_cut_off_says_so(tmp_path: Path) -> None:
    found = _values(tmp_path, zstandard.compress(LINES)[:-10])
    assert found[-1].problem == "the compressed data is cut off here"
    assert all(value.value["n"] == n for n, value in enumerate(found[:-1]))


def test_damaged_data_is_named(tmp_path: Path) -> None:
    found = _values(tmp_path, zstandard.compress(LINES) + b"no frame at all")
    assert len(found) == 5001
    assert found[-1].place == "line 5001"
    assert found[-1].problem == "the compressed data is damaged from here on"


def test_a_small_file_may_hold_a_huge_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 2**20)
    data = zstandard.compress(b"x" * 10 * 2**20 + b'\n{"n": 1}\n')
    assert len(data) < 10_000
    found = _values(tmp_path, data)
    assert found[0].problem == "the line has 10,485,761 bytes, more than 1 MiB"
    assert found[1].value == {"n": 1}
