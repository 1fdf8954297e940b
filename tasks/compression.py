"""Front door: ``inspect eval tasks/compression.py``."""

from typing import Any, Literal

from inspect_ai import Task, task

from compression_eval.task import task_from


@task
def compression(
    fixtures: str | list[str] | None = None,
    probes: str | None = None,
    probe_types: str | list[str] | None = None,
    shard: str | None = None,
    cut: int | float | str | list[int | float | str] = "auto",
    compressor: str = "anchored",
    compressor_args: dict[str, Any] | None = None,
    prompt: str | None = None,
    focus_topic: str | None = None,
    cycles: int = 1,
    answers: int = 1,
    min_removed: float = 0.1,
    max_failed: float = 1.0,
    criteria: Literal["by_type", "all"] = "by_type",
    grader_context: Literal["state", "none"] = "state",
    state_facts: Literal["reader", "match"] | None = None,
    language: Literal["en", "zh", "ja"] | None = None,
    refetch: bool | dict[str, int] = False,
    **unknown: Any,
) -> Task:
    """Measure what a coding agent still knows after its context was compressed.

    The arguments are the fields of `compression_eval.arguments.ArgumentFields`, which describes
    each of them.
    Others are refused, so that a misspelt one is not silently ignored.
    """
    return task_from(locals())
