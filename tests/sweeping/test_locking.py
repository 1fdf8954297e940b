"""One sweep at a time at an address, whatever its store can do."""

import errno
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from compression_eval.conversations.stores import Store
from compression_eval.errors import DataError
from compression_eval.sweeping.planning import log_folder
from compression_eval.sweeping.running import locked
from tests.buckets import empty_bucket
from tests.e2e import small
from tests.sweeping.commanding import run, settings_file

PLACE = "memory://locking/logs"
LOCK = f"{PLACE}/.sweep.lock"
BUSY = "another sweep is running in this folder"


@pytest.fixture
def store() -> Iterator[Any]:
    """A store in this process, emptied afterwards."""
    system = fsspec.filesystem("memory")
    yield system
    for path in system.find("/locking"):
        system.rm_file(path)


def test_a_second_sweep_is_refused_in_a_bucket() -> None:
    with empty_bucket("locks") as bucket:
        folder = log_folder(f"{bucket}/logs")
        with locked(folder):
            with pytest.raises(DataError, match=BUSY), locked(folder):
                pass
            assert not Store(f"{bucket}/logs").create(".sweep.lock", b"mine")
        assert not folder.exists()


def test_a_store_that_writes_over_what_is_there_locks_all_the_same(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrites(self: Any, path: str, value: bytes, **_: Any) -> None:
        self.open(path, "wb", data=value)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", overwrites)
    folder = log_folder(PLACE)
    with locked(folder):
        with pytest.raises(DataError, match=BUSY), locked(folder):
            pass
        held = store.cat_file(LOCK)
    with locked(folder):
        assert store.cat_file(LOCK) != held, "no two holders are named alike"


def test_who_comes_second_in_the_same_moment_is_refused(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beaten(self: Any, path: str, value: bytes, **_: Any) -> None:
        self.open(path, "wb", data=b"somebody else")
        raise OSError(errno.EINVAL, "412")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", beaten)
    said = rf"{BUSY} \(somebody else\); if it was killed, remove {LOCK}"
    with pytest.raises(DataError, match=said), locked(log_folder(PLACE)):
        pass
    assert store.cat_file(LOCK) == b"somebody else"


@pytest.mark.usefixtures("store")
def test_what_came_out_is_told_when_the_lock_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(*_: Any, **__: Any) -> None:
        raise PermissionError("read only now")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "rm", refuses)
        with pytest.raises(DataError, match="what came out"), locked(log_folder(PLACE)):
            raise DataError("what came out")
    assert f"{LOCK}: could not be removed (read only now); remove it" in capsys.readouterr().err


def test_no_other_sweep_begins_before_the_workers_have_stopped(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []

    def stops(*_: Any, **__: Any) -> None:
        raise DataError("stopped before it ran anything")

    ray = SimpleNamespace(
        is_initialized=lambda: False,
        shutdown=lambda: held.append(store.exists(LOCK)),
    )
    ray.init = lambda *_, **__: monkeypatch.setattr(
        "compression_eval.sweeping.running.refuse_other_work", stops
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    settings = settings_file(tmp_path, small.write(tmp_path / "data", "tiny"))
    done = run("sweep", str(settings), "--engine", "ray", "--log-dir", PLACE)
    assert "stopped before it ran anything" in done.errors
    assert held == [True]
    assert not store.exists(LOCK)


def test_an_address_of_this_machine_is_a_path_of_it(tmp_path: Path) -> None:
    folder = log_folder(f"file://{tmp_path}/logs")
    assert folder == tmp_path / "logs"
    with locked(folder), pytest.raises(DataError, match=BUSY), locked(folder):
        pass
