"""The progress of a sweep on stderr: bars in a terminal, elsewhere occasional lines."""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from threading import Lock

import click
from inspect_ai.hooks import Hooks, SampleEnd, SampleStart, TaskEnd, TaskStart, hooks
from inspect_ai.log import read_eval_log_sample_summaries_async
from rich.progress import TaskID

from compression_eval.errors import one_line
from compression_eval.grading.failures import run_failures
from compression_eval.sweeping.arms import TaskKey, task_key
from compression_eval.terminal import Display, duration

STILL = 0.2
"""Minimum share of its usual length that a running sample is assumed to need still."""

MIN_FINISHED = 3
"""Samples that must be done before a time is shown."""

MAX_LABEL = 40
"""Maximum characters of an arm beside a bar, so that the line fits a terminal of 80."""


class Pace:
    """The remaining time, from the finished and running samples of each arm.

    An arm's samples are assumed to take as long as its finished ones, or without any, as the mean
    of all. The parallelism follows from the work so far, running samples included: when the first
    of ten is done, the others are nearly done as well.
    """

    def __init__(self, left: Mapping[TaskKey, int]) -> None:
        self._left = Counter(left)
        self._begun: float | None = None
        self.running: dict[str, tuple[TaskKey, float]] = {}
        """Task and start of every running sample."""
        self._finished: Counter[TaskKey] = Counter()
        self._seconds: defaultdict[TaskKey, float] = defaultdict(float)

    @property
    def seen_all(self) -> bool:
        """Whether every arm with work has a finished sample; slow ones may not yet."""
        return all(self._finished[task] for task, number in self._left.items() if number > 0)

    def start(self, task: TaskKey, sample: str, now: float) -> None:
        """Record the start of a sample; `now` is in seconds."""
        self._begun = now if self._begun is None else self._begun
        self.running[sample] = task, now

    def end(self, sample: str, now: float, *, done: bool) -> None:
        """Record the end of a sample; one that is not done will be retried."""
        task, begun = self.running.pop(sample, (None, now))
        if done and task is not None:
            self._left[task] -= 1
            self._finished[task] += 1
            self._seconds[task] += now - begun

    def seconds_left(self, now: float) -> float | None:
        """Return the approximate seconds left; None while too little is known."""
        finished = self._finished.total()
        if self._begun is None or finished < MIN_FINISHED or now <= self._begun:
            return None
        elapsed = [(task, now - begun) for task, begun in self.running.values()]
        each = self._lengths(elapsed)
        ahead = [max(each[task] - took, each[task] * STILL) for task, took in elapsed]
        waiting = Counter(self._left)
        waiting.subtract(task for task, _ in elapsed)
        to_do = sum(ahead) + sum(max(number, 0) * each[task] for task, number in waiting.items())
        spent = sum(self._seconds.values()) + sum(took for _, took in elapsed)
        # The slowest one has to finish, whatever runs beside it.
        return max([to_do * (now - self._begun) / spent, *ahead]) if spent else None

    def _lengths(self, elapsed: list[tuple[TaskKey, float]]) -> dict[TaskKey, float]:
        """Return the usual seconds of a sample, by task."""
        usual = sum(self._seconds.values()) / self._finished.total()
        lengths = {}
        for task in self._left:
            # Add one sample of the usual length to the arm's own: a single one says little.
            known = self._finished[task] + 1
            mean = (self._seconds[task] + usual) / known
            # A running sample longer than the finished ones counts with its present length.
            longer = [took for at, took in elapsed if at == task and took > mean]
            lengths[task] = (mean * known + sum(longer)) / (known + len(longer))
        return lengths


class _Sweep(logging.Handler):
    """The running sweep; shows our warnings too, which Inspect hides."""

    def __init__(
        self,
        names: Mapping[TaskKey, str],
        sizes: Mapping[TaskKey, int],
        done: Mapping[TaskKey, int],
    ) -> None:
        super().__init__(logging.WARNING)
        self.names, self.sizes, self.done = names, sizes, Counter(done)
        self.pace = Pace({task: size - self.done[task] for task, size in sizes.items()})
        self.guard = Lock()
        self.tasks: dict[str, TaskKey] = {}
        """By the id of the evaluation."""
        self.display = Display(
            "sweep", sum(sizes.values()), self.time_left, self.line, self.done.total()
        )
        self.rows: dict[TaskKey, TaskID] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning."""
        self.display.say(record.getMessage())

    def time_left(self) -> str:
        with self.guard:
            seconds = self.pace.seconds_left(time.monotonic())
            if self.done.total() >= sum(self.sizes.values()):
                return ""
            running, about = len(self.pace.running), "about" if self.pace.seen_all else "at least"
        return f"{running} under way" if seconds is None else f"{about} {duration(seconds)} left"

    def line(self) -> str:
        total, left = sum(self.sizes.values()), self.time_left()
        return f"{self.done.total():,} of {total:,} samples{left and f', {left}'}"


_under_way: list[_Sweep] = []
"""The running sweep of this process; None without one."""


class _ProgressHooks(Hooks):
    """Reports starts and ends to the running sweep."""

    def enabled(self) -> bool:
        """Return whether a sweep is running."""
        return bool(_under_way)

    async def on_task_start(self, data: TaskStart) -> None:
        """Record the arm and model of an evaluation."""
        for sweep in _under_way:
            task = sweep.tasks[data.eval_id] = task_key(data.spec)
            if sweep.display.bars is not None and task not in sweep.rows:
                label = one_line(sweep.names.get(task, ""), MAX_LABEL)
                sweep.rows[task] = sweep.display.bars.add_task(
                    label, total=sweep.sizes.get(task), completed=sweep.done[task]
                )

    async def on_sample_start(self, data: SampleStart) -> None:
        """Record the start of a sample."""
        for sweep in _under_way:
            if task := sweep.tasks.get(data.eval_id):
                with sweep.guard:
                    sweep.pace.start(task, data.sample_id, time.monotonic())

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Count a finished sample; one with an error is retried."""
        for sweep in _under_way:
            if task := sweep.tasks.get(data.eval_id):
                done = data.sample.error is None
                with sweep.guard:
                    sweep.pace.end(data.sample_id, time.monotonic(), done=done)
                    sweep.done[task] += done
                if sweep.display.bars is not None and done:
                    sweep.display.bars.advance(sweep.rows[task])
                    sweep.display.bars.advance(sweep.display.whole)

    async def on_task_end(self, data: TaskEnd) -> None:
        """Report that an arm is done, or why an attempt failed."""
        for sweep in _under_way:
            task = sweep.tasks.pop(data.eval_id, None)
            if task is None:
                continue
            word, detail = "done", f"{sweep.done[task]} samples"
            if data.log.status != "success":
                summaries = await read_eval_log_sample_summaries_async(data.log.location)
                failures = run_failures(summaries)
                failed = (
                    failures.errors.line()
                    if failures and failures.errors.count
                    else data.log.status
                )
                word, detail = "not done", failed
            sweep.display.say(f"{word}: {sweep.names.get(task, data.log.eval.task)}, {detail}")
            if sweep.display.bars is not None and (row := sweep.rows.pop(task, None)) is not None:
                sweep.display.bars.remove_task(row)


@cache
def _register() -> None:
    hooks("compression_eval_sweep", "Shows how far a sweep has come.")(_ProgressHooks)


@contextmanager
def progress(
    names: Mapping[TaskKey, str], sizes: Mapping[TaskKey, int], done: Mapping[TaskKey, int]
) -> Iterator[None]:
    """Show the progress of a sweep while it runs."""
    _register()
    sweep = _Sweep(names, sizes, done)
    _under_way.append(sweep)
    ours = logging.getLogger("compression_eval")
    ours.addHandler(sweep)
    try:
        with sweep.display as display:
            if display.bars is None:
                click.echo(sweep.line(), err=True)
            yield
    finally:
        ours.removeHandler(sweep)
        _under_way.remove(sweep)
