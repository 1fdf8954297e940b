"""A whole comparison and its outcome.

Knowledge decides, with what failed and with the facts that the states contain;
`significance.decide` has the rule. Other measures, the facts and the probes that changed say where
to look. Where both arms come out the same every time nothing is random, where they gave the same
answers nothing was compared, and what a reader cannot tell is told by its controls.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from inspect_ai.log import read_eval_log_sample

from compression_eval.analysis.columns import Seen
from compression_eval.analysis.comparison.changes import FactChange, Flip, fact_changes, flips
from compression_eval.analysis.comparison.controls import Controls
from compression_eval.analysis.comparison.measures import (
    CLOSEST,
    HEADLINE,
    RECALL,
    SHARES,
    SURVIVAL,
    Failures,
    chance_of_rise,
    failures,
    shown_change,
    shown_p,
    shown_value,
    states_in,
    threshold_of,
    too_few_grades,
    values,
    with_states,
)
from compression_eval.analysis.comparison.sides import Arm, check_comparable, same_arm
from compression_eval.analysis.logs import reading
from compression_eval.analysis.statistics.intervals import (
    Difference,
    Retention,
    paired_difference,
    retention,
)
from compression_eval.analysis.statistics.significance import (
    MIN_RANGE,
    Decision,
    Failing,
    Judged,
    decide,
    default_margin,
    judge,
    known_exactly,
)
from compression_eval.errors import DataError
from compression_eval.fixtures.digests import digest
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.record import render_messages

if TYPE_CHECKING:
    from pandas import DataFrame

    from compression_eval.analysis.statistics.power import More

Outcome = Literal["no regression", "regression", "cannot tell", "the same answers"]

EXIT_CODES: Mapping[Outcome, int] = {
    "no regression": 0,
    "regression": 1,
    "cannot tell": 3,
    "the same answers": 0,
}

BREAKDOWNS: Mapping[str, str] = {
    "probe_type": "probe type",
    "task_type": "task type",
    "length": "length of the conversation",
    "qualified": "verdict on the probe",
}
"""Columns of breakdowns, with their titles."""

IN_GROUPS: tuple[str, ...] = (KNOWLEDGE, RECALL, SURVIVAL)
"""Measures in each group of a breakdown."""

MIN_CONTROLLED = 2 / 3
"""Share of a side's graded probes that both controls must have a grade on."""

Lines = dict[tuple[str, str], Judged]
"""Verdicts by group (empty for all probes) and measure."""


@dataclass(frozen=True)
class Comparison:
    """Everything about two sides, of which each part is computed when it is asked for.

    The samples of both have a column ``state``.
    """

    base: Arm
    new: Arm
    given_margin: float | None
    decides: str = KNOWLEDGE
    """The measure that decides."""
    controls: Sequence[Controls | str] = ()
    """Of both sides; the reason where there are none."""
    allowed: Mapping[str, str] = field(default_factory=dict)
    """Differences that were allowed, by name of `CONDITIONS`."""

    @property
    def sides(self) -> tuple[Arm, Arm]:
        """Base and new."""
        return self.base, self.new

    # ----- what decides

    @cached_property
    def margin(self) -> float:
        """The loss of a score (0 to 5) that is too much, and the least that counts elsewhere."""
        reach = self.narrower.reach if self.narrower else None
        return self.given_margin or default_margin(reach)

    @cached_property
    def exact(self) -> frozenset[str]:
        """Measures on which both arms come out the same every time."""
        return self.base.exact & self.new.exact

    @cached_property
    def knowledge(self) -> Difference:
        """The difference in the measure that decides."""
        found = self.difference(self.decides)
        if found is None:
            raise DataError("cannot be compared: no probe has a score on both sides")
        return self._exactly(found)

    def difference(self, measure: str, *, failed_as_zero: bool = False) -> Difference | None:
        """Return the difference in a measure; None if no probe has it on both sides."""
        sides = (each.values(measure, failed_as_zero=failed_as_zero) for each in self.sides)
        return paired_difference(*sides)

    def _exactly(self, difference: Difference, measure: str = "") -> Difference:
        measure = measure or self.decides
        return known_exactly({measure: difference}, self.exact)[measure]

    @cached_property
    def _asked(self) -> "list[DataFrame]":
        """Samples on the probes that both were asked: else rates of failures do not compare.

        By probe, not by sample id: logs of another version may write ids otherwise.
        """
        probes = [side.samples["unit"] + "/" + side.samples["probe_id"] for side in self.sides]
        shared = set(probes[0]) & set(probes[1])
        return [
            side.samples[own.isin(shared)] for side, own in zip(self.sides, probes, strict=True)
        ]

    @cached_property
    def failed(self) -> tuple[Failures, Failures]:
        """What failed on the probes that both were asked."""
        return failures(self._asked[0]), failures(self._asked[1])

    @property
    def failures_rise(self) -> bool:
        """Whether the new arm fails more often, by chance or not."""
        return self.failed[1].rate > self.failed[0].rate

    @cached_property
    def failing(self) -> Failing | None:
        """The failures as the decision needs them; None if nothing failed."""
        if not any(each.failed for each in self.failed):
            return None
        # Arms that cannot vary do not fail by chance.
        exact = self.decides in self.exact
        chance = float(not self.failures_rise) if exact else chance_of_rise(*self._asked)
        return Failing(chance, self.cost if self.failures_rise else 0.0, exact)

    @property
    def cost(self) -> float:
        """The difference in what decides with failures counted as 0."""
        counted = self.difference(self.decides, failed_as_zero=True)
        return counted.estimate if counted else 0.0

    @cached_property
    def facts_kept(self) -> Difference | None:
        """The share of the facts that the states contain; None where it is not known.

        Looked up they are only where both arms are known to run without any model: a model may say
        a fact in other words. What a reader found on one side cannot be compared with a look-up.
        """
        found = self.difference(SURVIVAL)
        if found is None or self.base.read != self.new.read:
            return None
        if self.base.read:
            return found
        known = all(side.known_mechanical for side in self.sides)
        return self._exactly(found, SURVIVAL) if known else None

    @cached_property
    def decision(self) -> Decision:
        """The decision on the measure that decides."""
        return decide(self.knowledge, self.margin, self.failing, self.facts_kept)

    @cached_property
    def elsewhere(self) -> Decision | None:
        """The same test for more conversations like these.

        None with a single one, or without enough grades.
        """
        if self.knowledge.elsewhere is None or self.ungraded:
            return None
        return decide(replace(self.knowledge, here=None), self.margin, self.failing)

    @property
    def ungraded(self) -> bool:
        """Whether so many grades are missing that nothing can be told.

        That an arm fails more can be: it does not hang on the grades of what did not fail.
        """
        return self.decision.verdict != "fails more" and too_few_grades(*self.failed)

    @cached_property
    def retention(self) -> tuple[Retention, Retention] | None:
        """Where both sides are in knowledge between the arms none and full.

        None without those arms by the same readers, or where they lack too many grades.
        """
        kept = []
        for side, controls in zip(self.sides, self.controls, strict=True):
            if isinstance(controls, str):
                return None
            floor, ceiling = (
                values(with_states(each.samples), KNOWLEDGE)
                for each in (controls.floor, controls.ceiling)
            )
            own = side.values(KNOWLEDGE)
            found = retention(own, floor, ceiling, closest=CLOSEST)
            if found is None or found.probes < MIN_CONTROLLED * len(own.by_item):
                return None
            kept.append(found)
        return kept[0], kept[1]

    @property
    def narrower(self) -> Retention | None:
        """The controls of the side whose reader has the smaller range; None if not known."""
        return min(self.retention, key=lambda kept: kept.reach) if self.retention else None

    @property
    def no_controls(self) -> str:
        """Why nothing is known of the range of the reader; empty if it is."""
        if self.retention:
            return ""
        why = next((each for each in self.controls if isinstance(each, str)), "")
        return why or "too few probes have a grade in both of them"

    @property
    def weak_reader(self) -> bool:
        """Whether a reader answers too little even from everything."""
        return self.narrower is not None and self.narrower.reach < MIN_RANGE

    @cached_property
    def same_answers(self) -> int:
        """How many answers both sides gave, if they are the same ones, byte for byte; else 0.

        Each must come as often on both sides, by its share where one has more epochs. Where
        anything failed they are not the same.
        """
        if not all(side.samples["scored"].all() for side in self.sides):
            return 0
        first, second = (
            samples.groupby(["unit", "probe_id"])["answer"].value_counts(normalize=True)
            for samples in self._asked
        )
        return len(self._asked[0]) if first.to_dict() == second.to_dict() else 0

    @cached_property
    def same_states(self) -> bool:
        """Whether both answered from the same states, each as often, byte for byte."""
        first, second = map(_states_by_unit, self.sides)
        return all(first[unit] == second[unit] for unit in first.keys() & second.keys())

    @cached_property
    def blind(self) -> bool:
        """Whether the embedded model compressed, and made the same states of different arms.

        It works on the messages and the budget and reads no prompt, so it cannot tell what a
        language model would make of what the arms differ in.
        """
        expected = self.same_arm and len(self.mechanical) == 2
        return not expected and any(side.stood_in for side in self.sides) and self.same_states

    @cached_property
    def same_arm(self) -> bool:
        """Whether both sides are runs of one arm."""
        return same_arm(self.base, self.new)

    @property
    def mechanical(self) -> list[str]:
        """Labels of the sides whose compressions are all the same."""
        return [side.label for side in self.sides if side.mechanical]

    @cached_property
    def more(self) -> "More | None":
        """The runs needed to tell; None if these tell."""
        decided = self.outcome[0] != "cannot tell" or self.decision.verdict != "cannot tell"
        if decided or self.weak_reader or self.ungraded or self.blind:
            return None
        from compression_eval.analysis.statistics.power import what_would_tell

        return what_would_tell(self.knowledge, self.margin)

    # ----- what says where to look

    @cached_property
    def lines(self) -> Lines:
        """The other measures that both sides have; one family of tests."""
        return self._judged({"": self.sides}, [name for name in HEADLINE if name != self.decides])

    @cached_property
    def breakdowns(self) -> dict[str, Lines]:
        """The lines of each group of a column, a family of tests each; of two groups or more."""
        found = {}
        for column in BREAKDOWNS:
            cells = [side.samples[column].dropna() for side in self.sides]
            groups = sorted({str(value) for each in cells for value in each})
            parts = {
                group: tuple(
                    replace(side, samples=side.samples[side.samples[column] == group])
                    for side in self.sides
                )
                for group in groups
            }
            if len(groups) > 1 and (lines := self._judged(parts, IN_GROUPS)):
                found[column] = lines
        return found

    def _judged(self, parts: Mapping[str, Sequence[Arm]], measures: Collection[str]) -> Lines:
        """Return the verdicts on some measures of some groups, all of them one family of tests."""
        known = {
            (group, name): difference
            for group, sides in parts.items()
            for name in measures
            if (difference := paired_difference(*(side.values(name) for side in sides)))
        }
        known = known_exactly(known, {key for key in known if key[1] in self.exact})
        thresholds = {key: threshold_of(key[1], self.margin) for key in known}
        limits = {
            key: shown_change(each, key[1]).lstrip("+")
            for key, each in thresholds.items()
            if key[1] in SHARES
        }
        return judge(known, thresholds, failures_rise=self.failures_rise, limits=limits)

    @cached_property
    def facts(self) -> list[FactChange]:
        """Facts that came or went."""
        return fact_changes(self.base, self.new)

    @cached_property
    def flips(self) -> list[Flip]:
        """Probes that are missed on one side only."""
        return flips(self.base, self.new)

    # ----- in words

    @cached_property
    def outcome(self) -> tuple[Outcome, str]:
        """The outcome of the comparison, and why."""
        if self.decision.facts_lost:
            told = self.decision.verdict != "cannot tell" and not self.ungraded
            beside = f"; {self._why}" if told else ""
            return "regression", f"facts are lost from the states: {self.facts_words}{beside}"
        if self.decision.regression and not self.ungraded:
            return "regression", self._why
        if self.same_answers and not self.blind:
            said = f"all {self.same_answers} answers are byte for byte the same"
            if self.same_states:
                return "the same answers", f"nothing was compared: {said}"
            return "cannot tell", (
                f"{said}, from states that are not: this reader does not see what differs"
            )
        doubt = self._doubt()
        return ("cannot tell", doubt) if doubt else ("no regression", self._why)

    def _doubt(self) -> str:
        """Return why it is not shown that nothing is lost; empty if it is."""
        if self.ungraded:
            base, new = (f"{each.ungraded} of {each.samples}" for each in self.failed)
            return (
                "the grader failed on too many answers, or not alike on both sides "
                f"(base {base}, new {new}), which says nothing of the arms; "
                "grade them again: inspect score LOG"
            )
        if self.blind:
            return (
                "the embedded model, which compressed here and reads no prompts, made the same "
                "states on both sides, so it does not tell these arms apart; compress with a "
                "model: --model-role compressor=MODEL"
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
    def controls_words(self) -> str:
        """What the reader with the smaller range answers from the controls, in words."""
        kept = self.narrower
        return f"knowledge {kept.ceiling:.2f} from full, {kept.floor:.2f} from none" if kept else ""

    @property
    def facts_words(self) -> str:
        """How many facts the states contain, in words; empty if it is not known."""
        seen, chance = self.facts_kept, self.decision.p_facts
        if seen is None:
            return ""
        base, new = (shown_value(mean, SURVIVAL) for mean in (seen.base, seen.new))
        p_value = "" if chance is None else f", p {shown_p(chance)}"
        by = "by the reader's word" if self.base.read else "by look-up"
        return f"{base} -> {new} ({shown_change(seen.estimate, SURVIVAL)}{p_value}) {by}"

    @property
    def _why(self) -> str:
        """The decision in words."""
        decision, seen = self.decision, self.knowledge
        one = seen.fixtures == 1
        where = "on this conversation" if one else f"on these {seen.fixtures} conversations"
        if decision.over_conversations:
            where += " (compressed once each: decided by the spread between conversations)"
        size = shown_change(abs(seen.estimate), KNOWLEDGE).lstrip("+")
        base, new = (f"{each.failed} of {each.samples} samples" for each in self.failed)
        chance = decision.p_failing
        p_value = "" if chance is None else f" (p {shown_p(chance)})"
        if decision.verdict == "fails more":
            return f"it fails more often: {new}, against {base}{p_value}"
        if decision.verdict != "cannot tell":
            is_, beside = decision.words
            by = f" by {size}" if is_ in ("worse", "better") else ""
            return f"knowledge is {is_}{by} {where}, {beside}"
        if decision.blocked:
            return (
                f"it fails more often, {new} against {base}, which may be chance{p_value} but "
                f"would cost more than {self.margin:.2f} if failures count as 0"
            )
        return f"whether knowledge is worse by more than {self.margin:.2f} cannot be told {where}"


def compare(
    base: Arm,
    new: Arm,
    controls: Sequence[Controls | str],
    *,
    margin: float | None = None,
    allowed: Collection[str] = (),
) -> Comparison:
    """Compare two sides.

    Args:
        base: One arm.
        new: The arm that is to be judged.
        controls: Of both sides; why there are none where there are none.
        margin: The loss of a score (0 to 5) that is too much. If None, the smaller of
            `DEFAULT_THRESHOLD` and a tenth of the range of the controls.
        allowed: Conditions that need not hold; names of `CONDITIONS`.

    Raises:
        DataError: They cannot be compared, or have no probe in common.
    """
    differing = check_comparable(base, new, allowed)
    base, new = (replace(side, samples=with_states(side.samples)) for side in (base, new))
    comparison = Comparison(base, new, margin, controls=controls, allowed=differing)
    _ = comparison.knowledge  # raises where there is nothing to compare
    return comparison


def _states_by_unit(side: Arm) -> dict[str, dict[str, float]]:
    """Return the share of each state, by its digest, among the states of each unit."""
    rows = states_in(side.samples)[["unit", "log_path", "sample", "epoch"]]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for unit, path, sample, epoch in rows.itertuples(index=False, name=None):
        with reading(path):
            read = read_eval_log_sample(
                path, sample, epoch, resolve_attachments=True, exclude_fields={"events"}
            )
        recorded = Seen(read, path).recorded
        found[unit][digest(render_messages(recorded.context)) if recorded else ""] += 1
    return {
        unit: {name: count / states.total() for name, count in states.items()}
        for unit, states in found.items()
    }
