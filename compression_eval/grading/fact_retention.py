"""The scorer that follows each expected fact by look-ups: free, exact, and blind to paraphrase."""

import math
from typing import Any

import anyio
from inspect_ai.scorer import Metric, Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from compression_eval.grading.fact_explanation import explain
from compression_eval.grading.facts import FactFinding, follow_facts
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.sample import CLUSTER, Sample, nothing_recorded, read_sample
from compression_eval.grading.values import violations, wrong_values
from compression_eval.grading.verdicts import by_verdict

KEYS = ("fact_recall", "fact_survival", "fact_violations")
"""Keys of the score, on every sample that has one."""


def fact_retention_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key: mean, its error by fixture, and means by verdict."""
    return {
        # Most banks name few wrong values, and means over no probe at all would stand there as NaN.
        key: [
            mean(),
            stderr(cluster=CLUSTER),
            *([] if key == "fact_violations" else [by_verdict()]),
        ]
        for key in KEYS
    }


@scorer(metrics=fact_retention_metrics())
def fact_retention() -> Scorer:
    """Look the expected facts up in the state and in the answer.

    ``fact_recall`` is the share of the probe's facts that the answer holds, ``fact_survival`` the
    share that the state holds (both 0 to 1), ``fact_violations`` the number of superseded or
    forbidden values that the answer gives as current. What cannot be known is NaN: recall and
    violations without an answer, survival in a state that cannot be read, violations where the
    probe names no such value. A failed compression leaves the sample unscored.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
        failure = sample.compression_failure
        findings = follow_facts(
            sample.probe,
            sample.facts,
            sample.answer_text,
            sample.record.language,
            failed=failure is not None,
        )
        # An answer may be as long as a looping model makes it.
        wrong = await anyio.to_thread.run_sync(_violations, sample)
        explanation = explain(findings, wrong, sample.record.cut)
        metadata = _metadata(findings, wrong, sample.record.cut)
        if failure:
            return Score.unscored(reason=failure, explanation=explanation, metadata=metadata)
        return Score(
            value={
                "fact_recall": _share([finding.in_answer for finding in findings]),
                "fact_survival": _share([finding.in_state for finding in findings]),
                "fact_violations": math.nan if wrong is None else float(len(wrong)),
            },
            answer=sample.answer_text,
            explanation=explanation,
            reason=sample.answer_failure,
            metadata=metadata,
        )

    return score


def _violations(sample: Sample) -> list[str] | None:
    """Return the wrong values that the answer gives as current; None if there can be none."""
    if sample.answer_text is None or not wrong_values(sample.probe):
        return None
    markers = load_rubric(sample.record.language).text.values
    return violations(sample.probe, sample.answer_text, markers)


def _share(known: list[bool | None]) -> float:
    """Return the share of ``True``; NaN if anything is not known, because it would be a guess."""
    if not known or any(item is None for item in known):
        return math.nan
    return round(sum(bool(item) for item in known) / len(known), 3)


def _metadata(findings: list[FactFinding], wrong: list[str] | None, cut: int) -> dict[str, Any]:
    return {"facts": [_row(finding, cut) for finding in findings], "violations": wrong}


def _row(finding: FactFinding, cut: int) -> dict[str, Any]:
    record, age = finding.record, finding.age(cut)
    return {
        "fact": finding.fact.fact,
        "in_history": record.in_history if record else None,
        "fed": record.fed if record else None,
        "in_state": finding.in_state,
        "regions": list(record.regions) if record else [],
        "cycles": record.cycles if record else None,
        "age_messages": age.messages if age else None,
        "age_share": round(age.share, 3) if age else None,
        "instead": finding.instead,
        "in_answer": finding.in_answer,
        "stage": finding.stage,
    }
