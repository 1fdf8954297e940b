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

    Args:
        fixtures: Names of shipped fixtures, paths, globs, Parquet files, addresses (``s3://…``,
            ``hf:ORG/NAME``), ``core`` or ``all``; a list or one of them. The four default ones if
            not given.
        probes: A probe bank (or a folder of banks) that lies elsewhere than beside the fixture.
        probe_types: Only these types: recall, artifact, continuation, decision.
        shard: ``I/N`` takes every Nth fixture by name, from the Ith on.
        cut: Where history ends: ``auto`` is the cut that each probe names, the end if it names
            none; ``recorded`` every place where the recorded agent compacted; or a number of
            messages, a share of the conversation (0 to 1), or ``end``; a list evaluates each.
        compressor: Name of the strategy: anchored, regenerative, summary, edit, trim, or a
            control: full, none, tail.
        compressor_args: Its arguments, budgets among them.
        prompt: A file whose text replaces the instructions of a summarising strategy.
        focus_topic: A topic that a summarising strategy gives the most room.
        cycles: How many compressions the conversation goes through, one after another.
        answers: How many answers are taken from each state.
        min_removed: Share of the tokens (0 to 1, the system prompt not counted) that each
            compression must remove; one that removes less has failed.
        max_failed: Share of the samples (0 to 1) that may stay without a grade, because a
            compression, an answer or a grading failed; more make the run an error, and so does
            a run without a single grade.
        criteria: ``by_type`` grades the criteria that fit a probe's type, ``all`` every one.
        grader_context: ``state`` shows the grader the compressed state, ``none`` does not.
        state_facts: ``reader`` has the grader say which facts each state holds, in one call per
            state beside the look-ups; ``match`` looks up only. If not given, ``reader`` where the
            grader is a language model.
        language: Language of the rubric: en, zh or ja; that of each fixture if not given.
        refetch: Whether the model then answers once more with tools that look at the history and
            its files before the cut; or the limits, as ``{calls: 8, tokens: 20000}``.
        unknown: Refused, so that a misspelt argument is not silently ignored.

    Returns:
        The task.
    """
    return task_from(locals())
