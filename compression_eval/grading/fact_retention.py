"""The scorer that follows each expected fact by look-ups: free, exact, and blind to paraphrase."""

import math
from typing import Any

from inspect_ai.scorer import Metric, Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from compression_eval.grading.facts import FactFinding, follow_facts
from compression_eval.grading.markdown import escaped, table, yes_no
from compression_eval.grading.rubric import load_rubric
from compression_eval.grading.sample import CLUSTER, Sample, nothing_recorded, read_sample
from compression_eval.grading.values import violations, wrong_values

KEYS = ("fact_recall", "fact_survival", "fact_violations")
"""Keys of the score, on every sample that has one."""


def fact_retention_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key: the mean, and its error clustered by fixture."""
    return {key: [mean(), stderr(cluster=CLUSTER)] for key in KEYS}


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
        findings = follow_facts(sample.probe, sample.facts, sample.answer_text)
        wrong = _violations(sample)
        explanation = _explanation(findings, wrong)
        metadata = _metadata(findings, wrong)
        failure = sample.compression_failure
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


def _explanation(findings: list[FactFinding], wrong: list[str] | None) -> str:
    heads = ["Fact", "In history", "Fed to summariser", "In state", "In answer", "Stage"]
    rows = []
    for finding in findings:
        record = finding.record
        regions = ", ".join(record.regions) if record else ""
        in_state = yes_no(finding.in_state)
        rows.append(
            [
                finding.fact.fact,
                yes_no(record.in_history if record else None),
                yes_no(record.fed if record else None),
                f"{in_state} ({regions})" if regions else in_state,
                yes_no(finding.in_answer),
                finding.stage,
            ]
        )
    text = table(heads, rows)
    if wrong:
        values = ", ".join(escaped(value, 80) for value in wrong)
        text += f"\n\nGiven as current, but superseded or forbidden: {values}."
    return text


def _metadata(findings: list[FactFinding], wrong: list[str] | None) -> dict[str, Any]:
    return {
        "facts": [
            {
                "fact": finding.fact.fact,
                "in_history": finding.record.in_history if finding.record else None,
                "fed": finding.record.fed if finding.record else None,
                "in_state": finding.in_state,
                "regions": list(finding.record.regions) if finding.record else [],
                "cycles": finding.record.cycles if finding.record else None,
                "in_answer": finding.in_answer,
                "stage": finding.stage,
            }
            for finding in findings
        ],
        "violations": wrong,
    }
