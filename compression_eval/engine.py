"""Call one function with many units of work, on this machine or on a Ray cluster.

A command opens its `Engine` and calls `Engine.run` for each pass over its units. On this machine
every worker is a `ProcessPoolExecutor` of one process: a unit goes to the same one in every pass,
which remembers what it found in the unit's texts, and when a process dies it is known which unit it
worked on. That unit is tried once more. Little input is worked on in the command's own process. A
Ray cluster gives lost units to other workers itself. Results come in the order of the units, the
same in every case.
"""

import gc
import os
import re
import signal
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread, current_thread, main_thread
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar

import click

from compression_eval._version import __version__
from compression_eval.errors import DataError, lacking
from compression_eval.terminal import Display, duration, plain_error

MIN_BYTES = 4_000_000
"""Bytes of input for each process, unless a number is given: a process takes a second to start."""

RAY_DEATHS = 5
"""Workers of a cluster that a unit may lose: nodes go away for reasons of their own."""

MAX_SHOWN = 10

AHEAD = 2
"""Units given to each worker at a time, so that it need not wait for the next."""

SECONDS_TO_CONNECT = 5

OBJECT_STORE_BYTES = 100 * 2**20
"""Of a cluster on this machine alone: what is large goes through files."""

_ENDING = 0.3
"""Seconds that threads may take to end: those in which Inspect read a log end after that."""

_MIN_SHARE = 0.05
"""Of the work that must be done before the time left is shown."""

_Command = TypeVar("_Command", bound=Callable[..., object])
_Unit = TypeVar("_Unit")
_Result = TypeVar("_Result")

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Number of processes. Default: one per core, fewer for little input.",
)
_OPTIONS = (
    click.option("--engine", type=click.Choice(["ray"]), help="Spread the work with this engine."),
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="With --engine: address of a Ray cluster. Default: RAY_ADDRESS, or this machine.",
    ),
)


def engine_options(command: _Command) -> _Command:
    """Add the options that choose an engine to a command; `engine_of` takes their values."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def engine_of(engine: str | None, address: str | None, jobs: int | None = None) -> "Engine":
    """Return the engine that options name.

    Raises:
        DataError: Options contradict each other, or Ray is missing.
    """
    if engine is None:
        if address:
            raise DataError("--address: needs --engine ray")
        return Engine(jobs)
    if jobs:
        raise DataError("--jobs: not with --engine, which takes every core of its cluster")
    _ray()
    return RayEngine(address)


class Engine:
    """Processes of this machine, or this process alone.

    Args:
        jobs: How many processes; None for as many as pay.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs
        self._pools: dict[int, tuple[ProcessPoolExecutor, set[BaseProcess]]] = {}

    @contextmanager
    def opened(self, sizes: Sequence[int] = (), imports: Sequence[str] = ()) -> Iterator[None]:
        """Start the workers, for several runs; they end with the block.

        Args:
            sizes: Bytes of all units of the input.
            imports: Modules that the work needs, which processes share where they can.

        Raises:
            DataError: They cannot be started.
        """
        count = min(self.jobs or min(cores(), sum(sizes) // MIN_BYTES), len(sizes))
        if count < 2:
            yield
            return
        # A process that is killed leaves its files; they are in this folder.
        with _terminable(), tempfile.TemporaryDirectory() as folder:
            self._imports, self._folder = imports, folder
            try:
                for lane in range(count):
                    self._start(lane)
                yield
            finally:
                for lane in [*self._pools]:
                    self._end(lane)

    def _start(self, lane: int) -> None:
        """Start a process.

        It is forked while this process has no threads but those of other pools, so that it begins
        at once and shares what is imported. Otherwise it begins by itself.
        """
        context = get_context("fork" if _may_fork(1 + 2 * len(self._pools)) else "spawn")
        if context.get_start_method() == "fork":
            for name in self._imports:
                import_module(name)
            gc.freeze()  # to look for garbage would copy the memory that they share
        before = {*active_children()}
        try:
            with _starting(context.get_start_method()):
                pool = ProcessPoolExecutor(1, context, _begin, (self._folder,))
                pool.submit(int)  # now: the process is started by the first call
        except (EOFError, OSError) as error:
            raise DataError(f"a process cannot be started: {plain_error(error)}") from error
        self._pools[lane] = pool, {*active_children()} - before

    def _end(self, lane: int) -> None:
        """End a process at once."""
        pool, processes = self._pools.pop(lane)
        for process in processes:
            process.kill()
        pool.shutdown(cancel_futures=True)

    def cores(self) -> int:
        """Return how many units are worked on at the same time."""
        return len(self._pools) or 1

    def run(
        self,
        label: str,
        function: Callable[[_Unit], _Result],
        units: Sequence[_Unit],
        name: Callable[[_Unit], str],
        *,
        size: Callable[[_Unit], int] = lambda _: 1,
        at_once: int | None = None,
        stop: bool = False,
    ) -> Iterator[tuple[int, _Result]]:
        """Yield the number and the result of every unit, in their order.

        A unit whose worker dies is worked on again, so what the function leaves must be the same
        when it is left twice.

        Args:
            label: What is done, for people; nothing is shown without one.
            function: One that workers can import.
            units: What it is called with.
            name: Names a unit, for people.
            size: Bytes of a unit, or another measure of its work.
            at_once: Units at the same time; by default as many as there are cores.
            stop: Whether the first error ends the run.

        Raises:
            DataError: The engine cannot be reached; or, when all else is done, of some units the
                function raised any error, or the workers died. After the first ten without any
                result nothing more is begun.
        """
        sizes = [size(unit) for unit in units]
        waiting: dict[int, Any] = {}
        failed: dict[int, str] = {}
        count = done = following = 0
        started = time.monotonic()

        def left() -> str:
            if done <= sum(sizes) * _MIN_SHARE:
                return ""
            seconds = (sum(sizes) - done) * (time.monotonic() - started) / done
            return f"about {duration(seconds)} left"

        def line() -> str:
            return ", ".join(filter(None, (f"{label}: {count} of {len(units)} units", left())))

        shown = Display(label, len(units), left, line) if label else None
        with self.opened(), shown or nullcontext():
            for number, outcome in self._outcomes(function, units, sizes, at_once):
                done, count, waiting[number] = done + sizes[number], count + 1, outcome
                if shown:
                    shown.advance()
                if isinstance(outcome, _Refusal):
                    where = ", ".join(filter(None, (label, name(units[number]))))
                    where = "" if outcome.ours else f"{where}: "
                    failed[number] = where + outcome.reason
                    if stop or count == len(failed) == MAX_SHOWN:
                        break  # it would be the same with all others
                while following in waiting:
                    if not isinstance(result := waiting.pop(following), _Refusal):
                        yield following, result
                    following += 1
        if failed:
            told = list(dict.fromkeys(failed[number] for number in sorted(failed)))
            more = [f"and {len(told) - MAX_SHOWN} more"] if len(told) > MAX_SHOWN else []
            raise DataError("\n".join((*told[:MAX_SHOWN], *more)))

    def _outcomes(
        self,
        function: Callable[[Any], Any],
        units: Sequence[Any],
        sizes: Sequence[int],
        at_once: int | None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield number and result, or refusal, of every unit as they are done."""
        load = [0] * (len(self._pools) or 1)
        lanes = [(deque[int](), dict[Future[Any], int]()) for _ in load]
        for number, size in enumerate(sizes):
            least = load.index(min(load))
            load[least] += size + 1
            lanes[least][0].append(number)
        died = set[int]()
        while True:
            ahead = at_once or self._ahead()  # a cluster grows and shrinks
            for lane, (left, running) in enumerate(lanes):
                while left and len(running) < ahead:
                    number = left.popleft()
                    running[self._submit(lane, function, units[number])] = number
            if not (given := [future for _, running in lanes for future in running]):
                return
            wait_for(given, return_when=FIRST_COMPLETED)
            for lane, (left, running) in enumerate(lanes):
                lost: list[int] = []
                for future in [each for each in running if each.done()]:
                    number = running.pop(future)
                    try:
                        yield number, future.result()
                    except BrokenExecutor:
                        lost.append(number)
                    except Exception as error:
                        yield number, self._refusal(error)
                if lost:
                    lost += running.values()
                    running.clear()
                    self._end(lane)
                    self._start(lane)
                    if lost[0] in died:  # it was at the first; others only waited
                        yield lost.pop(0), _Refusal("the processes that worked on it died")
                    else:
                        died.add(lost[0])
                    left.extendleft(reversed(lost))

    def _ahead(self) -> int:
        """Return how many units each lane is given at a time."""
        return AHEAD

    def _submit(self, lane: int, function: Callable[[Any], Any], unit: Any) -> Future[Any]:
        """Begin work on a unit."""
        done = Future[Any]()
        try:
            if self._pools:
                return self._pools[lane][0].submit(_task, function, unit)
            done.set_result(_task(function, unit))
        except BrokenExecutor as error:  # the process has died meanwhile
            done.set_exception(error)
        return done

    def _refusal(self, error: Exception) -> "_Refusal":
        """Return why a unit has no result; here, what could not go from a process to another."""
        return _Refusal(f"{type(error).__name__}: {plain_error(error)}")


class RayEngine(Engine):
    """A Ray cluster: one that is there, or one of this machine alone for as long as it is used.

    Args:
        address: Of one that is there; by default what ``RAY_ADDRESS`` says, else this machine is
            one.
    """

    def __init__(self, address: str | None = None) -> None:
        super().__init__()
        self._address = address

    @contextmanager
    def opened(self, sizes: Sequence[int] = (), imports: Sequence[str] = ()) -> Iterator[None]:
        """Connect to the cluster, for several runs; where that was done already, nothing is."""
        del sizes, imports
        ray = _ray()
        if ray.is_initialized():
            yield
            return
        # Without an address Ray would take any cluster that somebody started on this machine.
        place = self._address or os.environ.get("RAY_ADDRESS") or "local"
        alone: dict[str, Any] = {}
        if place == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            alone = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        try:
            if match := re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", place):
                at = match[1].strip("[]"), int(match[2])  # first: Ray itself tries for minutes
                socket.create_connection(at, SECONDS_TO_CONNECT).close()
            ray.init(place, log_to_driver=False, logging_level="ERROR", **alone)
        except Exception as error:  # Ray raises errors of its own, of gRPC and of the system
            told = f"--engine ray: {place}: cannot be reached: {plain_error(error)}"
            raise DataError(told) from error
        try:
            yield
        finally:
            ray.shutdown()

    def cores(self) -> int:
        """Return how many cores the cluster has now; more may come."""
        with self.opened():
            return max(1, int(_ray().cluster_resources().get("CPU", 1)))

    def _ahead(self) -> int:
        return AHEAD * self.cores()

    def _submit(self, lane: int, function: Callable[[Any], Any], unit: Any) -> Future[Any]:
        del lane  # Ray decides who works on what
        task = _ray().remote(_task)
        task = task.options(max_retries=RAY_DEATHS, scheduling_strategy="SPREAD")
        future: Future[Any] = task.remote(function, unit, str(Path.cwd()), __version__).future()
        return future

    def _refusal(self, error: Exception) -> "_Refusal":
        if re.search(r"No module named '?compression_eval\b", str(error)):
            raise DataError("--engine ray: compression_eval is not installed where its workers are")
        return _Refusal(f"the workers that had it died: {plain_error(error)}")


@dataclass(frozen=True)
class _Refusal:
    """An error of a worker, as text: some cannot go from one process to another."""

    reason: str
    ours: bool = False
    """Whether it names the file, as a `DataError` does."""


def _task(
    function: Callable[[Any], Any], unit: Any, folder: str = "", version: str = __version__
) -> Any:
    if version != __version__:
        return _Refusal(f"compression_eval: {version} here, {__version__} where Ray's workers are")
    try:
        # Relative paths mean the same to workers that share a file system.
        if folder and Path(folder).is_dir():
            os.chdir(folder)
        return function(unit)
    except DataError as error:
        return _Refusal(str(error), ours=True)
    except Exception as error:  # a defect at one unit ends no other
        host = f"{socket.gethostname()}: " if folder else ""
        last = extract_tb(error.__traceback__)[-1]
        where = f"{last.name}, line {last.lineno} of {Path(last.filename).name}"
        hint = "" if isinstance(error, OSError) else f" (please report this: in {where})"
        return _Refusal(f"{host}{type(error).__name__}: {plain_error(error)}{hint}")


def _begin(folder: str) -> None:
    """Set up a process that has just started."""
    tempfile.tempdir = folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    # What is there stays, and little of what comes refers to itself: garbage is looked for less.
    gc.freeze()
    gc.set_threshold(10_000)


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
        os._exit(1)


@contextmanager
def _terminable() -> Iterator[None]:
    """End by SIGTERM as after an error, which leaves no files behind; only the main thread can."""
    if current_thread() is not main_thread():
        yield
        return

    def stop(*_: object) -> None:
        # For as long as the process lives: another signal must not interrupt the clean-up.
        signal.signal(signal.SIGTERM, lambda *_: None)
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


@contextmanager
def _starting(method: str) -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: this one ends them.

    Python looks for the modules of a new process in the current folder first, `multiprocessing`
    itself among them, and what lies there may be anybody's.
    """
    blocked = None
    before = os.environ.get("PYTHONSAFEPATH", "")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        if hasattr(signal, "pthread_sigmask"):
            if method == "spawn":
                resource_tracker.ensure_running()  # now: its start lets the signal through
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        os.environ["PYTHONSAFEPATH"] = before  # empty is as if it were not set
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _may_fork(threads: int) -> bool:
    """Return whether this process may be forked: a thread could hold a lock, for good there.

    The two threads of each pool hold none that another process takes.
    """
    tasks, end = Path("/proc/self/task"), time.monotonic() + _ENDING
    while tasks.is_dir():
        if len(list(tasks.iterdir())) <= threads:
            return True
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return False  # or another system than Linux


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ray() -> ModuleType:
    try:
        import ray
    except ImportError as error:
        raise lacking("--engine ray", "ray") from error
    module: ModuleType = ray
    return module
