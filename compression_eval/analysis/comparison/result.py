"""A comparison as a whole, and what it comes to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compression_eval.analysis.comparison.comparable import Obstacle, check_comparable
from compression_eval.analysis.comparison.fact_changes import FactChange, fact_changes
from compression_eval.analysis.comparison.failures import Failures, failures, rise
from compression_eval.analysis.comparison.flips import Flip, flips
from compression_eval.analysis.comparison.judging import (
    BREAKDOWNS,
    Line,
    Rules,
    bound,
    breakdown,
    headline,
)
from compression_eval.analysis.comparison.measures import (
    HEADLINE,
    compresses_the_same,
    exact_measures,
    unread_changes,
    with_states,
)
from compression_eval.analysis.comparison.sides import Side, differences, same_arm
from compression_eval.analysis.comparison.splitting import SideSpread, side_spread
from compression_eval.fixtures.errors import DataError
from compression_eval.grading.six_dimensions import OVERALL

Outcome = Literal["no regression", "regression", "cannot tell"]

EXIT_CODES: Mapping[Outcome, int] = {"no regression": 0, "regression": 1, "cannot tell": 3}


@dataclass(frozen=True)
class Comparison:
    """Everything that is said about two sides."""

    base: Side
    new: Side
    rules: Rules
    allowed: Sequence[Obstacle]
    """What differs although it should not, and was allowed to."""
    lines: Sequence[Line]
    """The headline."""
    failed: tuple[Failures, Failures]
    bound: Sequence[Line]
    """The headline with failed samples counted as 0; empty if nothing failed."""
    breakdowns: Mapping[str, Sequence[Line]]
    """By column."""
    facts: Sequence[FactChange]
    flips: Sequence[Flip]
    spread: tuple[SideSpread, SideSpread] | None
    """None where only the headline was asked for."""

    @property
    def same_arm(self) -> bool:
        """Whether both sides are runs of one arm."""
        return same_arm(self.base, self.new)

    @property
    def mechanical(self) -> list[str]:
        """Labels of the sides whose compressions are all the same."""
        return [side.label for side in (self.base, self.new) if compresses_the_same(side)]

    @property
    def changed_settings(self) -> list[tuple[str, str, str]]:
        """In what the arms differ: setting, value of base, value of new."""
        return differences(self.base, self.new)

    @property
    def unread(self) -> tuple[list[str], bool]:
        """What differs that the embedded compressor never read, and whether nothing else does."""
        return unread_changes(self.base, self.new)

    def named(self, verdict: str) -> list[str]:
        """Return the headline measures with a verdict."""
        return [line.measure for line in self.lines if line.judged.verdict == verdict]

    @property
    def one_sided(self) -> list[str]:
        """Headline measures that have no shared probe, though one of the sides has values.

        What neither has, such as facts in a state that cannot be read, is no question here.
        """
        judged = {line.measure for line in self.lines}
        return [
            name
            for name in HEADLINE
            if name not in judged
            and any(side.samples[name].notna().any() for side in (self.base, self.new))
        ]

    @property
    def failing(self) -> Line | None:
        """The overall score with failures counted as 0, if the new side fails more often."""
        if not self.rules.failures_rise:
            return None
        return next((line for line in self.bound if line.measure == OVERALL), None)

    def outcome(self, *, gate: bool = False) -> tuple[Outcome, str]:
        """Return what the comparison comes to, and why.

        Args:
            gate: Let any headline measure that cannot be told stand in the way; otherwise only
                the overall score does.
        """
        worse, unknown = self.named("worse"), self.named("cannot tell")
        failing = self.failing
        if worse:
            return "regression", f"worse: {', '.join(worse)}"
        if failing is not None and failing.judged.verdict == "worse":
            return "regression", "fails more often, and is worse if failures count as 0"
        unknown = [*unknown, *self.one_sided] if gate else [n for n in unknown if n == OVERALL]
        if unknown:
            return "cannot tell", f"cannot be told: {', '.join(unknown)}"
        if failing is not None and failing.judged.verdict == "cannot tell":
            return "cannot tell", "fails more often, and what that costs cannot be told"
        unread, nothing_else = self.unread
        if unread and nothing_else:
            return "cannot tell", (
                "the embedded compressor does not read prompts, and the arms differ in nothing "
                f"else ({', '.join(unread)}); compress with a model: --model-role compressor=MODEL"
            )
        better = self.named("better")
        return "no regression", f"better: {', '.join(better)}" if better else "nothing is worse"


def compare(
    base: Side,
    new: Side,
    *,
    threshold: float,
    allowed: Collection[str] = (),
    whole: bool = True,
) -> Comparison:
    """Compare two sides.

    Args:
        base: One arm.
        new: The arm that is to be judged.
        threshold: The smallest difference of a score (0 to 5) that counts.
        allowed: Conditions that need not hold; names of `comparable.CONDITIONS`.
        whole: Also make the breakdowns, facts, flips and the spread; else only the headline.

    Raises:
        DataError: They cannot be compared, or have no probe in common.
    """
    differing = check_comparable(base, new, allowed)
    base, new = (replace(side, samples=with_states(side.samples)) for side in (base, new))
    # Rates over different probes would let an arm seem to fail less often than it does.
    probes = set(base.samples["sample"]) & set(new.samples["sample"])
    failed = (_failures(base, probes), _failures(new, probes))
    rules = Rules(threshold, exact_measures(base, new), rise(*failed))
    samples = (base.samples, new.samples)
    lines = headline(samples, rules)
    if not any(line.measure == OVERALL for line in lines):
        raise DataError("cannot be compared: no probe has a score on both sides")
    return Comparison(
        base=base,
        new=new,
        rules=rules,
        allowed=differing,
        lines=lines,
        failed=failed,
        bound=bound(samples, rules) if any(each.failed for each in failed) else [],
        breakdowns={
            column: found
            for column in (BREAKDOWNS if whole else ())
            if (found := breakdown(samples, column, rules))
        },
        facts=fact_changes(base, new) if whole else [],
        flips=flips(base, new) if whole else [],
        spread=(side_spread(base), side_spread(new)) if whole else None,
    )


def _failures(side: Side, probes: Collection[str]) -> Failures:
    """Count what failed on the probes that both sides were asked."""
    return failures(side.samples[side.samples["sample"].isin(probes)])
