"""Run one function on many units of work, on all the machines of a Ray cluster."""

import os
import re
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar

import click

from compression_eval._version import __version__
from compression_eval.errors import DataError, lacking
from compression_eval.terminal import Display, plain_error

DEATHS = 5
"""How often a unit is given to another worker after one has died; bad luck ends before that."""

SECONDS_TO_CONNECT = 5

MAX_SHOWN = 10

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
        if match := re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", place):
            host, port = match[1].strip("[]"), int(match[2])
            try:  # first: Ray itself tries for minutes
                socket.create_connection((host, port), SECONDS_TO_CONNECT).close()
            except (OSError, OverflowError, UnicodeError) as error:
                told = f"--engine ray: {place}: cannot be reached: {plain_error(error)}"
                raise DataError(told) from error
        try:
            ray.init(place, log_to_driver=False, logging_level="ERROR", **alone)
        except Exception as error:  # Ray raises errors of its own, of gRPC and of the system
            wants = "it asks for a token, which Ray looks for with RAY_AUTH_MODE=token; "
            hint = wants if "InvalidAuthToken" in str(error.__cause__) else ""
            raise DataError(f"--engine ray: {place}: {hint}{plain_error(error)}") from error
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
        name: Callable[[_Unit], str],
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
            name: Names a unit, for people.
            at_once: Units at the same time; by default as many as there are cores.

        Raises:
            DataError: Ray is missing or cannot be reached; or, when all else is done, of some units
                the function raised any error, or the workers died again and again. After the
                first ten without any result nothing more is begun.
        """
        done = 0
        failed: list[str] = []
        display = Display(label, len(units), str, lambda: f"{label}: {done} of {len(units)} units")
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
                except ray.exceptions.RayTaskError as error:
                    if re.search(r"No module named '?compression_eval\b", str(error)):
                        told = "compression_eval is not installed where Ray's workers are"
                        raise DataError(f"--engine ray: {told}") from None
                    raise  # a defect of this module, with the worker's own traceback
                except ray.exceptions.RayError as error:
                    outcome = _Refusal(f"the workers that had it died: {plain_error(error)}")
                if isinstance(outcome, _Refusal):
                    failed.append(f"{label}, {name(units[number])}: {outcome.reason}")
                    if not done and len(failed) == MAX_SHOWN:
                        left.clear()  # it would be the same with all others
                    continue
                done += 1
                if display.bars:
                    display.bars.advance(display.whole)
                yield number, outcome
        if failed:
            more = [f"and {len(failed) - MAX_SHOWN} more"] if len(failed) > MAX_SHOWN else []
            raise DataError("\n".join((*failed[:MAX_SHOWN], *more)))


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
    """An error of a worker, as text: some cannot go from one process to another."""

    reason: str


def _Task(function: Callable[[Any], Any], unit: Any, folder: str, version: str) -> Any:  # noqa: N802 - the name that Ray's tools show
    if version != __version__:
        return _Refusal(f"compression_eval: {version} here, {__version__} where Ray's workers are")
    try:
        # Relative paths mean the same to workers that share a file system.
        if Path(folder).is_dir():
            os.chdir(folder)
        return function(unit)
    except DataError as error:
        return _Refusal(str(error))
    except Exception as error:  # a defect at one unit ends no other
        told = f"{socket.gethostname()}: {type(error).__name__}: {plain_error(error)}"
        last = extract_tb(error.__traceback__)[-1]
        where = f"{last.name}, line {last.lineno} of {Path(last.filename).name}"
        hint = "" if isinstance(error, OSError) else f" (please report this: in {where})"
        return _Refusal(told + hint)


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError as error:
        raise lacking("--engine ray", "ray") from error
    module: ModuleType = ray
    return module
