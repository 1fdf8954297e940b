"""Logs that several tests compare."""

from pathlib import Path

import pytest
from inspect_ai.log import EvalLog

from tests.analysis.comparison import arms
from tests.analysis.comparison.arms import evaluated


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compared")


@pytest.fixture(scope="session")
def good(folder: Path) -> EvalLog:
    """An arm whose answers are worth 4."""
    return evaluated(folder / "good")


@pytest.fixture(scope="session")
def again(folder: Path) -> EvalLog:
    """A second run of the same arm."""
    return evaluated(folder / "again")


@pytest.fixture(scope="session")
def controls(folder: Path) -> Path:
    """A folder with the arms none and full, by a reader that is worth 4 from everything."""
    return arms.controls(folder / "controls")


@pytest.fixture(scope="session")
def bad(folder: Path) -> EvalLog:
    """An arm whose answers are worth 2."""
    return evaluated(
        folder / "bad",
        answer=arms.BAD,
        grader=arms.swinging(bad=2.0),
        compressor_args={"tail_tokens": 61, "summary_tokens": 200},
    )
