"""Files in whatever state a crashed process or an odd exporter left them, compressed too."""

import json
from pathlib import Path

import pytest
import zstandard

from compression_eval.conversations import sources
from compression_eval.conversations.sources import Value, source_file
from compression_eval.errors import DataError


def _read(tmp_path: Path, content: bytes) -> list[tuple[str, object, str]]:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    return [(item.place, item.value, item.problem) for item in source_file(path).values()]


def test_lines_end_at_line_feeds_only_and_empty_ones_are_passed_over(tmp_path: Path) -> None:
    found = _read(tmp_path, '{"a": "x\u2028y"}\n\n \f\n[1]\r\n'.encode())
    assert found == [("line 1", {"a": "x\u2028y"}, ""), ("line 4", [1], "")]


def test_a_torn_last_line_is_named(tmp_path: Path) -> None:
    found = _read(tmp_path, b'{"a": 1}\n{"b": ')
    assert found[1] == ("line 2", None, "not JSON: the file ends within it")


def test_bytes_that_are_not_utf8_are_replaced_and_said(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": "\xff"}\n')
    (item,) = source_file(path).values()
    assert item.value == {"a": "\ufffd"}
    assert item.replaced


def test_a_line_over_the_limit_is_named_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 2**20)
    found = _read(tmp_path, b'"' + b"x" * (3 * 2**20) + b'"\n[1]\n')
    assert found == [
        ("line 1", None, "the line has 3,145,731 bytes, more than 1 MiB"),
        ("line 2", [1], ""),
    ]


def test_an_empty_or_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(DataError, match=r"empty\.jsonl: the file is empty"):
        source_file(empty)
    with pytest.raises(DataError, match=r"gone\.jsonl: cannot be read: No such file"):
        source_file(tmp_path / "gone.jsonl")


LINES = b"".join(json.dumps({"n": n, "text": "é" * 50}).encode() + b"\n" for n in range(5000))


def _unpacked(tmp_path: Path, data: bytes) -> list[Value]:
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(data)
    return list(source_file(path).values())


def test_a_compressed_file_reads_as_if_it_were_not(tmp_path: Path) -> None:
    found = _unpacked(tmp_path, zstandard.compress(LINES))
    assert [value.value["n"] for value in found] == list(range(5000))
    assert len(source_file(tmp_path / "x.jsonl.zst").head) == 60


def test_a_file_that_was_cut_off_says_so(tmp_path: Path) -> None:
    found = _unpacked(tmp_path, zstandard.compress(LINES)[:-10])
    assert found[-1].problem == "the compressed data is cut off here"
    assert all(value.value["n"] == n for n, value in enumerate(found[:-1]))
