"""A whole comparison and its outcome."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from compression_eval.analysis.comparison import changes, measures
from compression_eval.analysis.comparison.sides import (
    Side,
    check_comparable,
    differences,
    same_arm,
)
from compression_eval.analysis.statistics.intervals import Difference, Retention
from compression_eval.analysis.statistics.power import More, what_would_tell
from compression_eval.analysis.statistics.significance import (
    MIN_RANGE,
    Decision,
    Failing,
    decide,
    default_margin,
)
from compression_eval.errors import DataError
from compression_eval.grading.rubric import KNOWLEDGE

Outcome = Literal["no regression", "regression", "cannot tell", "the same answers"]

EXIT_CODES: Mapping[Outcome, int] = {
    "no regression": 0,
    "regression": 1,
    "cannot tell": 3,
    "the same answers": 0,
}


@dataclass(frozen=True)
class Comparison:
    """Everything about two sides."""

    base: Side
    new: Side
    rules: measures.Rules
    allowed: Mapping[str, str]
    """Differences that were allowed, by name of `sides.CONDITIONS`."""
    knowledge: Difference
    """The difference in the measure that decides."""
    failing: Failing | None
    """None if nothing failed."""
    facts_kept: measures.FactsKept | None
    """How many facts the states hold; None if no reader said so of states that a model wrote."""
    same_answers: int
    """How many answers there are if both sides gave the same ones; else 0."""
    same_states: bool
    """Whether both gave them from the same states."""
    lines: Sequence[measures.Line]
    """The measures beside it: exploratory."""
    failed: tuple[measures.Failures, measures.Failures]
    bound: Sequence[measures.Line]
    """The same with failed samples counted as 0; empty if nothing failed."""
    breakdowns: Mapping[str, Sequence[measures.Line]]
    """By column."""
    facts: Sequence[changes.FactChange]
    flips: Sequence[changes.Flip]
    noise: changes.Noise | None
    """None if a conversation was compressed only once, or only the headline was asked for."""
    spread: tuple[changes.SideSpread, changes.SideSpread] | None
    """None if only the headline was asked for."""
    retention: tuple[Retention, Retention] | None
    """Where both sides stand between the controls; None without them."""
    same_arm: bool
    """Whether both sides are runs of one arm."""
    changed_settings: list[tuple[str, str, str]]
    """In what the arms differ: setting, value of base, value of new."""
    mechanical: list[str]
    """Labels of the sides whose compressions are all the same."""
    unread: tuple[list[str], bool]
    """What differs that the embedded compressor never read, and whether nothing else does."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """Base and new."""
        return self.base, self.new

    @cached_property
    def decision(self) -> Decision:
        """The decision on the measure that decides."""
        facts = self.facts_kept.difference if self.facts_kept else None
        return decide(self.knowledge, self.rules.threshold, self.failing, facts)

    @cached_property
    def elsewhere(self) -> Decision | None:
        """The same test for new conversations; None with a single one, or without enough grades."""
        if self.knowledge.elsewhere is None or self.ungraded:
            return None
        return decide(replace(self.knowledge, here=None), self.rules.threshold, self.failing)

    @property
    def ungraded(self) -> bool:
        """Whether so many grades are missing that nothing can be told.

        That an arm fails more can be: it does not hang on the grades of what did not fail.
        """
        return self.decision.verdict != "fails more" and measures.too_few_grades(*self.failed)

    @property
    def narrower(self) -> Retention | None:
        """The controls of the side whose reader has the smaller range; None if not known."""
        return min(self.retention, key=lambda kept: kept.reach) if self.retention else None

    @property
    def weak_reader(self) -> bool:
        """Whether a reader answers too little even from everything."""
        return self.narrower is not None and self.narrower.reach < MIN_RANGE

    @property
    def untold(self) -> bool:
        """Whether the arms differ in nothing but what the embedded compressor never read."""
        return self.rules.untold

    @cached_property
    def more(self) -> More | None:
        """The runs needed to tell; None if these tell."""
        decided = self.outcome[0] != "cannot tell" or self.decision.verdict != "cannot tell"
        decided = decided or self.weak_reader
        if decided or self.ungraded or self.untold:
            return None
        return what_would_tell(self.knowledge, self.rules.threshold)

    @cached_property
    def outcome(self) -> tuple[Outcome, str]:
        """The outcome of the comparison, and why."""
        if self.decision.facts_lost:
            told = self.decision.verdict != "cannot tell" and not self.ungraded
            beside = f"; {self._why}" if told else ""
            return "regression", f"facts are lost from the states: {self.facts_words}{beside}"
        if self.decision.regression and not self.ungraded:
            return "regression", self._why
        if self.same_answers and not self.untold:
            return self._same_answers()
        doubt = self._doubt()
        return ("cannot tell", doubt) if doubt else ("no regression", self._why)

    def _doubt(self) -> str:
        """Return why it is not shown that nothing is lost; empty if it is."""
        if self.ungraded:
            without = (f"{each.ungraded} of {each.samples}" for each in self.failed)
            return (
                "the grader failed on too many answers, or not alike on both sides "
                f"(base {next(without)}, new {next(without)}), which says nothing of the arms; "
                "grade them again: inspect score LOG, or --regrade MODEL"
            )
        if self.untold:
            return (
                "the embedded compressor does not read prompts, and the arms differ in nothing "
                f"else ({', '.join(self.unread[0])}); compress with a model: "
                "--model-role compressor=MODEL"
            )
        if self.weak_reader:
            return (
                f"this reader answers too little even from everything ({self.controls_words}, a "
                f"range under {MIN_RANGE:g}); {self._why}"
            )
        if self.decision.verdict == "cannot tell":
            return self._why
        if not self.decision.certifies(self.narrower.reach if self.narrower else None):
            return (
                "how much this reader can answer is not known, since there are no controls "
                f"({self.no_controls}); {self._why}"
            )
        return ""

    @property
    def no_controls(self) -> str:
        """Why nothing is known of the range of the reader; empty if it is."""
        if self.retention:
            return ""
        why = next((side.without_controls for side in self.sides if side.without_controls), "")
        return why or "too few probes have a grade in both of them"

    @property
    def controls_words(self) -> str:
        """What the reader with the smaller range answers from the controls, in words."""
        kept = self.narrower
        return f"knowledge {kept.ceiling:.2f} from full, {kept.floor:.2f} from none" if kept else ""

    @property
    def facts_words(self) -> str:
        """How many facts the states hold, in words; empty if it is not known."""
        if self.facts_kept is None:
            return ""
        seen, name = self.facts_kept.difference, measures.SURVIVAL
        base, new = (measures.shown_value(mean, name) for mean in (seen.base, seen.new))
        chance = self.decision.p_facts
        p_value = "" if chance is None else f", p {measures.shown_p(chance)}"
        by = "by the reader's word" if self.facts_kept.read else "by look-up"
        return f"{base} -> {new} ({measures.shown_change(seen.estimate, name)}{p_value}) {by}"

    @property
    def _why(self) -> str:
        """The decision in words."""
        decision, seen, margin = self.decision, self.knowledge, self.rules.threshold
        one = seen.fixtures == 1
        where = "on this conversation" if one else f"on these {seen.fixtures} conversations"
        if decision.over_conversations:
            where += " (compressed once each: decided by the spread between conversations)"
        size = measures.shown_change(abs(seen.estimate), KNOWLEDGE).lstrip("+")
        base, new = (f"{each.failed} of {each.samples} samples" for each in self.failed)
        chance = decision.p_failing
        p_value = "" if chance is None else f" (p {measures.shown_p(chance)})"
        if decision.verdict == "fails more":
            return f"it fails more often: {new}, against {base}{p_value}"
        if decision.verdict != "cannot tell":
            is_, beside = decision.words
            by = f" by {size}" if is_ in ("worse", "better") else ""
            return f"knowledge is {is_}{by} {where}, {beside}"
        if decision.blocked:
            return (
                f"it fails more often, {new} against {base}, which may be chance{p_value} but "
                f"would cost more than {margin:.2f} if failures count as 0"
            )
        return f"whether knowledge is worse by more than {margin:.2f} cannot be told {where}"

    def _same_answers(self) -> tuple[Outcome, str]:
        detail = f"nothing was compared: all {self.same_answers} answers are byte for byte the same"
        if not self.same_states:
            return "cannot tell", (
                f"all {self.same_answers} answers are byte for byte the same, from states that are "
                "not: this reader does not see what differs"
            )
        expected = self.same_arm and len(self.mechanical) == 2
        if expected or not (measures.stands_in(self.base) or measures.stands_in(self.new)):
            return "the same answers", detail
        return "cannot tell", (
            f"the same answers, {detail}; the embedded model, which compressed here, does not tell "
            "these arms apart: --model-role compressor=MODEL"
        )


def compare(
    base: Side,
    new: Side,
    *,
    threshold: float | None = None,
    allowed: Collection[str] = (),
    whole: bool = True,
) -> Comparison:
    """Compare two sides.

    Args:
        base: One arm.
        new: The arm that is to be judged.
        threshold: The margin of the decision: the loss of a score (0 to 5) that is too much. If
            None, the smaller of `DEFAULT_THRESHOLD` and a tenth of the range of the controls.
        allowed: Conditions that need not hold; names of `sides.CONDITIONS`.
        whole: Also make the breakdowns, facts, flips and the spread; else only the headline.

    Raises:
        DataError: They cannot be compared, or have no probe in common.
    """
    differing = check_comparable(base, new, allowed)
    base, new = (replace(side, samples=measures.with_states(side.samples)) for side in (base, new))
    # Failure rates over different probes could not be compared.
    # By probe, not by sample id: logs of another version may write ids otherwise.
    probes = [side.samples["unit"] + "/" + side.samples["probe_id"] for side in (base, new)]
    asked = [
        side.samples[own.isin(set(probes[0]) & set(probes[1]))]
        for side, own in zip((base, new), probes, strict=True)
    ]
    failed = (measures.failures(asked[0]), measures.failures(asked[1]))
    rises = failed[1].rate > failed[0].rate
    retention = measures.retentions(base, new)
    samples = (base.samples, new.samples)
    if threshold is None:
        threshold = default_margin(min(each.reach for each in retention) if retention else None)
    rules = measures.Rules(
        threshold, measures.exact_measures(base) & measures.exact_measures(new), failures_rise=rises
    )
    knowledge = measures.primary(samples, rules)
    if knowledge is None:
        raise DataError("cannot be compared: no probe has a score on both sides")
    failing = None
    if any(each.failed for each in failed):
        counted = measures.primary(samples, rules, failed_as_zero=True)
        # Arms that cannot vary do not fail by chance.
        exact = KNOWLEDGE in rules.exact
        chance = float(not rises) if exact else measures.chance_of_rise(asked[0], asked[1])
        failing = Failing(chance, counted.estimate if counted and rises else 0.0, exact)
    unread = measures.unread_changes(base, new)
    if all(unread) and decide(knowledge, threshold, failing).verdict != "worse":
        rules, knowledge = replace(rules, untold=True), measures.without_spread(knowledge)
    alike = measures.same_answers(base, new)
    return Comparison(
        base=base,
        new=new,
        rules=rules,
        allowed=differing,
        knowledge=knowledge,
        failing=failing,
        facts_kept=measures.facts_kept(base, new, rules),
        same_answers=alike,
        same_states=bool(alike) and measures.same_states(base, new),
        lines=measures.others(samples, rules),
        failed=failed,
        bound=measures.others(samples, rules, failed_as_zero=True) if failing else [],
        breakdowns={
            column: lines
            for column in (measures.BREAKDOWNS if whole else ())
            if (lines := measures.breakdown(samples, column, rules))
        },
        facts=changes.fact_changes(base, new) if whole else [],
        flips=changes.flips(base, new) if whole else [],
        noise=changes.noise((base, new)) if whole else None,
        spread=(changes.side_spread(base), changes.side_spread(new)) if whole else None,
        retention=retention,
        same_arm=same_arm(base, new),
        changed_settings=differences(base, new),
        mechanical=[
            side.label
            for side in (base, new)
            if measures.same_every_time(
                side.settings["compressor"], side.settings["compressor model"]
            )
        ],
        unread=unread,
    )
