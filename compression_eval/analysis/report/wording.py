"""What measures and numbers are called wherever people read them."""

import math

from compression_eval.analysis.comparison.measures import SHARES

TITLES = {
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
    """Return an interval; a dash where there is none."""
    return DASH if limits is None else f"{shown(measure, limits[0])} to {shown(measure, limits[1])}"
