"""Front door: ``inspect eval tasks/compression.py``; see the README for its arguments."""

from typing import Any

from inspect_ai import Task, task

from compression_eval.task import task_from


@task
def compression(**arguments: Any) -> Task:
    """Measure what a coding agent still knows after its context was compressed."""
    return task_from(arguments)
