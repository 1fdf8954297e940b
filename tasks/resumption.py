"""Front door: ``inspect eval tasks/resumption.py``; see docs/resumption.md."""

from typing import Any, Literal

from inspect_ai import Task, task

from compression_eval.resumption.task import resumption_task_from


@task
def resumption(
    fixtures: str | list[str] | None = None,
    continuations: str | None = None,
    shard: str | None = None,
    compressor: str = "anchored",
    compressor_args: dict[str, Any] | None = None,
    prompt: str | None = None,
    focus_topic: str | None = None,
    cycles: int = 1,
    min_removed: float = 0.1,
    max_failed: float = 1.0,
    sandbox: Literal["docker", "local"] = "docker",
    unsafe: bool = False,
    in_run: bool | float = False,
    **unknown: Any,
) -> Task:
    """Measure whether, and at what cost, an agent finishes the work from a compressed state.

    The arguments are those of `compression_eval.resumption.task.resumption`, which describes them.
    """
    return resumption_task_from(locals())
