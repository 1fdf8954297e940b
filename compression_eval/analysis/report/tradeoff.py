"""Normalised retention, quality against retained tokens, and which arms differ."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Literal

from compression_eval.analysis.comparison.measures import (
    CLOSEST,
    HEADLINE,
    SHARES,
    exact_of,
    failed_by_arm,
    values,
)
from compression_eval.analysis.statistics.intervals import (
    LEVEL,
    ArmValues,
    Limits,
    Retention,
    between_states,
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
    from pandas import DataFrame, Series

SAME_SIZE = 0.05
"""States whose sizes differ by less than this share are as large as each other."""

MIN_FOR_LEAD = 3
"""Arms from which on the best one leads partly by having been picked."""

_DRAWS = 20_000

MIN_ANSWERED = 2 / 3
"""Share of the probes that all arms must have an answer to; with fewer, an arm is left out."""

SIMILAR_SIZE = 0.25
"""Arms up to this share larger than the smallest of them are of about one size."""


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
    token_counter: str
    models: str = ""
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
    interval: Limits | None
    """On these conversations."""
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
    """Whether the higher arm is shown to be higher, on these conversations. Headline and standing
    rest on this and on `extent` alone."""
    over_conversations: bool = False
    """Whether by the spread between conversations, for want of a second compression."""


@dataclass(frozen=True)
class Size:
    """Arms whose states are about as large as each other."""

    tokens: float
    best: str
    quality: float
    """Of the best one."""
    close: list[str]
    """Arms that are less than the threshold away from the best one, perhaps significantly worse."""
    unclear: list[str]
    """Arms that these runs cannot tell from the best one."""
    worse: list[str]
    fails_less: list[str]
    """Arms that are lower, but the best one fails more often, so it is not called better."""
    dominated_by: str = field(default="", kw_only=True)
    """An arm with smaller states that dominates the best one."""


@dataclass(frozen=True)
class Lead:
    """The lead of the best of several arms, beside the lead expected by chance."""

    arm: str
    arms: int
    above: float
    """Its mean less the mean of all of them."""
    by_chance: float
    """Mean lead of the best of as many equal arms."""
    seldom_more: float
    """The lead that equal arms exceed in one of 20 cases."""


@dataclass(frozen=True)
class Whole:
    """An arm on all conversations that the arms share, whoever failed on them."""

    failed: str
    """How many samples have no score, of all; empty if every sample has one."""
    tokens: float
    """Mean size of a state, on the conversations of which it has one; each counts the same."""
    conversations: int
    """How many these are."""


@dataclass(frozen=True)
class Frontier:
    """Quality against retained tokens."""

    probes: int
    """Probes that all these arms have an answer to; 0 if there is none, and then no point."""
    points: list[Point]
    pairs: list[Pair]
    """Every two arms, the largest difference first."""
    sizes: list[Size]
    """The smallest first."""
    left_out: list[str]
    """Arms without any score, or that failed too often for the others to be compared with them."""
    lead: Lead | None = None
    """Of the best of three arms or more, controls left out."""
    conversations: tuple[int, int] = (0, 0)
    """Those of the probes, and all that the arms share."""
    whole: dict[str, Whole] = field(default_factory=dict)
    """By arm; empty where no arm failed, so that the points say the same."""


def retained(arms: list[ReportedArm], by_arm: "dict[str, DataFrame]") -> dict[str, Retained]:
    """Return the retention of the arms that have both controls beside them."""
    controls: dict[str, tuple[str, str]] = {}
    for arm in arms:
        # Controls that were answered and graded by the same models.
        beside = [each for each in arms if each.scored and each.models == arm.models]
        floor = next((each.name for each in beside if each.role == "floor"), None)
        ceiling = next((each.name for each in beside if each.role == "ceiling"), None)
        if not arm.role and floor and ceiling:
            controls[arm.name] = (floor, ceiling)
    measures: dict[str, dict[str, Retention]] = {name: {} for name in controls}
    for measure in HEADLINE:
        closest = CLOSEST / MAX_SCORE if measure in SHARES else CLOSEST
        # Many arms have the same controls; those of a single measure are held at a time.
        held = {name: values(by_arm[name], measure) for name in {*chain(*controls.values())}}
        for name, (floor, ceiling) in controls.items():
            own = values(by_arm[name], measure)
            share = retention(own, held[floor], held[ceiling], closest=closest)
            if share is not None:
                measures[name][measure] = share
    return {
        name: Retained(floor, ceiling, own, own[KNOWLEDGE].conversations if KNOWLEDGE in own else 0)
        for (name, (floor, ceiling)), own in zip(controls.items(), measures.values(), strict=True)
    }


def frontier(arms: list[ReportedArm], by_arm: "dict[str, DataFrame]") -> Frontier:
    """Return every arm's size and quality, the differences, and the dominated arms."""
    answered = {arm: rows[~failed_by_arm(rows)] for arm, rows in by_arm.items()}
    scored = {arm.name: values(answered[arm.name], KNOWLEDGE) for arm in arms}
    present = [arm for arm in arms if arm.scored and scored[arm.name].by_item]
    having = [set(values(by_arm[arm.name], KNOWLEDGE).by_item) for arm in present]
    shared = set.intersection(*having) if having else set()
    if not shared:
        return Frontier(0, [], [], [], [arm.name for arm in arms if arm not in present])
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
    units = [{unit for unit, _ in some} for some in (items, shared)]
    points = [_point(arm, kept[arm.name], answered[arm.name], units[0]) for arm in held]
    failing = {arm.name: 1 - arm.scored / arm.samples for arm in held}
    pairs = _pairs([arm for arm in held if not arm.role], kept, failing)
    points = [
        replace(point, dominated_by=_dominating(point, points, pairs, failing)) for point in points
    ]
    whole = {}
    for arm in present if any(arm.failed for arm in present) else ():
        sizes = _sizes_left(answered[arm.name], units[1])
        whole[arm.name] = Whole(arm.failed, float(sizes.mean()), len(sizes))
    fixture_of = {unit: name for each in scored.values() for unit, name in each.fixture_of.items()}
    answered_of, shared_of = (len({fixture_of[unit] for unit in some}) for some in units)
    return Frontier(
        probes=len(items),
        points=points,
        pairs=pairs,
        sizes=_sizes(points, pairs),
        left_out=[arm.name for arm in arms if arm not in held],
        lead=_lead({arm.name: kept[arm.name] for arm in held if not arm.role}),
        conversations=(answered_of, shared_of),
        whole=whole,
    )


def _lead(arms: Mapping[str, ArmValues]) -> Lead | None:
    """Return the lead of the best arm; None for a few, or where nothing was compressed twice."""
    spreads = [between_states((arm,)) for arm in arms.values()]
    known = [spread for spread in spreads if spread is not None]
    if len(arms) < MIN_FOR_LEAD or len(known) < len(spreads):
        return None
    import numpy as np

    drawn = np.random.default_rng(0).standard_normal((_DRAWS, len(known)))
    drawn *= [spread.error for spread in known]
    ahead = drawn.max(axis=1) - drawn.mean(axis=1)
    means = {name: arm.mean() for name, arm in arms.items()}
    best = max(means, key=lambda name: means[name])
    above = means[best] - sum(means.values()) / len(means)
    often = float(np.quantile(ahead, LEVEL))
    return Lead(best, len(arms), above, float(ahead.mean()), often)


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
    mean, spread = quality.mean(), between_states((quality,))
    interval = spread.interval(mean) if spread else None
    tokens = float(_sizes_left(samples, units).mean())
    return Point(arm.name, tokens, mean, interval, "", bool(arm.role))


def _sizes_left(samples: "DataFrame", units: set[str]) -> "Series[float]":
    """Return the mean size of an arm's states by conversation, of those that have one."""
    states = samples[samples["unit"].isin(units)].drop_duplicates(["log_path", "unit", "state"])
    return states.groupby("fixture")["tokens_state"].mean().dropna()


def _pairs(
    arms: Sequence[ReportedArm], kept: Mapping[str, ArmValues], failing: Mapping[str, float]
) -> list[Pair]:
    """Return a verdict on each two arms, all of them one family of tests."""
    exact = {
        arm.name: exact_of(
            arm.compressor, arm.compressor_model, arm.model, arm.graders.split("; ")
        ).issuperset(structure().dimensions)
        for arm in arms
    }
    differences = {}
    for two in combinations([arm.name for arm in arms], 2):
        higher, lower = sorted(two, key=lambda name: -kept[name].mean())
        if difference := paired_difference(kept[lower], kept[higher]):
            differences[higher, lower] = difference
    same = {pair for pair in differences if all(exact[name] for name in pair)}
    # As `decide` does: the spread between conversations holds what compressions vary by as well.
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


def _sizes(points: Sequence[Point], pairs: Sequence[Pair]) -> list[Size]:
    """Return the arms of about one size together, the smallest first."""
    between = {frozenset((pair.higher, pair.lower)): pair for pair in pairs}
    together: list[list[Point]] = []
    for point in sorted(points, key=lambda each: each.tokens):
        if point.control:
            continue
        if together and point.tokens <= together[-1][0].tokens * (1 + SIMILAR_SIZE):
            together[-1].append(point)
        else:
            together.append([point])
    sizes = []
    for alike in together:
        best, *others = sorted(alike, key=lambda each: -each.quality)
        told: dict[str, list[str]] = {"close": [], "unclear": [], "worse": [], "fails less": []}
        for each in others:
            pair = between.get(frozenset((each.arm, best.arm)))
            place = "unclear"
            if pair is not None and pair.extent == "less than the margin":
                place = "close"
            elif pair is not None and pair.differs:
                # Shown, and yet not called better: `_pairs` says so of arms that fail more.
                place = "worse" if pair.verdict == "better" else "fails less"
            told[place].append(each.arm)
        tokens = sum(each.tokens for each in alike) / len(alike)
        size = Size(tokens, best.arm, best.quality, *told.values())
        sizes.append(replace(size, dominated_by=best.dominated_by))
    return sizes
