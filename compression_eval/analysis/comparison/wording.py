"""How numbers and findings are put, in every form of output alike."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from compression_eval.analysis.comparison.fact_changes import FactSeen
from compression_eval.analysis.comparison.failures import Failures
from compression_eval.analysis.comparison.judging import Line
from compression_eval.analysis.comparison.measures import SHARES, threshold_of
from compression_eval.analysis.statistics.intervals import Difference, Spread
from compression_eval.analysis.statistics.power import More
from compression_eval.analysis.statistics.verdicts import Decision
from compression_eval.grading import rubric
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE

if TYPE_CHECKING:
    from compression_eval.analysis.comparison.sides import Regraded

FORMULA = f"{rubric.FORMULA}; change = new - base over the probes that both have"
"""How the numbers came about; printed with every comparison."""

FAMILY = (
    "knowledge decides alone, with the failures; the other tables are exploratory: p is two-sided, "
    "on these conversations, adjusted by Holm's method for the measures of a table"
)

INTERVALS = (
    "on these conversations: fixtures and probes fixed, the unit is the compression; it decides "
    "the verdict where conversations were compressed more than once",
    "for new conversations: the unit is the fixture, Student's t; what to expect elsewhere",
)


def decided(
    found: Decision, seen: Difference, margin: float, failed: tuple[Failures, Failures]
) -> str:
    """Return a decision in words."""
    where = f"on these {seen.fixtures} conversations"
    if seen.fixtures == 1:
        where = "on this conversation"
    if found.over_conversations:
        where += " (compressed once each: decided by the spread between conversations)"
    size = change(abs(seen.estimate), KNOWLEDGE).lstrip("+")
    base, new = (f"{each.failed} of {each.samples} samples" for each in failed)
    chance = probability(found.p_failing)
    if found.verdict == "fails more":
        return f"it fails more often: {new}, against {base} (p {chance})"
    if found.verdict == "not worse":
        return f"knowledge is not worse by more than {margin:.2f} {where}"
    if found.verdict == "worse, by less than the margin":
        return f"knowledge is worse by {size} {where}, by less than the margin of {margin:.2f}"
    if found.verdict in ("worse", "better"):
        return f"knowledge is {found.verdict} by {size} {where}"
    if found.blocked:
        return (
            f"it fails more often, {new} against {base}, which may be chance (p {chance}) but "
            f"would cost more than {margin:.2f} if failures count as 0"
        )
    return f"whether knowledge is worse by more than {margin:.2f} cannot be told {where}"


def what_would_tell(
    more: More, seen: Difference, answers: tuple[int, int], *, blocked: bool
) -> str:
    """Return what it takes to tell where these runs do not.

    Args:
        more: What would tell.
        seen: What was seen.
        answers: From each compression, of base and new; an epoch is one of them.
        blocked: Whether only failures keep it from being told.
    """
    if blocked:
        return "more epochs would tell whether it fails more often"
    ways = []
    if seen.here is None:
        base, new = (3 * each for each in answers)
        epochs = f"--epochs {base}" if base == new else f"--epochs {base} of base, {new} of new,"
        ways.append(f"a second and third compression ({epochs} in all)")
    elif more.states is not None:
        now = [round(states / seen.fixtures) for states in seen.states]
        base, new = (
            max(0, more.states - have) * each for have, each in zip(now, answers, strict=True)
        )
        have = f"{now[0]}" if now[0] == now[1] else f"{now[0]} of base and {now[1]} of new"
        again = (
            f"run both again with --epochs {base} into their folders"
            if base == new
            else f"run again into their folders: base with --epochs {base}, new with {new}"
        )
        ways.append(
            f"about {more.states} compressions of each conversation and side instead of {have} "
            f"({again})"
        )
    if more.fixtures is not None:
        ways.append(f"about {more.fixtures} conversations instead of {seen.fixtures}")
    listed = ", or ".join(ways) if ways else "no affordable number of epochs or conversations"
    return f"what would tell, 4 times out of 5, if the difference is as seen: {listed}"


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
    """Return an interval at 95 %, ``exact`` or ``no spread``; a dash where there is none."""
    if spread is None:
        return "-"
    if spread.error == 0:
        return "exact" if math.isinf(spread.freedom) else "no spread"
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
    return [
        value(found.base, name),
        value(found.new, name),
        change(found.estimate, name, threshold_of(name, threshold)),
        interval(found.here, found.estimate, name),
        interval(found.elsewhere, found.estimate, name),
        probability(line.judged.p_value),
        verdict(line, threshold),
    ]


def verdict(line: Line, threshold: float) -> str:
    """Return a verdict on a measure that decides nothing."""
    found = line.judged.verdict
    name = line.measure
    limit = change(threshold_of(name, threshold), name).lstrip("+")
    return {"no change": f"within {limit}", "cannot tell": "unclear"}.get(found, found)


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
    return _counted(found.failed, found.samples, found.reasons)


def ungraded(found: Failures) -> str:
    """Return what only the grader failed on, likewise."""
    return _counted(found.ungraded, found.samples, found.ungraded_reasons)


def _counted(number: int, samples: int, by_reason: Mapping[str, int]) -> str:
    text = f"{number} of {samples} ({number / max(samples, 1):.1%})"
    reasons = ", ".join(f"{reason} {count}" for reason, count in by_reason.items())
    return f"{text}: {reasons}" if reasons else text


def too_few_grades(base: Failures, new: Failures) -> str:
    """Return why nothing can be told where graders failed too often."""
    without = f"base {base.ungraded} of {base.samples}, new {new.ungraded} of {new.samples}"
    return (
        f"the grader failed on too many answers, or not alike on both sides ({without}), which "
        "says nothing of the arms; grade them again: inspect score LOG, or --regrade MODEL"
    )


def regraded(base: "Regraded", new: "Regraded") -> str:
    """Return who graded both sides again for the comparison, and what came of it."""
    return (
        f"both sides graded again, together and in random order, by {', '.join(base.graders)}: "
        f"{base.answers} and {new.answers} answers, of which {base.failed} and {new.failed} failed "
        f"({base.calls + new.calls} calls); the grades in the logs count for nothing here"
    )


def runs(seen: FactSeen, where: str) -> str:
    """Return in how many runs a fact was there."""
    if where == "answer":
        return f"{seen.in_answer}/{seen.answers}"
    return f"{seen.in_state}/{seen.states}"
