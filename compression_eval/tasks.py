"""The tasks that Inspect knows by name."""

from typing import Any, Literal

from inspect_ai import Task, task

from compression_eval.calibration.task import calibration_task_from
from compression_eval.compressors.validity import DEFAULT_MIN_REMOVED
from compression_eval.fixtures.models import Language
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
    min_removed: float = DEFAULT_MIN_REMOVED,
    max_failed: float = 1.0,
    criteria: Literal["by_type", "all"] = "by_type",
    grader_context: Literal["state", "none"] = "state",
    state_facts: Literal["reader", "match"] | None = None,
    language: Language | None = None,
    anchors: int = 0,
    **unknown: Any,
) -> Task:
    """Measure what a coding agent still knows after its context was compressed.

    Args:
        fixtures: Names of shipped fixtures, paths, globs, Parquet files, addresses (``s3://…``,
            ``hf:ORG/NAME``), or ``all``; a list or one of them. The four default ones if not
            given.
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
        criteria: ``by_type`` grades the criteria that fit a probe's type, ``all`` all 14.
        grader_context: ``state`` shows the grader the compressed state, ``none`` does not.
        state_facts: ``reader`` has the grader say which facts each state holds, in one call per
            state beside the look-ups; ``match`` looks up only. If not given, ``reader`` where the
            grader is a language model.
        language: Language of the rubric: en, zh or ja; that of each fixture if not given.
        anchors: How many answers of known worth are graded too, so that a change of the grader
            can be told from one of the arm; at most one for each sample of an epoch.
        unknown: Refused, so that a misspelt argument is not silently ignored.

    Returns:
        The task.
    """
    given: dict[str, Any] = {
        "probes": probes,
        "probe_types": probe_types,
        "shard": shard,
        "cut": cut,
        "compressor": compressor,
        "compressor_args": compressor_args,
        "prompt": prompt,
        "focus_topic": focus_topic,
        "cycles": cycles,
        "answers": answers,
        "min_removed": min_removed,
        "max_failed": max_failed,
        "criteria": criteria,
        "grader_context": grader_context,
        "state_facts": state_facts,
        "language": language,
        "anchors": anchors,
    }
    if fixtures is not None:
        given["fixtures"] = fixtures
    return task_from({**given, **unknown})


@task
def grader_calibration(
    answers: str | list[str] | None = None,
    variants: bool = False,
    grader_context: Literal["state", "none"] = "state",
    language: Language | None = None,
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
    return calibration_task_from(
        {
            "answers": answers,
            "variants": variants,
            "grader_context": grader_context,
            "language": language,
            **unknown,
        }
    )
