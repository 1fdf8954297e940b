"""How far a sweep has come, on stderr: bars in a terminal, elsewhere a line now and then."""

import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Lock, Thread

import click
from inspect_ai.hooks import Hooks, SampleEnd, SampleStart, TaskEnd, TaskStart, hooks
from inspect_ai.log import read_eval_log_sample_summaries_async
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from compression_eval.errors import one_line
from compression_eval.grading.failures import run_failures
from compression_eval.sweeping.arms import TaskKey, task_key

STILL = 0.2
"""Share of its usual length that a sample is taken to need at least until it ends."""

MIN_FINISHED = 3
"""Samples that must have come back before a time is named."""

LINE_SECONDS = (15, 30, 60, 120, 300)
"""Seconds between lines where there is no terminal; the last one is repeated."""

MAX_LABEL = 40
"""Characters of an arm beside a bar, so that the line stays whole in a terminal of 80."""


class Pace:
    """The time that is left, from the samples of each arm that are done or under way.

    An arm's samples are taken to be as long as those it has had; one that has had none, as long as
    the mean of all. How much is done at the same time shows in what was done so far, and samples
    under way count for it: when the first of ten comes back, the others are nearly done as well.
    """

    def __init__(self, left: Mapping[TaskKey, int]) -> None:
        self._left = Counter(left)
        self._begun: float | None = None
        self.running: dict[str, tuple[TaskKey, float]] = {}
        """Task and start of every sample under way."""
        self._finished: Counter[TaskKey] = Counter()
        self._seconds: defaultdict[TaskKey, float] = defaultdict(float)

    @property
    def seen_all(self) -> bool:
        """Whether every arm with something to do has had a sample; slow ones may not have yet."""
        return all(self._finished[task] for task, number in self._left.items() if number > 0)

    def start(self, task: TaskKey, sample: str, now: float) -> None:
        """Take note of a sample that begins; `now` is in seconds."""
        self._begun = now if self._begun is None else self._begun
        self.running[sample] = task, now

    def end(self, sample: str, now: float, *, done: bool) -> None:
        """Take note of a sample that ends; one that is not done will be tried again."""
        task, begun = self.running.pop(sample, (None, now))
        if done and task is not None:
            self._left[task] -= 1
            self._finished[task] += 1
            self._seconds[task] += now - begun

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds that are left, about; None while too little is known."""
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
        # Whatever is done beside it, the slowest one has to come back.
        return max([to_do * (now - self._begun) / spent, *ahead]) if spent else None

    def _lengths(self, elapsed: list[tuple[TaskKey, float]]) -> dict[TaskKey, float]:
        """Return the usual seconds of a sample, by task."""
        usual = sum(self._seconds.values()) / self._finished.total()
        lengths = {}
        for task in self._left:
            # One sample of the usual length beside an arm's own: a single one says little.
            known = self._finished[task] + 1
            mean = (self._seconds[task] + usual) / known
            # What takes longer than those that came back is of the length that it has by now.
            longer = [took for at, took in elapsed if at == task and took > mean]
            lengths[task] = (mean * known + sum(longer)) / (known + len(longer))
        return lengths


def duration(seconds: float) -> str:
    """Return a time in words, as exact as an estimate is."""
    if seconds < 90:
        return f"{max(round(seconds, -1), 10):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class _Sweep(logging.Handler):
    """The sweep that is under way; shows our warnings too, which Inspect keeps to itself."""

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
        self.bars: Progress | None = None
        self.rows: dict[TaskKey, TaskID] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning."""
        self.say(record.getMessage())

    def say(self, text: str) -> None:
        if self.bars is None:
            click.echo(text, err=True)
        else:
            self.bars.console.print(Text(text))

    def time_left(self) -> str:
        with self.guard:
            seconds = self.pace.seconds_left(time.monotonic())
            running, about = len(self.pace.running), "about" if self.pace.seen_all else "at least"
        return f"{running} under way" if seconds is None else f"{about} {duration(seconds)} left"

    def line(self) -> str:
        total = sum(self.sizes.values())
        return f"{self.done.total():,} of {total:,} samples, {self.time_left()}"


_WHOLE: TaskKey = ("", "")
"""Stands for all tasks among the rows of the bars."""

_under_way: list[_Sweep] = []
"""The one sweep of this process; none at other times."""


@hooks(name="compression_eval_sweep", description="Shows how far a sweep has come.")
class _ProgressHooks(Hooks):
    """Tells the sweep under way what begins and ends."""

    def enabled(self) -> bool:
        """Be silent in every run that is no sweep."""
        return bool(_under_way)

    async def on_task_start(self, data: TaskStart) -> None:
        """Take note of which arm and model an evaluation is of."""
        for sweep in _under_way:
            task = sweep.tasks[data.eval_id] = task_key(data.spec)
            if sweep.bars is not None and task not in sweep.rows:
                label = one_line(sweep.names.get(task, ""), MAX_LABEL)
                sweep.rows[task] = sweep.bars.add_task(
                    label, total=sweep.sizes.get(task), completed=sweep.done[task]
                )

    async def on_sample_start(self, data: SampleStart) -> None:
        """Take the time of a sample."""
        for sweep in _under_way:
            if task := sweep.tasks.get(data.eval_id):
                with sweep.guard:
                    sweep.pace.start(task, data.sample_id, time.monotonic())

    async def on_sample_end(self, data: SampleEnd) -> None:
        """Count a sample that went through; one with an error is tried again."""
        for sweep in _under_way:
            if task := sweep.tasks.get(data.eval_id):
                done = data.sample.error is None
                with sweep.guard:
                    sweep.pace.end(data.sample_id, time.monotonic(), done=done)
                    sweep.done[task] += done
                if sweep.bars is not None and done:
                    sweep.bars.advance(sweep.rows[task])
                    sweep.bars.advance(sweep.rows[_WHOLE])

    async def on_task_end(self, data: TaskEnd) -> None:
        """Say that an arm is done, or what kept an attempt from it."""
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
            sweep.say(f"{word}: {sweep.names.get(task, data.log.eval.task)}, {detail}")
            if sweep.bars is not None and (row := sweep.rows.pop(task, None)) is not None:
                sweep.bars.remove_task(row)


@contextmanager
def progress(
    names: Mapping[TaskKey, str], sizes: Mapping[TaskKey, int], done: Mapping[TaskKey, int]
) -> Iterator[None]:
    """Show how far a sweep has come while it is under way."""
    sweep = _Sweep(names, sizes, done)
    _under_way.append(sweep)
    ours = logging.getLogger("compression_eval")
    ours.addHandler(sweep)
    console = Console(file=sys.stderr)
    terminal = sys.stderr.isatty() and not console.is_dumb_terminal
    try:
        with _bars(sweep, console) if terminal else _lines(sweep):
            yield
    finally:
        ours.removeHandler(sweep)
        _under_way.remove(sweep)


class _LeftColumn(TextColumn):
    """The time left, beside the bar of the whole."""

    sweep: _Sweep

    def render(self, task: object) -> Text:
        """Return it; nothing for a single arm."""
        whole = getattr(task, "id", None) == self.sweep.rows.get(_WHOLE)
        return Text(self.sweep.time_left() if whole else "")


@contextmanager
def _bars(sweep: _Sweep, console: Console) -> Iterator[None]:
    label = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    left = _LeftColumn("", table_column=Column(no_wrap=True))
    left.sweep = sweep
    with Progress(
        TextColumn("{task.description}", table_column=label),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        left,
        console=console,
        expand=True,
        transient=True,
    ) as bars:
        sweep.bars = bars
        total = sum(sweep.sizes.values())
        sweep.rows[_WHOLE] = bars.add_task("sweep", total=total, completed=sweep.done.total())
        yield


@contextmanager
def _lines(sweep: _Sweep) -> Iterator[None]:
    click.echo(sweep.line(), err=True)
    ended = Event()

    def say() -> None:
        number = 0
        while not ended.wait(LINE_SECONDS[min(number, len(LINE_SECONDS) - 1)]):
            click.echo(sweep.line(), err=True)
            number += 1

    thread = Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
