"""An interpreter that contains a stand-in for Hermes: real processes, real HTTP, no packages."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.model import Model

from compression_eval.compressors.state import State
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed

FAKE_HERMES = Path(__file__).parent / "fake_hermes"

Run = Callable[..., State]


@pytest.fixture
def fake_python(tmp_path: Path) -> Path:
    """An interpreter in which `import agent.context_compressor` finds the stand-in."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{FAKE_HERMES}" exec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def run(fake_python: Path, fixture: Fixture) -> Run:
    """Compress the small conversation with the stand-in."""

    def run(
        model: Model,
        *,
        cuts: tuple[int, ...] = (),
        probes: Sequence[Probe] = (),
        **arguments: Any,
    ) -> State:
        given = {"python": str(fake_python), **arguments}
        return compressed(fixture, "hermes", given, cuts=cuts, model=model, probes=probes)[0]

    return run
