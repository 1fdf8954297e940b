"""Front door: ``inspect eval tasks/grader_calibration.py``; see docs/grading.md."""

from typing import Any

from inspect_ai import Task, task

from compression_eval.calibration.task import calibration_task_from


@task
def grader_calibration(**arguments: Any) -> Task:
    """Measure how well a grader agrees with a careful reader."""
    return calibration_task_from(arguments)
