"""One state for all who need it: computed once, handed over when its owner is interrupted."""

from pathlib import Path

import anyio
import pytest
from inspect_ai.util import LimitExceededError

from compression_eval import sharing
from compression_eval.compressors.state import State
from compression_eval.sharing import MAX_INTERRUPTIONS, RunIdentity, SharedStates

PLACE = ("tiny", 11, 0)


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
                await shared.get("key", work, PLACE)

        async def waits() -> None:
            got.append(await shared.get("key", work, PLACE))

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


@pytest.mark.usefixtures("run")
def test_interruptions_are_bounded_and_nobody_hangs() -> None:
    async def scenario() -> None:
        shared, work = SharedStates(), Work()
        work.hangs = True
        for _ in range(MAX_INTERRUPTIONS):
            with anyio.move_on_after(0.02):
                await shared.get("key", work, PLACE)
        with anyio.fail_after(5), pytest.raises(LimitExceededError, match="3 times"):
            await shared.get("key", work, PLACE)
        assert work.begun == MAX_INTERRUPTIONS

    anyio.run(scenario)


@pytest.mark.usefixtures("run")
def test_a_limit_that_every_owner_runs_into_is_met_three_times_only() -> None:
    begun, ended = [], []

    async def scenario() -> None:
        shared = SharedStates()

        async def exceeds() -> State:
            begun.append(1)
            await anyio.sleep(0)
            raise LimitExceededError("token", value=11, limit=10)

        async def sample() -> None:
            with pytest.raises(LimitExceededError) as told:
                await shared.get("key", exceeds, PLACE)
            ended.append(told.value.type)

        async with anyio.create_task_group() as tasks:
            for _ in range(42):
                tasks.start_soon(sample)

    anyio.run(scenario)
    assert (len(begun), ended) == (MAX_INTERRUPTIONS, ["token"] * 42)


@pytest.mark.parametrize("place", [("other", 11, 0), ("tiny", 9, 0), ("tiny", 11, 1)])
@pytest.mark.usefixtures("run")
def test_a_kept_state_of_another_place_is_computed_anew(place: tuple[str, int, int]) -> None:
    async def scenario() -> None:
        work = Work()
        await SharedStates().get("key", work, PLACE)
        state, here = await SharedStates().get("key", work, PLACE)
        assert (state.state_id, here) == ("state-1", False)
        state, here = await SharedStates().get("key", work, place)
        assert (state.state_id, here) == ("state-2", True)

    anyio.run(scenario)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"not gzip", b'{"state_id": 3}'])
@pytest.mark.usefixtures("run")
def test_a_damaged_file_counts_as_none(content: bytes, tmp_path: Path) -> None:
    async def scenario() -> None:
        work = Work()
        await SharedStates().get("../../escaped\n/etc", work, PLACE)
        (path,) = tmp_path.rglob("*.state.gz")
        assert path.parent == tmp_path / "compression_states" / "logical"
        path.write_bytes(content)
        again, here = await SharedStates().get("../../escaped\n/etc", work, PLACE)
        assert (again.state_id, here) == ("state-2", True)

    anyio.run(scenario)


@pytest.mark.usefixtures("run")
def test_after_an_outage_the_next_sample_compresses_again() -> None:
    async def scenario() -> None:
        shared, work = SharedStates(), Work()

        async def fails() -> State:
            raise ConnectionError("the provider is down")

        with pytest.raises(ConnectionError):
            await shared.get("key", fails, PLACE)
        state, here = await shared.get("key", work, PLACE)
        assert (state.state_id, here) == ("state-1", True)

    anyio.run(scenario)
