"""An interpreter that holds a stand-in for Hermes: real processes, real HTTP, no packages."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai.model import Model

from compression_eval.compressors.registry import compressor_spec
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.state import State
from compression_eval.facts.records import track
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Fixture

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

    def compressed(
        model: Model,
        *,
        cuts: tuple[int, ...] = (),
        probes: list[Probe] | None = None,
        **arguments: Any,
    ) -> State:
        chain = cuts or (len(fixture.messages),)
        plan = CompressionPlan(
            fixture=fixture,
            tools=[],
            cuts=chain,
            spec=compressor_spec("hermes", {"python": str(fake_python), **arguments}),
            tracked=track(fixture, chain[-1], probes or []),
        )
        return anyio.run(compress, plan, 0, model)

    return compressed
