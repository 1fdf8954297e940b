"""Run one function on many units of work, on all the machines of a Ray cluster."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import click

from compression_eval._version import __version__
from compression_eval.errors import DataError
from compression_eval.terminal import Display, plain_error

DEATHS = 5
"""How often a unit is given to another worker after one has died; bad luck ends before that."""

AHEAD = 2
"""Units for each core that the cluster is given at a time, so that no worker waits for the next."""

OBJECT_STORE_BYTES = 100 * 2**20
"""Of a cluster on this machine alone: what is large goes through files."""

_Command = TypeVar("_Command", bound=Callable[..., object])
_Unit = TypeVar("_Unit")
_Result = TypeVar("_Result")

_OPTIONS = (
    click.option("--engine", type=click.Choice(["ray"]), help="What spreads the work."),
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="With --engine: a Ray cluster; by default RAY_ADDRESS, or this machine alone.",
    ),
)


@dataclass(frozen=True)
class Engine:
    """A Ray cluster: one that is there, or one of this machine alone for as long as it is used."""

    address: str | None = None
    """Of one that is there; by default what ``RAY_ADDRESS`` says, else this machine is one."""

    @contextmanager
    def connected(self) -> Iterator[ModuleType]:
        """Connect to the cluster, for several runs; where that was done already, nothing is."""
        ray = _ray()
        if ray.is_initialized():
            yield ray
            return
        # Without an address Ray would take any cluster that somebody started on this machine.
        place = self.address or os.environ.get("RAY_ADDRESS") or "local"
        alone: dict[str, Any] = {}
        if place == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            alone = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        try:
            ray.init(place, log_to_driver=False, logging_level="ERROR", **alone)
        except Exception as error:  # Ray raises errors of its own, of gRPC and of the system
            raise DataError(f"--engine ray: {place}: {plain_error(error)}") from error
        try:
            yield ray
        finally:
            ray.shutdown()

    def cores(self) -> int:
        """Return how many cores the cluster has now; more may come."""
        with self.connected() as ray:
            return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(
        self,
        label: str,
        function: Callable[[_Unit], _Result],
        units: Sequence[_Unit],
        *,
        at_once: int | None = None,
    ) -> Iterator[tuple[int, _Result]]:
        """Yield the number and the result of every unit, as they are done.

        A unit whose worker dies is worked on once more by another, so what the function leaves
        must be the same when it is left twice.

        Args:
            label: What is done, for people.
            function: One that workers can import.
            units: What it is called with.
            at_once: Units at the same time; by default as many as there are cores.

        Raises:
            DataError: Ray is missing or cannot be reached, the function raised one, or the
                workers that had a unit died again and again.
        """
        done = 0
        display = Display(label, len(units), str, lambda: f"{label}: {done} of {len(units)} shards")
        with self.connected() as ray, display:
            task = ray.remote(_Task).options(max_retries=DEATHS, scheduling_strategy="SPREAD")
            left, running = deque(enumerate(units)), dict[Any, int]()
            while left or running:
                limit = at_once or AHEAD * self.cores()
                while left and len(running) < limit:
                    number, unit = left.popleft()
                    running[task.remote(function, unit, str(Path.cwd()), __version__)] = number
                (ready,), _ = ray.wait([*running], num_returns=1)
                number = running.pop(ready)
                try:
                    outcome = ray.get(ready)
                except ray.exceptions.RayTaskError:
                    raise  # a defect, with the worker's own traceback
                except ray.exceptions.RayError as error:
                    died = f"{label}, shard {number}: the workers that had it died: "
                    raise DataError(died + plain_error(error)) from error
                if isinstance(outcome, _Refusal):
                    raise DataError(outcome.reason)
                done += 1
                if display.bars:
                    display.bars.advance(display.whole)
                yield number, outcome


def engine_options(command: _Command) -> _Command:
    """Add the options that choose an engine to a command; `engine_of` takes their values."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def engine_of(engine: str | None, address: str | None) -> Engine | None:
    """Return the engine that options name; None if the work stays in this process and its own.

    Raises:
        DataError: An address is given without an engine, or Ray is missing.
    """
    if engine is None:
        if address:
            raise DataError("--address: needs --engine ray")
        return None
    _ray()
    return Engine(address)


@dataclass(frozen=True)
class _Refusal:
    """A `DataError` of a worker; some cannot go from one process to another."""

    reason: str


def _Task(function: Callable[[Any], Any], unit: Any, folder: str, version: str) -> Any:  # noqa: N802 - the name that Ray's tools show
    if version != __version__:
        return _Refusal(f"compression_eval: {version} here, {__version__} where Ray's workers are")
    if Path(folder).is_dir():  # relative paths mean the same to workers that share a file system
        os.chdir(folder)
    try:
        return function(unit)
    except DataError as error:
        return _Refusal(str(error))


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError as error:
        raise DataError(
            "--engine ray: Ray is not installed; pip install 'compression_eval[ray]'"
        ) from error
    module: ModuleType = ray
    return module
