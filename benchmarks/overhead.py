"""What this eval costs next to a bare Inspect task, in seconds and in those of the processor.

    python -m benchmarks.overhead            # instant model: ratio to a bare task
    python -m benchmarks.overhead --latency  # three latencies, against the calls alone; 5 minutes

The bare task has the same number of samples, epochs and calls: one `generate()` and one
`model_graded_qa()` each. It is run twice, once with a short question as input and once with the
same compressed conversation that this eval puts its probes to.
"""

import argparse
import statistics
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import NamedTuple

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate

from benchmarks.models import CALLS
from compression_eval.arguments import TaskArguments
from compression_eval.record import ProbeRecord
from compression_eval.task import compression_task

EPOCHS = 3
ROUNDS = 3
CONNECTIONS = 10
LATENCIES = ((0.1, 2.0), (0.5, 8.0), (3.0, 20.0))
"""Seconds that a compression takes (the second of each), and any other call."""


class Taken(NamedTuple):
    """What a run took, in seconds."""

    wall: float
    cpu: float


def run(
    task: Task, model: str, folder: str, max_samples: int | None = None
) -> tuple[Taken, EvalLog]:
    """Return what a run took, and its log."""
    started, worked = time.perf_counter(), time.process_time()
    (log,) = eval(
        task,
        model=model,
        log_dir=folder,
        display="none",
        max_connections=CONNECTIONS,
        max_samples=max_samples,
        model_roles={"grader": model, "compressor": model},
    )
    if log.status != "success":
        raise SystemExit(f"the run ended with status {log.status}: {log.error}")
    return Taken(time.perf_counter() - started, time.process_time() - worked), log


def ours() -> Task:
    """The eval with its default arguments."""
    return compression_task(TaskArguments())


def bare(samples: list[Sample]) -> Task:
    """A task that generates and is graded once."""
    return Task(
        dataset=MemoryDataset(samples),
        solver=generate(),
        scorer=model_graded_qa(),
        epochs=EPOCHS,
    )


def same_context(log: EvalLog) -> list[Sample]:
    """The compressed conversations and questions of a run, as plain samples."""
    result = []
    for sample in log.samples or []:
        if sample.epoch == 1:
            result.append(
                Sample(id=sample.id, input=sample.messages[:-1], target=str(sample.target))
            )
    return result


def overhead() -> None:
    """Print the ratios on an instant model, rounds taken in turn."""
    with tempfile.TemporaryDirectory() as folder:
        _, log = run(ours(), "bench/0-0", folder)
        context = same_context(log)
        short = [Sample(id=s.id, input="What was the code?", target="42") for s in context]
        times: dict[str, list[Taken]] = {"ours": [], "same context": [], "short input": []}
        for _ in range(ROUNDS):
            times["ours"].append(run(ours(), "bench/0-0", folder)[0])
            calls = len(CALLS)
            times["same context"].append(run(bare(context), "bench/0-0", folder)[0])
            CALLS[:calls] = []
            times["short input"].append(run(bare(short), "bench/0-0", folder)[0])
        medians = {
            name: Taken(*map(statistics.median, zip(*values, strict=True)))
            for name, values in times.items()
        }
        ours_took = medians["ours"]
        for name, (wall, cpu) in medians.items():
            print(
                f"{name:13} {wall:6.2f} s  ours / it {ours_took.wall / wall:5.2f}   "
                f"CPU {cpu:6.2f} s  ours / it {ours_took.cpu / cpu:5.2f}"
            )


def latency() -> None:
    """Print the wall time against the critical path with latencies."""
    with tempfile.TemporaryDirectory() as folder:
        base, _ = run(ours(), "bench/0-0", folder)
        for (call, compression), max_samples in product(LATENCIES, (None, 200)):
            model = f"bench/{call * 1000:.0f}-{compression * 1000:.0f}"
            before = len(CALLS)
            took, log = run(ours(), model, folder, max_samples)
            records = [each.store_as(ProbeRecord).sample for each in log.samples or []]
            states = {record.state.state_id for record in records if record}
            others = len(CALLS) - before - len(states)  # the default strategy calls once
            path = (len(states) * compression + others * call) / CONNECTIONS
            print(
                f"{call} s a call, {compression} s a compression, "
                f"--max-samples {max_samples or 'default'}: {took.wall:.2f} s; "
                f"{len(states)} compressions and {others} other calls alone, over {CONNECTIONS} "
                f"connections, {path:.2f} s ({took.wall / path:.2f}); "
                f"the same run on an instant model {base.wall:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", action="store_true")
    Path("logs").mkdir(exist_ok=True)
    latency() if parser.parse_args().latency else overhead()
