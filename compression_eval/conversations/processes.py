"""Work on many files in several processes at once, with the results in the order of the files."""

import gc
import os
import pickle
import signal
import sys
import tempfile
import time
from _thread import interrupt_main
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import get_all_start_methods, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Thread
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

import click

from compression_eval.errors import DataError
from compression_eval.terminal import Display, duration, plain_error

MIN_BYTES = 4_000_000
"""Bytes of input for each process, unless a number is given: a process takes a second to start."""

_MIN_SHARE = 0.05
"""Of the bytes that must be done before a pace is told: a process takes a while to start."""

MAX_WAITING_BYTES = 64_000_000
"""Results that wait for those of earlier files; with more, processes ahead have to wait."""

_PATIENCE = 5
"""Seconds that a process may take to end in order."""

_ENDING = 0.3
"""Seconds that threads may take to end: those in which Inspect read a log end after that."""

_MAX_TEMPORARY = 70
"""Bytes of the temporary folder's name: a socket in it may have a little over 100 with its own."""

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes; by default one for each core, fewer for little input.",
)


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Apart:
    """A process of its own that calls functions, one after the other.

    It is forked from this process while that has a single thread, so that it begins at once and
    shares what is imported; later, a script that starts one is imported again there.

    Args:
        module: Name of what it needs to import.

    Raises:
        DataError: It cannot be started.
    """

    def __init__(self, module: str) -> None:
        alone = _has_one_thread()
        if alone:
            gc.freeze()  # to look for garbage would copy the memory that both share
        context = get_context("fork") if alone else _context(module)
        self._calls, self._process = _started(context, _reply)

    def __enter__(self) -> "Apart":
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.close()
        _end_all([self._process])

    def call(
        self,
        place: str,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **keywords: _Arguments.kwargs,
    ) -> _Result:
        """Return what a function returns.

        Raises:
            DataError: The process ended before it was done; the text begins with the place.
        """
        try:
            self._calls.send(partial(function, *arguments, **keywords))
            result, failed = self._calls.recv()
        except (EOFError, OSError) as error:
            why = "was ended from outside, perhaps for want of memory"
            raise DataError(f"{place}: the process that worked on it {why}") from error
        if failed is not None:
            raise failed
        return cast("_Result", result)


def _has_one_thread() -> bool:
    """Return whether this process may be forked: a thread could hold a lock, for good there."""
    tasks, end = Path("/proc/self/task"), time.monotonic() + _ENDING
    while tasks.is_dir():
        if len(list(tasks.iterdir())) == 1:
            return True
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return False  # or another system than Linux


def _context(*modules: str) -> Any:
    """Return how processes begin: forked, where the system can, from one without threads.

    That one has imported some modules: so they begin at once, and share its memory. There is one
    for good: it has the modules that were named first, and the environment of that time.
    """
    can = "forkserver" in get_all_start_methods()
    can &= len(os.fsencode(gettempdir())) <= _MAX_TEMPORARY
    context: Any = get_context("forkserver" if can else "spawn")
    if hasattr(context, "set_forkserver_preload"):
        context.set_forkserver_preload([*modules])
    return context


def _started(
    context: Any, target: Callable[..., None], *arguments: object
) -> tuple[Connection, BaseProcess]:
    calls, end = context.Pipe()
    process = context.Process(target=target, args=(*arguments, end), daemon=True)
    try:
        with end, _no_interrupts():  # closed here, so that the pipe ends with the process
            process.start()
    except (EOFError, OSError) as error:
        calls.close()
        raise DataError(f"a process cannot be started: {plain_error(error)}") from error
    return calls, process


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait, and never come to what is started meanwhile: this process ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # now: its start lets the signal through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_all(processes: Sequence[BaseProcess]) -> None:
    """End processes as after an error, and those that take long for it by force."""
    end = time.monotonic() + _PATIENCE
    while (left := [each for each in processes if each.is_alive()]) and time.monotonic() < end:
        for process in left:
            process.terminate()  # again: Python can lose a signal that reaches another thread
        left[0].join(0.1)
    for process in processes:
        process.kill()
        process.join()


def _end(*_: object) -> None:
    """End as after an error, which leaves no files behind."""
    _ignore_signals()  # so that nothing interrupts that
    sys.exit(128 + signal.SIGTERM)


def _ignore_signals() -> None:
    # Not SIG_IGN: Python writes an error when one is set for a signal that has just come.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: None)


def _reply(calls: Connection) -> None:
    """Send the error or the result of every call, unless the main process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    signal.signal(signal.SIGTERM, _end)
    Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()
    with suppress(EOFError, BrokenPipeError):
        while called := calls.recv():
            calls.send_bytes(_outcome(called))
    _ignore_signals()  # one that came while the process ends would show as an error


def _outcome(called: Callable[[], Any]) -> bytes:
    """Return what a call returns and None, or None and its error, as a connection takes it."""
    try:
        return pickle.dumps((called(), None))
    except Exception as error:
        return pickle.dumps((None, _portable(error)))


def _portable(error: Exception) -> Exception:
    """Return an error, or what it says where it cannot go from one process to another."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - of this process
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
        interrupt_main(signal.SIGTERM)
        time.sleep(_PATIENCE)
        os._exit(1)


class Work(Protocol):
    """One file, or what stands for one."""

    @property
    def place(self) -> str:
        """Its name, for people."""

    @property
    def size(self) -> int:
        """Its bytes."""


_Worker = TypeVar("_Worker")
_Item = TypeVar("_Item", bound=Work)


class Workers(Generic[_Worker]):
    """Workers that all do the same: one in this process, or one in each of several.

    Args:
        make: Makes a worker. It, the files, and the results go from one process to the other.
        items: All files that there will be work on.
        jobs: Processes; None for as many as pay.
        passes: How often there will be work on each file.
        imports: Modules that the work needs, beside that of the class.
    """

    def __init__(
        self,
        make: "partial[_Worker]",
        items: Sequence[Work],
        jobs: int | None,
        passes: int = 1,
        imports: Sequence[str] = (),
    ) -> None:
        # As they are now: a file that grows meanwhile may not come to another process.
        self._sizes = {item.place: item.size for item in items}
        size = sum(self._sizes[item.place] for item in items)
        count = min(jobs or min(cores(), size // MIN_BYTES), len(items))
        self._files, self._bytes = len(items), size * passes
        self._label, self._number, self._done = "", 0, 0
        self._started = time.monotonic()
        self._display = Display("", len(items), lambda: self._pace().lstrip(", "), self._line)
        self._own = make() if count < 2 else None
        self._others: list[_Process] = []
        self._start = partial(_Process, _context(make.func.__module__, *imports), make)
        self._count = count if count > 1 else 0

    def __enter__(self) -> "Workers[_Worker]":
        with ExitStack() as opened:
            with suppress(ValueError):  # in another thread than the main one
                before = signal.signal(signal.SIGTERM, _end) or signal.SIG_DFL
                opened.callback(signal.signal, signal.SIGTERM, before)
            # A process that is ended leaves its files: they are in here.
            folder = opened.enter_context(TemporaryDirectory()) if self._count else ""
            opened.callback(self._end_others)
            for _ in range(self._count):
                self._others.append(self._start(folder))
            opened.enter_context(self._display)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _end_others(self) -> None:
        for other in self._others:
            other.results.close()
        _end_all([other.process for other in self._others])

    def each(
        self,
        label: str,
        method: Callable[[_Worker, _Item], Iterable[_Result]],
        items: Sequence[_Item],
    ) -> Iterator[tuple[_Item, Iterator[_Result]]]:
        """Yield every file in order, with what a worker's method yields for it.

        A file goes to the process that has had the least so far, counted in bytes: so it is the
        same process whenever the same files are worked on, and none waits long for another.

        Raises:
            DataError: A process ended before its work was done.
        """
        self._label, self._number = label, 0
        if self._display.bars:
            self._display.bars.reset(self._display.whole, description=label)
        if self._own is not None:
            for item in items:
                yield item, iter(method(self._own, item))
                self._finished(item)
            return
        owners: list[_Process] = []
        shares: dict[_Process, list[int]] = {other: [] for other in self._others}
        load = dict.fromkeys(self._others, 0)
        for number, item in enumerate(items):
            owner = min(load, key=load.__getitem__)
            load[owner] += self._sizes[item.place] + 1
            shares[owner].append(number)
            owners.append(owner)
        for other, share in shares.items():
            other.begin(method, [(number, items[number]) for number in share])
        for number, item in enumerate(items):
            yield item, self._results(number, owners[number])

    def all(self, method: Callable[..., _Result], *arguments: Any) -> list[_Result]:
        """Return what a method of every worker returns, or raise the first error of one."""
        if self._own is not None:
            return [method(self._own, *arguments)]
        return [other.call(method, arguments) for other in self._others]

    def _finished(self, item: Work) -> None:
        self._number += 1
        self._done += item.size
        if self._display.bars:
            self._display.bars.advance(self._display.whole)

    def _pace(self) -> str:
        if self._done <= self._bytes * _MIN_SHARE:
            return ""
        elapsed = time.monotonic() - self._started
        left = (self._bytes - self._done) * elapsed / self._done
        return f", {self._done / elapsed / 1e6:.1f} MB/s, about {duration(left)} left"

    def _line(self) -> str:
        return f"{self._label}: {self._number} of {self._files} files{self._pace()}"

    def _results(self, number: int, owner: "_Process") -> Iterator[Any]:
        while True:
            while owner.waiting and owner.waiting[0][0] == number:
                _, done, content = owner.waiting.popleft()
                owner.waiting_bytes -= len(content)
                result = pickle.loads(content)  # noqa: S301 - of a process of this one
                if done and result is not None:
                    raise result
                if done:
                    return
                yield result
            is_full = sum(other.waiting_bytes for other in self._others) > MAX_WAITING_BYTES
            busy = [other for other in self._others if other.left]
            for ready in wait([owner.results] if is_full else [one.results for one in busy]):
                if finished := next(one for one in busy if one.results is ready).receive():
                    self._finished(finished)


class _Process:
    """A worker in a process of its own, as the main process sees it."""

    def __init__(self, context: Any, make: Callable[[], Any], folder: str) -> None:
        self.results, self.process = _started(context, _serve, make, folder)
        self.left: deque[tuple[int, Work]] = deque()
        """The files that it has not finished."""
        self.waiting: deque[tuple[int, bool, bytes]] = deque()
        """What was not asked for yet: number of the file, whether it is done, and a result as it
        was sent; of one that is done, the error that ended it."""
        self.waiting_bytes = 0

    def begin(self, method: Callable[..., Any], items: list[tuple[int, Any]]) -> None:
        self.left.extend(items)
        with self._alive():
            self.results.send((method, items))

    def receive(self) -> Work | None:
        """Take a result; returns a file that is finished with it."""
        with self._alive():
            number, done, content = self.results.recv()
        self.waiting.append((number, done, content))
        self.waiting_bytes += len(content)
        return self.left.popleft()[1] if done else None

    def call(self, method: Callable[..., _Result], arguments: tuple[Any, ...]) -> _Result:
        with self._alive():
            self.results.send((method, arguments))
            result, failed = self.results.recv()
        if failed is not None:
            raise failed
        return cast("_Result", result)

    @contextmanager
    def _alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError) as error:
            self.process.join()
            code = self.process.exitcode or 0
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            place = f"{self.left[0][1].place}: " if self.left else ""
            raise DataError(f"{place}the process that worked on it ended {how}") from error


def _serve(make: Callable[[], Any], folder: str, results: Connection) -> None:
    """Do what the main process asks for until it closes the connection, or is gone."""
    tempfile.tempdir = folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    # At once: an error that a handler raises is lost in a callback, and comes late before a sleep.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    worker = make()
    # What is there stays, and little of what comes refers to itself: garbage is looked for less.
    gc.freeze()
    gc.set_threshold(10_000)
    with suppress(EOFError, OSError):
        while True:
            method, items = results.recv()
            if isinstance(items, tuple):
                results.send_bytes(_outcome(partial(method, worker, *items)))
                continue
            for number, item in items:
                failed: Exception | None = None
                try:
                    for result in method(worker, item):
                        results.send((number, False, pickle.dumps(result)))
                except Exception as error:
                    failed = _portable(error)
                results.send((number, True, pickle.dumps(failed)))


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
