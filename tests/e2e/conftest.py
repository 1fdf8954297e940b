"""Scripted models, a small fixture, and an environment that no run can leave traces in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import scripted, small
from tests.e2e.scripted import Scripts


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep logs and caches in the test's own folder, and no model or display from outside."""
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("INSPECT_DISPLAY", "log")
    for name in ("INSPECT_EVAL_MODEL", "INSPECT_EVAL_MODEL_ROLE", "INSPECT_MODEL_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The file of a small fixture with its bank next to it."""
    return small.write(tmp_path / "data")


@pytest.fixture
def scripts() -> Iterator[Scripts]:
    """Well-behaved scripted models by role; a test replaces a reply to make one misbehave."""
    scripted.SCRIPTS.clear()  # other tests of this process leave theirs
    scripted.SCRIPTS.update(scripted.proper_scripts())
    yield scripted.SCRIPTS
    scripted.SCRIPTS.clear()
