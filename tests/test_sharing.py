"""One state for all who need it: computed once, handed over when its owner is interrupted."""

from pathlib import Path

import anyio
import pytest
from inspect_ai.util import LimitExceededError

from compression_eval import sharing
from compression_eval.compressors.state import State
from compression_eval.sharing import (
    MAX_INTERRUPTIONS,
    InterruptedStateError,
    RunIdentity,
    SharedStates,
)


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


@pytest.mark.usefixtures("run")
def test_interruptions_are_bounded_and_nobody_hangs() -> None:
    async def scenario() -> None:
        shared, work = SharedStates(), Work()
        work.hangs = True
        for _ in range(MAX_INTERRUPTIONS):
            with anyio.move_on_after(0.02):
                await shared.get("key", work)
        with anyio.fail_after(5), pytest.raises(InterruptedStateError, match="3 times"):
            await shared.get("key", work)
        assert work.begun == MAX_INTERRUPTIONS

    anyio.run(scenario)


@pytest.mark.usefixtures("run")
def test_of_what_fails_ahead_only_a_limit_is_raised() -> None:
    limit = LimitExceededError("token", value=2, limit=1)

    async def scenario() -> None:
        shared, work = SharedStates(), Work()

        async def fails(key: str) -> State:
            raise limit if key == "limit" else ConnectionError("gone")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shared.get, "key", work)
            await anyio.sleep(0.001)
            await shared.compute_ahead("key", ["other"], fails)
            with pytest.raises(LimitExceededError):
                await shared.compute_ahead("key", ["other", "limit"], fails)
        again, here = await shared.get("other", work)
        assert (again.state_id, here) == ("state-2", True)

    anyio.run(scenario)


@pytest.mark.usefixtures("run")
def test_of_those_with_a_state_a_few_compress_ahead_and_the_others_go_on() -> None:
    async def scenario() -> None:
        shared, work = SharedStates(), Work()
        begun: list[str] = []
        may_end = anyio.Event()
        others = 0

        async def computes(key: str) -> State:
            begun.append(key)
            await may_end.wait()
            return State(state_id=key, fixture="tiny", cut=11, replicate=0)

        async def sample() -> None:
            nonlocal others
            await shared.compute_ahead("key", [f"later-{n}" for n in range(9)], computes)
            others += not may_end.is_set()

        async def fails() -> State:
            raise ConnectionError("gone")

        await shared.compute_ahead("key", ["later-0"], computes)  # nobody has begun its own
        with pytest.raises(ConnectionError):
            await shared.get("key", fails)
        with anyio.fail_after(5):
            await shared.compute_ahead("key", ["later-0"], computes)  # its own is to be made again
        assert begun == []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shared.get, "key", work)
            await anyio.sleep(0.001)
            # It has no state yet, so it is not counted among the few.
            await shared.compute_ahead("key", ["early"], lambda _: Work()())
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(sample)
            await anyio.sleep(0.01)
            assert (sorted(begun), others) == (["later-0", "later-1"], 3)
            may_end.set()
        await sample()
        assert sorted(begun) == ["later-0", "later-1", "later-2"]

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
