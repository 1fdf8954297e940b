"""One state for all who need it: computed once, handed over when its owner is interrupted."""

from pathlib import Path

import anyio
import pytest

from compression_eval import sharing
from compression_eval.compressors.state import State
from compression_eval.sharing import RunIdentity, SharedStates


class Work:
    """A compression that counts how often it is begun and can be made to take forever."""

    def __init__(self) -> None:
        self.begun = 0
        self.hangs = False

    async def __call__(self) -> State:
        self.begun += 1
        number = self.begun
        await anyio.sleep(60 if self.hangs else 0.01)
        return State(state_id=f"state-{number}", fixture="tiny", cut=11, replicate=0)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that the calls belong to."""
    identity = RunIdentity("first", "logical", str(tmp_path))
    monkeypatch.setattr(sharing, "current_run", lambda: identity)
    monkeypatch.setattr(sharing, "_folders", {})  # other tests have runs of the same name


@pytest.mark.usefixtures("run")
def test_the_next_takes_over_from_a_cancelled_owner() -> None:
    async def scenario() -> None:
        shared, work = SharedStates(), Work()
        work.hangs = True
        owner = anyio.CancelScope()
        got: list[tuple[State, bool]] = []

        async def cancelled() -> None:
            with owner:
                await shared.get("key", work)

        async def waits() -> None:
            got.append(await shared.get("key", work))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancelled)
            await anyio.sleep(0.01)
            tasks.start_soon(waits)
            await anyio.sleep(0.01)
            work.hangs = False
            owner.cancel()
        ((state, here),) = got
        assert (state.state_id, here) == ("state-2", True)

    anyio.run(scenario)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"not gzip", b'{"state_id": 3}'])
@pytest.mark.usefixtures("run")
def test_a_damaged_file_counts_as_none(content: bytes, tmp_path: Path) -> None:
    async def scenario() -> None:
        work = Work()
        await SharedStates().get("../../escaped\n/etc", work)
        (path,) = tmp_path.rglob("*.state.gz")
        assert path.parent == tmp_path / "compression_states" / "logical"
        path.write_bytes(content)
        again, here = await SharedStates().get("../../escaped\n/etc", work)
        assert (again.state_id, here) == ("state-2", True)

    anyio.run(scenario)


@pytest.mark.usefixtures("run")
def test_after_an_outage_the_next_sample_compresses_again() -> None:
    async def scenario() -> None:
        shared, work = SharedStates(), Work()

        async def fails() -> State:
            raise ConnectionError("the provider is down")

        with pytest.raises(ConnectionError):
            await shared.get("key", fails)
        state, here = await shared.get("key", work)
        assert (state.state_id, here) == ("state-1", True)

    anyio.run(scenario)
