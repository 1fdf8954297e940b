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

    Args:
        fixtures: As for the task ``compression``; those without continuation tasks are passed over.
        continuations: A file of tasks, or a folder with ``NAME.yaml``; by default
            ``../continuations/`` beside the fixture's folder.
        shard: As for the task ``compression``, and so the following down to ``max_failed``.
        compressor: Name of the strategy.
        compressor_args: Its arguments, budgets among them.
        prompt: A file whose text replaces the instructions of a summarising strategy.
        focus_topic: A topic that a summarising strategy gives the most room.
        cycles: How many compressions the conversation goes through before the work goes on.
        min_removed: Share of the tokens that each compression must remove.
        max_failed: Share of the samples that may stay without a score.
        sandbox: ``docker``, or ``local`` for a folder on this machine under bubblewrap.
        unsafe: Whether ``local`` runs the agent's commands as you, without bubblewrap; nothing
            stops them then.
        in_run: Whether the agent compresses by the same strategy on the way: true for at 90 % of
            its window, or a share (below 1.0) or number of tokens.
        unknown: Refused, so that a misspelt argument is not silently ignored.

    Returns:
        The task.
    """
    return resumption_task_from(locals())
