"""What Inspect's log and viewer show of a calibration; the same numbers as the printed table."""

import math
import statistics
from collections.abc import Sequence

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from compression_eval.calibration.agreement import Agreement, agreement
from compression_eval.calibration.cases import KEYS, Case, case_of, compared, moved, present
from compression_eval.calibration.traps import sprung

TRAP = "trap"
"""Key of the score: 1 if the grader fell for the answer's trap, 0 if not."""


def calibration_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key."""
    keys: dict[str, list[Metric]] = {
        key: [mean_absolute_error(key), agrees(key), moves(key)] for key in KEYS
    }
    return {**keys, TRAP: [falls_for()]}


def _cases(scores: Sequence[SampleScore]) -> list[Case]:
    return [case for item in scores if (case := case_of(item)) is not None]


def _agreement(scores: Sequence[SampleScore], key: str) -> Agreement:
    pairs = [compared(case) for case in _cases(scores) if case.original]
    return agreement([given[key] for given, _ in pairs], [right[key] for _, right in pairs])


@metric
def mean_absolute_error(key: str) -> Metric:
    """Return how far the grader is off the reference, in points, variants left out.

    Args:
        key: The overall score or a dimension.
    """

    def compute(scores: list[SampleScore]) -> Value:
        return _agreement(scores, key).error

    return compute


@metric
def agrees(key: str) -> Metric:
    """Return how well the grader agrees with the reference, variants left out.

    Args:
        key: The overall score or a dimension.
    """

    def compute(scores: list[SampleScore]) -> Value:
        found = _agreement(scores, key)
        if not found.answers:
            return {}
        return {
            "bias": found.bias,
            "spearman": found.rank,
            "weighted_kappa": found.kappa,
            "weighted_kappa_low": found.low,
            "weighted_kappa_high": found.high,
            "answers": found.answers,
        }

    return compute


@metric
def moves(key: str) -> Metric:
    """Return how far variants move the score: mean absolute difference in points, by variant.

    Args:
        key: The overall score or a dimension.
    """

    def compute(scores: list[SampleScore]) -> Value:
        result: dict[str, str | int | float | bool | None] = {}
        for variant, shifts in moved(_cases(scores)).items():
            found = present([shift[key] for shift in shifts])
            if found:
                result[variant] = statistics.fmean(map(abs, found))
        return result

    return compute


@metric
def falls_for() -> Metric:
    """Return the share of sprung traps, overall and by kind, variants left out."""

    def compute(scores: list[SampleScore]) -> Value:
        kinds: dict[str, list[bool]] = {}
        for case in _cases(scores):
            if not case.original:
                continue
            fell = sprung(case.reference.kind, case.scores, case.reference.scores)
            if fell is not None:
                kinds.setdefault(case.reference.kind, []).append(fell)
        every = [fell for found in kinds.values() for fell in found]
        shares = {kind: statistics.fmean(found) for kind, found in kinds.items()}
        return {"all": statistics.fmean(every) if every else math.nan, **shares}

    return compute
