"""Run compressors of the user on small conversations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from compression_eval.compressors.running import compress
from compression_eval.compressors.state import State
from compression_eval.compressors.strategy import CompressorSpec
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed, plan_of
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
    cuts: tuple[int, ...] = (),
) -> State:
    """Compress a small conversation."""
    fixture = fixture or conversation_fixture()
    return compressed(fixture, spec, arguments, lambda _: "written by the model", cuts)[0]


def at_once(spec: CompressorSpec, times: int) -> list[State]:
    """Compress a small conversation several times at the same time."""
    plan = plan_of(conversation_fixture(), spec)
    states: list[State] = []

    async def one(replicate: int) -> None:
        states.append(await compress(plan, replicate, model_replying(lambda _: "")[0]))

    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            for replicate in range(times):
                group.start_soon(one, replicate)

    anyio.run(all_of_them)
    return states
