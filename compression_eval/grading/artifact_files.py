"""The scorer that compares the files an answer names with those that the tool calls touched."""

import math
from typing import Any

from inspect_ai.scorer import Metric, Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from compression_eval.grading.file_findings import FileFindings, file_findings, key_of
from compression_eval.grading.markdown import escaped, table
from compression_eval.grading.metrics import over_conversations
from compression_eval.grading.scored_sample import ScoredSample, nothing_recorded, read_sample

KEYS = ("artifact_precision", "artifact_recall")
"""Keys of the score, on every sample that has one."""

_MOST_SHOWN = 40


def artifact_files_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key: the mean over conversations, and its error."""
    return {key: [over_conversations()] for key in KEYS}


@scorer(metrics=artifact_files_metrics())
def artifact_files() -> Scorer:
    """Compare the files that an artifact answer names with the probe's answer key.

    ``artifact_recall`` is the share of the key's files (created, modified, read) that the answer
    names, ``artifact_precision`` the share of the files it names that are in the key (both 0 to
    1). Both are NaN for probes of other types and for keys without files; precision also where
    the answer names no file, and both without an answer. Names that stand nowhere in the history
    are listed as made up and count against precision. Calls no model.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
        if failure := sample.compression_failure:
            return Score.unscored(reason=failure)
        if sample.probe.type != "artifact" or not key_of(sample.probe):
            return _not_measured("no artifact probe with files in its answer key")
        if sample.answer_text is None:
            return _not_measured(sample.answer_failure or "no answer")
        return _scored(sample, sample.answer_text)

    return score


def _not_measured(reason: str) -> Score:
    return Score(value=dict.fromkeys(KEYS, math.nan), reason=reason, explanation=escaped(reason))


def _scored(sample: ScoredSample, answer: str) -> Score:
    findings = file_findings(sample.probe, answer, sample.record.files)
    return Score(
        value={
            "artifact_precision": _rounded(findings.precision),
            "artifact_recall": _rounded(findings.recall),
        },
        answer=answer,
        explanation=_explanation(findings),
        metadata=_metadata(findings),
    )


def _rounded(value: float) -> float:
    return value if math.isnan(value) else round(value, 3)


def _explanation(findings: FileFindings) -> str:
    rows = [
        [
            kind,
            str(len(found.named) + len(found.missed)),
            _listed(found.named),
            _listed(found.missed),
        ]
        for kind, found in findings.kinds.items()
    ]
    lines = [table(["Files", "In the key", "Named", "Missed"], rows)]
    if findings.others:
        others = [f"{path} ({what})" if what else path for path, what in findings.others.items()]
        lines.append(f"Named, but not in the key: {escaped(_listed(others))}.")
    if findings.made_up:
        lines.append(f"Made up, nowhere in the history: {escaped(_listed(findings.made_up))}.")
    if findings.made_up is None:
        lines.append("Whether names are made up is not known: the log holds no list of files.")
    if findings.ambiguous:
        lines.append(f"Fits several files, not counted: {escaped(_listed(findings.ambiguous))}.")
    if findings.not_judged:
        lines.append(
            "Gone by now or named by the question, not counted: "
            f"{escaped(_listed(findings.not_judged))}."
        )
    return "\n\n".join(lines)


def _listed(paths: list[str]) -> str:
    shown = ", ".join(paths[:_MOST_SHOWN])
    return shown + (f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else "")


def _metadata(findings: FileFindings) -> dict[str, Any]:
    return {
        **{
            kind: {"named": found.named, "missed": found.missed}
            for kind, found in findings.kinds.items()
        },
        "others": findings.others,
        "made_up": findings.made_up,
        "ambiguous": findings.ambiguous,
        "not_judged": findings.not_judged,
    }
