"""What measures and numbers are called wherever people read them."""

import math

from compression_eval.analysis.comparison.measures import SHARES
from compression_eval.analysis.report.retained import Frontier
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.grading.rubric import MAX_SCORE

TITLES = {
    "knowledge": "Knowledge",
    "overall": "Overall",
    "accuracy": "Accuracy",
    "context_awareness": "Context",
    "artifact_trail": "Artifact",
    "completeness": "Complete",
    "continuity": "Continuity",
    "instruction_following": "Instruction",
    "fact_recall": "Facts in answer",
    "fact_survival": "Facts in state",
}

DASH = "–"


def title_of(measure: str) -> str:
    """Return what a measure is called at the head of a column."""
    return TITLES.get(measure, measure.replace("_", " "))


def shown(measure: str, value: float) -> str:
    """Return a value of a measure: shares in percent, scores with two digits."""
    return percent(value) if measure in SHARES else decimal(value)


def decimal(value: float | None, digits: int = 2) -> str:
    """Return a number; a dash for what is not known."""
    return DASH if value is None or math.isnan(value) else f"{value:.{digits}f}"


def whole(value: float | None) -> str:
    """Return a count with thousands set apart; a dash for what is not known."""
    return DASH if value is None or math.isnan(value) else f"{value:,.0f}"


def counted(number: int, noun: str) -> str:
    """Return a number of things that have a regular plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; a dash for what is not known."""
    return DASH if share is None or math.isnan(share) else f"{share * 100:.{digits}f} %"


def between(limits: tuple[float, float] | None, measure: str = "") -> str:
    """Return an interval; a dash where there is none.

    Args:
        limits: Of a mean of the measure, or without one of anything else.
        measure: No limit is shown to be beyond the ends of its scale.
    """
    if limits is None:
        return DASH
    if measure:
        most = 1.0 if measure in SHARES else MAX_SCORE
        limits = (max(limits[0], 0.0), min(limits[1], most))
    return f"{shown(measure, limits[0])} to {shown(measure, limits[1])}"


def findings(frontier: Frontier) -> list[str]:
    """Return what the arms come to, a sentence for each size of states."""
    quality = {point.arm: point.quality for point in frontier.points}
    found = []
    for size in frontier.sizes:
        digits = 1 - math.floor(math.log10(size.tokens)) if size.tokens >= 1 else 0
        tokens = f"{round(size.tokens, digits):,.0f}"
        parts = [
            f"At about {tokens} tokens: {size.best} comes to knowledge {size.quality:.2f} of 5"
        ]
        for said, arms in (
            (f"less than {DEFAULT_THRESHOLD:g} away from it", size.no_different),
            ("not distinguishable from it in these runs", size.unclear),
            ("worse", size.worse),
        ):
            if arms:
                parts.append(f"{said}: {', '.join(f'{arm} {quality[arm]:.2f}' for arm in arms)}")
        found.append("; ".join(parts) + ".")
    return found
