"""Arms held side by side: retention, verdicts on every two, and which dominate others.

`retained` puts an arm between its controls. `frontier` takes the probes that every arm has an
answer to (an arm that fails too often is left out first), gives a verdict on every two arms there,
and finds the arms that another one dominates. Its means are for this order alone; the mean of an
arm that a report shows is in `figures`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from compression_eval.analysis.comparison.measures import (
    CLOSEST,
    HEADLINE,
    SHARES,
    exact_of,
    values,
)
from compression_eval.analysis.statistics.intervals import (
    ArmValues,
    Limits,
    Retention,
    paired_difference,
    retention,
)
from compression_eval.analysis.statistics.significance import (
    DEFAULT_THRESHOLD,
    Extent,
    Verdict,
    judge,
    known_exactly,
)
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, structure

if TYPE_CHECKING:
    from pandas import DataFrame

SAME_SIZE = 0.05
"""States whose sizes differ by less than this share are as large as each other."""

MIN_ANSWERED = 2 / 3
"""Share of the probes that all arms must have an answer to; with fewer, an arm is left out."""

Role = Literal["ceiling", "floor", ""]


@dataclass(frozen=True)
class ReportedArm:
    """One configuration, with all its runs."""

    name: str
    compressor: str
    compressor_args: str
    """As JSON."""
    settings: str
    """The same for people, with what has a value."""
    role: Role
    """Which control it is, if it is one."""
    model: str
    compressor_model: str
    graders: str
    """Who graded, with parameters where the log has them."""
    offline: bool
    """Whether no language model was involved."""
    self_graded: bool
    """Whether a model judged its own answers."""
    logs: list[str]
    epochs: int
    """Per log; the most of them."""
    samples: int
    scored: int
    models: str
    """The model under test and the graders with all their settings."""

    @property
    def failed(self) -> str:
        """How many samples have no score, of all; empty if every sample has one."""
        missing = self.samples - self.scored
        return f"{missing} of {self.samples} failed" if missing else ""


@dataclass(frozen=True)
class Retained:
    """Normalised retention of one arm on every measure."""

    floor: str
    ceiling: str
    measures: dict[str, Retention]
    conversations: int
    """Those that the leading measure rests on: all three have a value on a probe of them."""


@dataclass(frozen=True)
class Point:
    """An arm as quality against retained tokens."""

    arm: str
    tokens: float
    """Mean size of a state, on the conversations of these probes; each counts the same."""
    quality: float
    """Mean of knowledge on the probes that every arm has an answer to."""
    dominated_by: str
    """An arm that is shown to be better, keeps no more tokens and fails no more often; empty if
    there is none."""
    control: bool
    """Whether it is a control, which takes no part in the frontier."""


@dataclass(frozen=True)
class Pair:
    """Two arms, neither of them a control, on the probes that every arm has an answer to."""

    higher: str
    """The arm with the higher mean."""
    lower: str
    change: float
    """How much higher."""
    interval: Limits | None
    """Of that, at 95 %; None if it is exact or not known."""
    p_value: float | None
    """Adjusted by Holm's method over all pairs; None where nothing is random."""
    verdict: Verdict
    """Of the higher one, as `compare` gives it with the lower one as base."""
    extent: Extent
    why: str
    """The verdict in words, or why there is none."""
    differs: bool
    """Whether the higher arm is shown to be higher, on these conversations."""
    over_conversations: bool = False
    """Whether by the spread between conversations, for want of a second compression."""


@dataclass(frozen=True)
class Frontier:
    """Quality against retained tokens."""

    probes: int
    """Probes that all these arms have an answer to; 0 if there is none, and then no point."""
    points: list[Point]
    pairs: list[Pair]
    """Every two arms, the largest difference first."""
    left_out: list[str]
    """Arms without any score, or that failed too often for the others to be compared with them."""


def retained(arms: list[ReportedArm], by_arm: "dict[str, DataFrame]") -> dict[str, Retained]:
    """Return the retention of the arms that have both controls next to them."""

    @cache
    def measured(name: str, measure: str) -> ArmValues:
        return values(by_arm[name], measure)

    found = {}
    for arm in arms:
        # Controls that were answered and graded by the same models.
        beside = [each for each in arms if each.scored and each.models == arm.models]
        floor = next((each.name for each in beside if each.role == "floor"), None)
        ceiling = next((each.name for each in beside if each.role == "ceiling"), None)
        if arm.role or not floor or not ceiling:
            continue
        measures = {}
        for measure in HEADLINE:
            own = (measured(name, measure) for name in (arm.name, floor, ceiling))
            closest = CLOSEST / MAX_SCORE if measure in SHARES else CLOSEST
            if share := retention(*own, closest=closest):
                measures[measure] = share
        leading = measures.get(KNOWLEDGE)
        conversations = leading.conversations if leading else 0
        found[arm.name] = Retained(floor, ceiling, measures, conversations)
    return found


def frontier(arms: list[ReportedArm], by_arm: "dict[str, DataFrame]") -> Frontier:
    """Return every arm's size and quality, the differences, and the dominated arms."""
    scored = {arm.name: values(by_arm[arm.name], KNOWLEDGE) for arm in arms}
    present = [arm for arm in arms if arm.scored and scored[arm.name].by_item]
    asked = [set(by_arm[arm.name].set_index(["unit", "probe_id"]).index) for arm in present]
    shared = set.intersection(*asked) if asked else set()
    if not shared:
        return Frontier(0, [], [], [arm.name for arm in arms if arm not in present])
    lost = {arm.name: shared.difference(scored[arm.name].by_item) for arm in present}
    # Controls are compared with nobody, so they take no probe from the others.
    deciding = [arm for arm in present if not arm.role] or list(present)
    while True:
        items = sorted(shared.difference(*(lost[arm.name] for arm in deciding)))
        if len(deciding) < 2 or len(items) >= MIN_ANSWERED * len(shared):
            break
        # Of several that failed as often the one that comes to least.
        deciding.remove(max(reversed(deciding), key=lambda arm: len(lost[arm.name])))
    held = [
        arm
        for arm in present
        if (arm in deciding or arm.role) and items and lost[arm.name].isdisjoint(items)
    ]
    kept = {arm.name: scored[arm.name].only(items) for arm in held}
    units = {unit for unit, _ in items}
    points = [_point(arm, kept[arm.name], by_arm[arm.name], units) for arm in held]
    failing = {arm.name: 1 - arm.scored / arm.samples for arm in held}
    pairs = _pairs([arm for arm in held if not arm.role], kept, failing)
    points = [
        replace(point, dominated_by=_dominating(point, points, pairs, failing)) for point in points
    ]
    return Frontier(
        probes=len(items),
        points=points,
        pairs=pairs,
        left_out=[arm.name for arm in arms if arm not in held],
    )


def same_answers(arms: Sequence[ReportedArm], by_arm: "Mapping[str, DataFrame]") -> list[list[str]]:
    """Return the names of arms that gave the same answers to every probe, each as often.

    Left out are controls, and arms in which anything failed: a failure is no answer.
    """
    by_answers: dict[frozenset[tuple[tuple[str, ...], int]], list[str]] = {}
    for arm in arms:
        samples = by_arm[arm.name]
        if arm.role or samples.empty or samples["failure"].astype(bool).any():
            continue
        answers = samples[["unit", "probe_id", "answer"]].itertuples(index=False, name=None)
        by_answers.setdefault(frozenset(Counter(answers).items()), []).append(arm.name)
    return [names for names in by_answers.values() if len(names) > 1]


def _point(arm: ReportedArm, quality: ArmValues, samples: "DataFrame", units: set[str]) -> Point:
    answered = samples[samples["unit"].isin(units) & samples[KNOWLEDGE].notna()]
    states = answered.drop_duplicates(["log_path", "unit", "state"])
    tokens = float(states.groupby("fixture")["tokens_state"].mean().mean())
    return Point(arm.name, tokens, quality.mean(), "", bool(arm.role))


def _pairs(
    arms: Sequence[ReportedArm], kept: Mapping[str, ArmValues], failing: Mapping[str, float]
) -> list[Pair]:
    """Return a verdict on each two arms, all of them one family of tests."""
    exact = {
        arm.name: exact_of(
            arm.compressor, arm.compressor_model, arm.model, arm.graders.split("; "), read=False
        ).issuperset(structure().dimensions)
        for arm in arms
    }
    differences = {}
    for two in combinations([arm.name for arm in arms], 2):
        higher, lower = sorted(two, key=lambda name: -kept[name].mean())
        if difference := paired_difference(kept[lower], kept[higher]):
            differences[higher, lower] = difference
    same = {pair for pair in differences if all(exact[name] for name in pair)}
    # As `decide` does: the spread between conversations contains what compressions vary by as well.
    once = {
        pair: replace(each, here=each.elsewhere)
        for pair, each in differences.items()
        if pair not in same and each.here is None and each.elsewhere is not None
    }
    differences |= once
    thresholds = dict.fromkeys(differences, DEFAULT_THRESHOLD)
    rising = {(high, low) for high, low in differences if failing[high] > failing[low]}
    judged = judge(known_exactly(differences, same), thresholds, failures_rise=rising)
    pairs = []
    for names, each in judged.items():
        seen = each.difference
        limits = seen.here.interval(seen.estimate) if seen.here and names not in same else None
        p_value, verdict, extent = each.p_value, each.verdict, each.extent
        pair = Pair(*names, seen.estimate, limits, p_value, verdict, extent, each.why, each.differs)
        pairs.append(replace(pair, over_conversations=names in once))
    return sorted(pairs, key=lambda pair: -pair.change)


def _dominating(
    point: Point, points: Sequence[Point], pairs: Sequence[Pair], failing: Mapping[str, float]
) -> str:
    """Return the arm that dominates another one; empty if none does.

    It is shown to be better, keeps no more tokens and fails no more often. Since its mean is the
    higher one, on the same probes, no two arms can dominate each other, by way of others either.
    """
    between = {frozenset((pair.higher, pair.lower)): pair for pair in pairs}
    for other in sorted(points, key=lambda each: -each.quality):
        pair = between.get(frozenset((other.arm, point.arm)))
        if pair is None or failing[other.arm] > failing[point.arm]:
            continue
        better = pair.differs and pair.higher == other.arm
        if better and other.tokens <= point.tokens * (1 + SAME_SIZE):
            return other.arm
    return ""
