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

    Args:
        answers: Names of shipped sets of graded answers (each is named after its fixture) or
            paths of files; all shipped ones if not given.
        variants: Grade every answer again with the criteria in another order, padded, with a
            method named in it, and by the rubric of another language: no score should move.
        grader_context: ``state`` shows the grader the summary of the set, ``none`` does not.
        language: Language of the rubric: en, zh or ja; that of each fixture if not given.
        unknown: Refused, so that a misspelt argument is not silently ignored.

    Returns:
        The task.
    """
    return calibration_task_from(locals())
