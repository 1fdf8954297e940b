"""From differences to verdicts, by one rule and in the same words everywhere.

`_judged` has the rule: what the interval and the p-value of a difference show. `decide` applies it
to the deciding measure, with failures and lost facts as one family of tests. `judge` applies it to
several measures that are looked at together, adjusted by Holm's method.
"""

import math
from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from compression_eval.analysis.statistics.intervals import LEVEL, Difference, Spread

DEFAULT_THRESHOLD = 0.3
"""The smallest difference of a score (0 to 5) that counts, and the default margin of a decision."""

MIN_RANGE = 2.0
"""The smallest range between the controls (0 to 5) by which a reader can show that nothing is lost.
"""

MARGIN_SHARE = 0.1
"""The default margin as a share of that range, where this is less than `DEFAULT_THRESHOLD`."""

RECALL_OF_A_POINT = 1 / 4.05
"""What a point of knowledge is in fact recall, among arms that summarise (docs/findings.md)."""

FACTS_LOST = 0.08
"""A larger loss of the share of facts in the states is a regression, if it is significant."""

_CHANCE = 1 - LEVEL

K = TypeVar("K", bound=Hashable)

_Told = Literal["better", "not worse", "worse, by less than the margin", "worse", "cannot tell"]
Verdict = _Told | Literal["no change"]
"""*No change* is a *not worse* that is shown to be no better by the margin either."""
Decided = _Told | Literal["fails more"]

Extent = Literal["at least the margin", "less than the margin", "open"]

_EXACTLY = 1e-8
"""Being so little under the margin is having reached it."""


@dataclass(frozen=True)
class Judged:
    """What a difference shows of the new arm: whether it is higher, and whether by the margin."""

    difference: Difference
    p_value: float | None
    """Adjusted by Holm's method for what was tested with it; None where it is not known, and where
    nothing is random."""
    verdict: Verdict
    extent: Extent
    """What is shown of the difference: *at least* by the 95 % interval, *less* by two tests."""
    words: tuple[str, str]
    """The verdict, and what is said next to it if anything: ``better``, ``by at least …``."""
    differs: bool = False
    """Whether a difference is shown, of any size."""

    @property
    def why(self) -> str:
        """The verdict in words, or why there is none."""
        return ", ".join(filter(None, self.words))


def _judged(
    difference: Difference,
    spread: Spread | None,
    p_value: float | None,
    margin: float,
    *,
    rises: bool,
    limit: str = "",
) -> Judged:
    """Return what a difference shows: the rule behind every verdict.

    *Better* and *worse* are differences at 5 % two-sided, of any size; next to it is whether
    they are shown to be at least the margin, at the same level, or less. An arm that is neither is
    *not worse* if a loss of the margin is ruled out, at 5 % one-sided, and *no change* if a gain of
    it is, too; so is what is *less*.

    An arm that fails more often (`rises`) is not called better. The p-value is two-sided, that
    there is no difference, adjusted for what was tested with it; `limit` is the margin as it is
    shown, a plain number if empty.
    """
    estimate = difference.estimate
    limit = limit or max(f"{margin:.2f}", f"{margin:g}", key=len)
    least = f"worse by more than {limit}"
    verdict: Verdict = "cannot tell"
    words = f"whether {least} cannot be told", ""
    if spread is None or p_value is None:
        return Judged(difference, None, verdict, "open", words)
    no_loss, no_gain = (spread.tail(margin + each) < _CHANCE for each in (estimate, -estimate))
    significant, small = p_value < _CHANCE, no_loss and no_gain
    large = significant and 2 * spread.tail(abs(estimate) - margin + _EXACTLY) < _CHANCE
    extent: Extent = "at least the margin" if large else "open"
    extent = "less than the margin" if small else extent
    by = f"whether by {limit} is open" if extent == "open" else f"by {extent} of {limit}"
    if significant and estimate < 0:
        verdict, words = ("worse, by less than the margin" if no_loss else "worse"), ("worse", by)
    elif significant and rises:
        verdict, words = "not worse", (f"not {least}", "higher, but it fails more often")
    elif significant:
        verdict, words = "better", ("better", by)
    elif small:
        verdict, words = "no change", (f"not {least}", "nor better")
    elif no_loss:
        verdict, words = "not worse", (f"not {least}", "whether it is better is open")
    shown = None if spread.exact else p_value
    return Judged(difference, shown, verdict, extent, words, significant)


@dataclass(frozen=True)
class Failing:
    """The failures of two arms, as a decision needs them."""

    p_value: float
    """One-sided, that so many more fail in the new arm by chance."""
    cost: float
    """The difference with failures counted as 0, where the new arm fails more; else 0."""
    exact: bool = False
    """Whether nothing is random: the p-value is 0 or 1, and is not shown."""


@dataclass(frozen=True)
class Decision:
    """The decision on two runs."""

    verdict: Decided
    extent: Extent
    """Of the difference, as that of `Judged`."""
    over_conversations: bool
    """Whether by the spread between conversations, for want of a second compression."""
    p_value: float | None
    """Two-sided, that there is no difference; adjusted by Holm's method if anything failed. None,
    like the others, where it is not known, and where nothing is random."""
    p_margin: float | None
    """One-sided, that the new arm is worse by the margin or more."""
    p_failing: float | None
    """One-sided, that the new arm fails no more often; adjusted alike. None if nothing failed."""
    p_facts: float | None
    """Two-sided, that as many facts are in the states; adjusted alike."""
    facts_lost: bool
    """Whether facts are lost from the states."""
    loss_ruled_out: bool
    """Whether a loss of the margin or more is ruled out, by the scores alone."""
    words: tuple[str, str]
    """As those of `Judged`."""
    blocked: bool = False
    """Whether only the possible cost of failures prevents *not worse*."""

    @property
    def regression(self) -> bool:
        """Whether the new arm is shown to be worse in any way."""
        return self.facts_lost or self.verdict in ("worse", "fails more")

    def certifies(self, reach: float | None) -> bool:
        """Return whether it shows that the new arm is no regression.

        Args:
            reach: The range between the controls, by the same reader; None if that is not known.
                A reader that answers little even from everything shows nothing.
        """
        told = not self.regression and self.verdict != "cannot tell"
        return told and reach is not None and reach >= MIN_RANGE


def default_margin(reach: float | None) -> float:
    """Return the margin that goes with the range between the controls, if that is known."""
    if reach is None:
        return DEFAULT_THRESHOLD
    return min(DEFAULT_THRESHOLD, MARGIN_SHARE * max(reach, MIN_RANGE))


def decide(
    difference: Difference,
    margin: float,
    failing: Failing | None = None,
    facts: Difference | None = None,
) -> Decision:
    """Return the decision on one measure, on the failures and on the facts in the states.

    Of two equal arms no more than 5 % come out as a regression. The difference and the facts are
    tested two-sided at 5 %, of which half is a loss; if anything failed, all tests are one family,
    adjusted by Holm's method. The spread is that on these conversations; where each was compressed
    only once it is that between conversations, which contains what compressions vary by as well.

    Args:
        difference: Of the measure.
        margin: In its unit.
        failing: The failures; None if nothing failed.
        facts: Difference of the share of facts in the states; None if it is not known.
    """
    spread, estimate = difference.here or difference.elsewhere, difference.estimate
    tests = {"difference": difference} | ({"facts": facts} if facts else {})
    spreads = {name: each.here or each.elsewhere for name, each in tests.items()}
    p_values = {name: s.p_value(tests[name].estimate) for name, s in spreads.items() if s}
    if failing is not None:
        p_values = holm(p_values | {"failures": failing.p_value})
    exact = {name for name, each in spreads.items() if each and each.exact}
    shown = {name: p_value for name, p_value in p_values.items() if name not in exact}
    p_margin = spread.tail(estimate + margin) if spread else None
    rises = failing is not None and failing.cost < 0
    found = _judged(difference, spread, p_values.get("difference"), margin, rises=rises)
    verdict: Decided = "not worse" if found.verdict == "no change" else found.verdict
    costs = failing is not None and failing.cost < -margin
    blocked = costs and verdict not in ("worse", "cannot tell")
    if p_values.get("failures", 1.0) < _CHANCE:
        verdict = "fails more"
    elif blocked:
        verdict = "cannot tell"
    lost = facts is not None and facts.estimate < -FACTS_LOST - _EXACTLY
    return Decision(
        verdict,
        found.extent,
        over_conversations=difference.here is None and spread is not None,
        p_value=shown.get("difference"),
        p_margin=None if "difference" in exact else p_margin,
        p_failing=None if failing is None or failing.exact else shown["failures"],
        p_facts=shown.get("facts"),
        facts_lost=lost and p_values.get("facts", 1.0) < _CHANCE,
        loss_ruled_out=p_margin is not None and p_margin < _CHANCE,
        words=found.words,
        blocked=blocked,
    )


def judge(
    differences: Mapping[K, Difference],
    thresholds: Mapping[K, float],
    *,
    failures_rise: bool | Container[K] = False,
    limits: Mapping[K, str] | None = None,
) -> dict[K, Judged]:
    """Return a verdict on each of several measures that are looked at together.

    Args:
        differences: By measure.
        thresholds: By measure, in its unit.
        failures_rise: Whether the new arm fails more often, then nothing is better; or the names
            of the measures for which it does.
        limits: Thresholds as they are shown, of measures that are not shown as plain numbers.
    """
    adjusted = holm(
        {name: each.here.p_value(each.estimate) for name, each in differences.items() if each.here}
    )
    result = {}
    for name, each in differences.items():
        rises = failures_rise if isinstance(failures_rise, bool) else name in failures_rise
        limit = (limits or {}).get(name, "")
        found = _judged(
            each, each.here, adjusted.get(name), thresholds[name], rises=rises, limit=limit
        )
        if each.here is None:
            once = "cannot tell: on a side, each conversation was compressed only once"
            found = replace(found, words=(once, ""))
        result[name] = found
    return result


def known_exactly(differences: Mapping[K, Difference], exact: Container[K]) -> dict[K, Difference]:
    """Return the differences, without error where both arms come out the same every time.

    One compression is then enough: without this it would count as one that was not repeated.
    """
    return {
        name: replace(each, here=Spread(0.0, math.inf))
        if name in exact and (each.here is None or each.here.error == 0)
        else each
        for name, each in differences.items()
    }


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """Return p-values adjusted for their number, by Holm's step-down method (1979)."""
    adjusted: dict[K, float] = {}
    highest = 0.0
    for position, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - position)))
        adjusted[name] = highest
    return adjusted
