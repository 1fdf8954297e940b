"""How numbers and findings are put, in every form of output alike."""

import math

from compression_eval.analysis.comparison.fact_changes import FactSeen
from compression_eval.analysis.comparison.failures import Failures
from compression_eval.analysis.comparison.judging import Line
from compression_eval.analysis.comparison.measures import SHARES, threshold_of
from compression_eval.analysis.statistics.intervals import Spread
from compression_eval.grading.rubric import MAX_SCORE

FORMULA = (
    "dimension = weighted mean of its graded criteria; overall = unweighted mean of the "
    "dimensions, per sample; then answers are averaged within a state, states within a probe, "
    "and every probe counts the same; change = new - base over the probes that both have"
)
"""How the numbers came about; printed with every comparison."""

FAMILY = (
    "p: two-sided, on these conversations, adjusted by Holm's method for the measures of a table"
)

INTERVALS = (
    "on these conversations: fixtures and probes fixed, the unit is the compression; it decides "
    "the verdict",
    "for new conversations: the unit is the fixture, Student's t; what to expect elsewhere",
)


def value(number: float, measure: str) -> str:
    """Return a mean: a score with two digits, a share as a percentage."""
    return f"{number:.1%}" if measure in SHARES else f"{number:.2f}"


def change(number: float, measure: str, threshold: float = math.inf) -> str:
    """Return a difference with its sign.

    Args:
        number: The difference.
        measure: What of.
        threshold: The smallest difference that counts, in the unit of the measure. A smaller one
            is given with as many digits as it takes to be seen to be smaller.
    """
    scale, digits, unit = (100, 1, " pp") if measure in SHARES else (1, 2, "")
    smaller = abs(number) < threshold and not math.isclose(abs(number), threshold)
    while smaller and digits < 6 and round(abs(number) * scale, digits) >= threshold * scale:
        digits += 1
    # Without adding 0 a rounded -0.00 would read as a loss.
    return f"{round(number * scale, digits) + 0.0:+.{digits}f}{unit}"


def interval(spread: Spread | None, estimate: float, measure: str) -> str:
    """Return an interval at 95 %; a dash where there is none."""
    if spread is None:
        return "-"
    most = 1.0 if measure in SHARES else MAX_SCORE  # no difference can be larger
    low, high = (min(max(limit, -most), most) for limit in spread.interval(estimate))
    if measure in SHARES:
        return f"{low * 100 + 0.0:+.1f} to {high * 100 + 0.0:+.1f}"
    return f"{low + 0.0:+.2f} to {high + 0.0:+.2f}"


def probability(number: float | None) -> str:
    """Return a p-value; a dash where there is none."""
    if number is None:
        return "-"
    return "<.001" if number < 0.001 else f"{number:.3f}".removeprefix("0")


_SHORT = {
    "context_awareness": "context",
    "artifact_trail": "artifact",
    "instruction_following": "instruction",
}


def measure_name(name: str) -> str:
    """Return a measure's name for people, short enough for a terminal's table."""
    return _SHORT.get(name, name.replace("_", " "))


def line_cells(line: Line, threshold: float) -> list[str]:
    """Return base, new, change, both intervals, p and verdict of a line.

    Args:
        line: The line.
        threshold: The smallest difference of a score (0 to 5) that counts.
    """
    found, name = line.difference, line.measure
    exact = found.here is not None and found.here.error == 0
    mark = "*" if line.borrowed else ""
    return [
        value(found.base, name),
        value(found.new, name),
        change(found.estimate, name, threshold_of(name, threshold)),
        "exact" if exact else interval(found.here, found.estimate, name) + mark,
        interval(found.elsewhere, found.estimate, name),
        probability(None if exact else line.judged.p_value),
        line.judged.verdict,
    ]


LINE_HEADS = (
    "base",
    "new",
    "change",
    "on these conversations",
    "for new conversations",
    "p",
    "verdict",
)
"""Heads of `line_cells`."""


def failed(found: Failures) -> str:
    """Return the failures of one side in a few words."""
    text = f"{found.failed} of {found.samples} ({found.rate:.1%})"
    reasons = ", ".join(f"{reason} {count}" for reason, count in found.reasons.items())
    return f"{text}: {reasons}" if reasons else text


def runs(seen: FactSeen, where: str) -> str:
    """Return in how many runs a fact was there."""
    if where == "answer":
        return f"{seen.in_answer}/{seen.answers}"
    return f"{seen.in_state}/{seen.states}"
