"""Front door: ``inspect eval tasks/grader_calibration.py``; see docs/grading.md."""

from typing import Any, Literal

from inspect_ai import Task, task

from compression_eval.calibration.task import calibration_task_from


@task
def grader_calibration(
    answers: str | list[str] | None = None,
    variants: bool = False,
    grader_context: Literal["state", "none"] = "state",
    language: Literal["en", "zh", "ja"] | None = None,
    **unknown: Any,
) -> Task:
    """Measure how well a grader agrees with a careful reader, and which traps it falls for.

    The arguments are those of `compression_eval.calibration.task.grader_calibration`, which
    describes them.
    """
    return calibration_task_from(locals())
