"""Run compressors of the user on small conversations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from compression_eval.compressors.registry import compressor_spec
from compression_eval.compressors.running import CompressionPlan, compress
from compression_eval.compressors.spec import CompressorSpec
from compression_eval.compressors.state import State
from compression_eval.fixtures.models import Fixture
from tests.compressors.conftest import conversation_fixture, model_replying


def written(folder: Path, source: str, name: str = "mine.py") -> Path:
    """A Python file of the user."""
    path = folder / name
    path.write_text(source, encoding="utf-8")
    return path


def run(
    spec: CompressorSpec | str,
    arguments: Mapping[str, Any] | None = None,
    fixture: Fixture | None = None,
    cuts: tuple[int, ...] | None = None,
) -> State:
    """Compress a small conversation."""
    fixture = fixture or conversation_fixture()
    plan = CompressionPlan(
        fixture=fixture,
        tools=[],
        cuts=cuts or (len(fixture.messages),),
        spec=compressor_spec(spec, arguments) if isinstance(spec, str) else spec,
        tracked=[],
    )
    model, _ = model_replying(lambda _: "written by the model")
    return anyio.run(compress, plan, 0, model)
