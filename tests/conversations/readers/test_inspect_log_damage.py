"""Damaged logs of Inspect, and files that are none."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compression_eval.conversations.formats import format_named
from compression_eval.errors import DataError

from .inspect_logs import agent, looks, path_of, read, run

FORMAT = format_named("inspect")


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return path_of(run(tmp_path_factory.mktemp("log"), agent(), looks(1)))


def damaged(path: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return target


@pytest.mark.parametrize(
    "make",
    [
        lambda path, target: target.write_bytes(path.read_bytes()[:-200]),
        lambda path, target: target.write_bytes(b"PK\x03\x04" + b"\x00" * 50),
        lambda path, target: target.write_text('{"status": "success", "eval": {"task": "x"}}'),
        lambda path, target: target.write_text('{"role": "user", "content": "secret"}\n'),
        lambda path, target: damaged(
            path, target, lambda name, content: None if name.startswith("samples") else content
        ),
        lambda path, target: damaged(path, target, lambda name, _: b'{"secret": '),
    ],
)
def test_damage_is_a_clear_error(
    log_file: Path, tmp_path: Path, make: Callable[[Path, Path], Any]
) -> None:
    target = tmp_path / "bad.eval"
    make(log_file, target)
    with pytest.raises(DataError, match=r"bad\.eval: ") as caught:
        read(target)
    assert "secret" not in str(caught.value)
