"""Call one function with many units of work, on this machine or on a Ray cluster.

A command opens its `Engine`, shares with it what all units need, and calls `Engine.run` for each
stage. On this machine every worker is a `concurrent.futures.ProcessPoolExecutor` of one process:
a unit goes to the same process in every stage, which remembers what it has read, and when a
process dies it is known which unit it worked on. Little input is worked on in the command's own
process. Results come in the order of the units and are the same in every case.
"""

import gc
import os
import pickle
import re
import signal
import socket
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from pathlib import Path
from threading import Thread
from traceback import extract_tb
from types import ModuleType
from typing import Any, ClassVar, TypeVar

import click

from compression_eval._version import __version__
from compression_eval.errors import DataError, lacking
from compression_eval.terminal import Display, duration, plain_error

MIN_BYTES = 4_000_000
"""Bytes of input for each process, unless a number is given: a process takes a second to start."""

DEATHS = 2
"""Workers that a unit may kill before it counts as failed."""

RAY_DEATHS = 5
"""As `DEATHS`, on a cluster: nodes go away for reasons of their own."""

MAX_SHOWN = 10

AHEAD = 2
"""Units that a worker is given at a time, so that it need not wait for the next."""

SECONDS_TO_CONNECT = 5

OBJECT_STORE_BYTES = 100 * 2**20
"""Of a cluster on this machine alone: what is large goes through files."""

_ENDING = 0.3
"""Seconds that threads may take to end: those in which Inspect read a log end after that."""

_MIN_SHARE = 0.05
"""Of the work that must be done before the time left is told."""

_Command = TypeVar("_Command", bound=Callable[..., object])
_Unit = TypeVar("_Unit")
_Result = TypeVar("_Result")

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes; by default one for each core, fewer for little input.",
)
_OPTIONS = (
    click.option("--engine", type=click.Choice(["ray"]), help="What spreads the work."),
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="With --engine: a Ray cluster; by default RAY_ADDRESS, or this machine alone.",
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


@dataclass(frozen=True)
class Shared:
    """A value that all units need; a worker loads it once."""

    kept: Any
    """The value itself, or where it is."""
    load: Callable[[Any], Any] | None = None

    def get(self) -> Any:
        """Return the value."""
        return self.kept if self.load is None else _loaded(self.load, self.kept)


class Engine:
    """Processes of this machine, or this process alone.

    Args:
        jobs: How many processes; None for as many as pay.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs
        self._workers: list[Worker] = []
        self._folder = ""

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
        with ExitStack() as opened:
            if count > 1:
                with suppress(ValueError):  # in another thread than the main one
                    before = signal.signal(signal.SIGTERM, _stop) or signal.SIG_DFL
                    opened.callback(signal.signal, signal.SIGTERM, before)
                # A worker that is killed leaves its files: they are in here.
                self._folder = opened.enter_context(tempfile.TemporaryDirectory())
                opened.callback(self._workers.clear)
                for _ in range(count):
                    self._workers.append(opened.enter_context(Worker(imports, self._folder)))
            yield

    def cores(self) -> int:
        """Return how many units are worked on at the same time."""
        return len(self._workers) or 1

    def share(self, value: Any) -> Shared:
        """Return what gives workers a value."""
        if not self._workers:
            return Shared(value)
        handle, name = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "wb") as file:
            pickle.dump(value, file)
        return Shared(name, _unpickled)

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

        A unit whose worker dies is worked on again by another, so what the function leaves must be
        the same when it is left twice.

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
                    own = (
                        f"{label}, {name(units[number])}: " if label else f"{name(units[number])}: "
                    )
                    failed[number] = f"{'' if outcome.ours else own}{outcome.reason}"
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
        at_once: int | None,  # noqa: ARG002 - there are as many as there are workers
    ) -> Iterator[tuple[int, Any]]:
        """Yield number and result, or refusal, of every unit as they are done."""
        if not self._workers:
            yield from ((number, _task(function, unit)) for number, unit in enumerate(units))
            return
        load = dict.fromkeys(self._workers, 0)
        for worker in self._workers:
            worker.left.clear()
            worker.given.clear()
        for number, size in enumerate(sizes):
            least = min(load, key=load.__getitem__)
            load[least] += size + 1
            least.left.append(number)
        deaths = Counter[int]()
        while busy := [worker for worker in self._workers if worker.fill(function, units)]:
            wait_for([worker.given[0][1] for worker in busy], return_when=FIRST_COMPLETED)
            for worker in busy:
                while worker.given and worker.given[0][1].done():
                    number, future = worker.given.popleft()
                    try:
                        yield number, future.result()
                    except BrokenExecutor:
                        deaths[number] += 1
                        how = worker.start_again()
                        if deaths[number] < DEATHS:
                            worker.left.appendleft(number)
                        else:
                            yield number, _Refusal(f"the processes that had it ended {how}")
                    except Exception as error:  # what cannot go from one process to another
                        yield number, _Refusal(f"{type(error).__name__}: {plain_error(error)}")


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
            raise DataError(f"--engine ray: {place}: {plain_error(error)}") from error
        try:
            yield
        finally:
            ray.shutdown()

    def cores(self) -> int:
        """Return how many cores the cluster has now; more may come."""
        with self.opened():
            return max(1, int(_ray().cluster_resources().get("CPU", 1)))

    def share(self, value: Any) -> Shared:
        """Return what gives workers a value."""
        return Shared(_ray().put(value), _from_ray)

    def _outcomes(
        self,
        function: Callable[[Any], Any],
        units: Sequence[Any],
        sizes: Sequence[int],  # noqa: ARG002 - Ray decides who works on what
        at_once: int | None,
    ) -> Iterator[tuple[int, Any]]:
        ray = _ray()
        task = ray.remote(_task).options(max_retries=RAY_DEATHS, scheduling_strategy="SPREAD")
        left, running = deque(enumerate(units)), dict[Any, int]()
        here = (str(Path.cwd()), __version__)
        while left or running:
            while left and len(running) < (at_once or AHEAD * self.cores()):
                number, unit = left.popleft()
                running[task.remote(function, unit, *here)] = number
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
            yield number, outcome


class Worker:
    """A process of its own that works on units, one after the other.

    It is forked from this process while that has no threads but those of other workers, so that
    it begins at once and shares what is imported. Otherwise it begins by itself.

    Args:
        imports: Modules that it needs.
        folder: For its temporary files.
    """

    running: ClassVar[set["Worker"]] = set()

    def __init__(self, imports: Sequence[str], folder: str) -> None:
        self._imports, self._folder = imports, folder
        self.left: deque[int] = deque()
        """Numbers of the units that it is to work on."""
        self.given: deque[tuple[int, Future[Any]]] = deque()
        """Those that it has."""

    def __enter__(self) -> "Worker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> None:
        """Start the process.

        Raises:
            DataError: It cannot be started.
        """
        before = {*active_children()}
        try:
            with _starting():
                context = get_context("fork" if _may_fork() else "spawn")
                if context.get_start_method() == "fork":
                    for name in self._imports:
                        import_module(name)
                    gc.freeze()  # to look for garbage would copy the memory that both share
                self._pool = ProcessPoolExecutor(1, context, _begin, (self._folder,))
                self._pool.submit(int)  # now: it is started by the first call
        except (EOFError, OSError) as error:
            raise DataError(f"a process cannot be started: {plain_error(error)}") from error
        # None if it has died already, of which the first unit for it will tell.
        self._process = next(iter({*active_children()} - before), None)
        self.running.add(self)

    def end(self) -> str:
        """End the process at once; returns how it ended."""
        if self._process:
            self._process.kill()
            self._process.join()
        self._pool.shutdown(cancel_futures=True)
        self.running.discard(self)
        if not self._process:
            return "as soon as it began"
        code = self._process.exitcode or 0
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def fill(self, function: Callable[[Any], Any], units: Sequence[Any]) -> bool:
        """Give it units to work on; returns whether it has any."""
        while self.left and len(self.given) < AHEAD:
            try:
                future = self._pool.submit(_task, function, units[self.left[0]])
            except BrokenExecutor:
                if self.given:
                    break  # they will tell
                self.start_again()
                continue
            self.given.append((self.left.popleft(), future))
        return bool(self.given)

    def start_again(self) -> str:
        """Start it again, with all that it had been given; returns how it ended."""
        self.left.extendleft(number for number, _ in reversed(self.given))
        self.given.clear()
        how = self.end()
        self.start()
        return how


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


@lru_cache(maxsize=1)
def _loaded(load: Callable[[Any], Any], place: Any) -> Any:
    return load(place)


def _unpickled(name: str) -> Any:
    with Path(name).open("rb") as file:
        return pickle.load(file)  # noqa: S301 - of this command


def _from_ray(reference: Any) -> Any:
    return _ray().get(reference)


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


def _stop(*_: object) -> None:
    """End as after an error, which leaves no files behind."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # so that nothing interrupts that
    sys.exit(128 + signal.SIGTERM)


@contextmanager
def _starting() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, and that import what this process does.

    Python looks for the modules of a new process in the current folder first, `multiprocessing`
    itself among them, and what lies there may be anybody's.
    """
    safe = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    before = {name: os.environ.get(name) for name in safe}
    os.environ.update(safe)
    blocked = None
    try:
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # now: its start lets the signal through
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _may_fork() -> bool:
    """Return whether this process may be forked: a thread could hold a lock, for good there.

    The two threads of each worker hold none that another worker takes.
    """
    tasks, end = Path("/proc/self/task"), time.monotonic() + _ENDING
    while tasks.is_dir():
        if len(list(tasks.iterdir())) <= 1 + 2 * len(Worker.running):
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
