"""The page's tables of the figures, ready to be put in place."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compression_eval.analysis.comparison.measures import HEADLINE, RECALL, SURVIVAL
from compression_eval.analysis.comparison.measures import shown_change as change
from compression_eval.analysis.comparison.measures import shown_p as probability
from compression_eval.analysis.report.arms import Arm
from compression_eval.analysis.report.costs import Failures
from compression_eval.analysis.report.figures import Figures
from compression_eval.analysis.report.misses import Miss
from compression_eval.analysis.report.published import Published
from compression_eval.analysis.report.retained import Pair
from compression_eval.analysis.report.scores import GROUPS, TABLE_MEASURES, Row
from compression_eval.analysis.report.wording import (
    DASH,
    between,
    decimal,
    percent,
    shown,
    title_of,
    whole,
)
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.grading.rubric import KNOWLEDGE, OVERALL, structure

_A_POINT = 1e-6
"""An interval narrower than this is one value."""


@dataclass(frozen=True)
class Shown:
    """A cell of a table."""

    text: str
    note: str = ""
    """Stands beside it, smaller."""
    limits: str = ""
    """Stands under it, smaller: its intervals, one on a line, or an arm's settings."""


@dataclass(frozen=True)
class Grid:
    """A table; the first column names its rows."""

    heads: list[str]
    rows: list[list[Shown]]
    texts: frozenset[int] = field(default_factory=frozenset)
    """Columns that hold running text."""
    total: bool = False
    """Whether the last row sums up the others."""


def summary(of: Figures) -> Grid:
    """Return one row per arm: what somebody decides by."""
    heads = ["Arm", "Knowledge", "Failed", "Retention", "Tokens left", "Standing"]
    heads += [*map(title_of, (OVERALL, RECALL, SURVIVAL)), "Removed"]
    standing = {point.arm: point for point in of.frontier.points}
    rows = []
    for arm in of.arms:
        figures = of.of_arm[arm.name]
        named = [each for each in arm.settings.split(", ") if each not in arm.name]
        cells = [Shown(arm.name, _marks(of, arm), ", ".join(named))]
        kept = of.retained[arm.name].measures.get(KNOWLEDGE) if arm.name in of.retained else None
        share = kept.share if kept else None
        point = standing.get(arm.name)
        tokens = figures.costs.tokens_after if point is None else point.tokens
        cells += [
            _estimate(of, arm, KNOWLEDGE, intervals=True),
            _failed(figures.failures),
            Shown(percent(share), limits=_percents(kept.here) if kept else ""),
            Shown(whole(tokens)),
        ]
        if arm.role:
            cells.append(Shown(f"control: {arm.role}"))
        elif point is None:
            cells.append(Shown(DASH))
        else:
            by = point.dominated_by
            cells.append(Shown(f"dominated by {by}" if by else "not dominated"))
        cells += [_estimate(of, arm, name, intervals=False) for name in (OVERALL, RECALL, SURVIVAL)]
        rows.append([*cells, Shown(percent(figures.costs.removed, 1))])
    return Grid(heads, rows, texts=frozenset({heads.index("Standing")}))


def _failed(failures: Failures) -> Shown:
    """Return what failed in an arm: samples, and under it the compressions among them."""
    failed = failures.samples - failures.scored
    states = sum(failures.failed_states.values())
    notes = [f"{states} of {failures.states} states"] if states else []
    notes += [f"{failures.suspect} suspect"] if failures.suspect else []
    return Shown(f"{failed} of {failures.samples}" if failed else "0", limits="\n".join(notes))


def pairs(of: Figures) -> Grid | None:
    """Return the difference between every two arms; None if there are no two."""
    rows = [
        [
            Shown(pair.higher),
            Shown(pair.lower),
            Shown(change(pair.change, KNOWLEDGE, DEFAULT_THRESHOLD)),
            Shown(between(pair.interval) if pair.interval else "exact" if _certain(pair) else DASH),
            Shown(DASH if _certain(pair) else probability(pair.p_value).replace("-", DASH)),
            Shown("the same answers" if _same(of, pair) else pair.verdict),
        ]
        for pair in of.frontier.pairs
    ]
    heads = ["Higher", "Lower", "Difference", "95 % interval", "p (Holm)", "Verdict"]
    return Grid(heads, rows, texts=frozenset({1, 5})) if rows else None


def _same(of: Figures, pair: Pair) -> bool:
    return any({pair.higher, pair.lower} <= set(names) for names in of.same_answers)


def _certain(pair: Pair) -> bool:
    return pair.interval is None and pair.verdict != "cannot tell"


def scores(rows: Sequence[Row]) -> Grid:
    """Return an arm's table by conversation."""
    return Grid(
        ["Fixture", "Probes", *map(title_of, TABLE_MEASURES)],
        [
            [
                Shown(row.label),
                Shown(str(row.probes)),
                *(
                    Shown(
                        decimal(cell.value), f"({cell.probes})" if cell.probes < row.probes else ""
                    )
                    for cell in (row.cells[measure] for measure in TABLE_MEASURES)
                ),
            ]
            for row in rows
        ],
        total=len(rows) > 1,
    )


def intervals(of: Figures) -> Grid:
    """Return the means of every measure with both intervals."""
    rows = []
    for arm in of.arms:
        cells = [Shown(arm.name)]
        for measure in HEADLINE:
            found = of.of_arm[arm.name].estimates.get(measure)
            if found is None:
                cells.append(Shown(DASH))
                continue
            here = "no spread" if found.no_spread else between(found.here, measure)
            limits = f"{here}\n{between(found.elsewhere, measure)}"
            cells.append(Shown(shown(measure, found.mean), limits=limits))
        rows.append(cells)
    return Grid(["Arm", *map(title_of, HEADLINE)], rows)


def retention(of: Figures) -> Grid | None:
    """Return the normalised retention on every measure; None without controls."""
    if not of.retained:
        return None
    rows = []
    for name, found in of.retained.items():
        arm = next(arm for arm in of.arms if arm.name == name)
        cells = [Shown(name), Shown(str(found.conversations)), Shown(arm.failed or "0")]
        for measure in HEADLINE:
            kept = found.measures.get(measure)
            if kept is None:
                cells.append(Shown(DASH))
            elif kept.share is None:
                cells.append(Shown("close", limits=f"{kept.floor:.2f}, {kept.ceiling:.2f}"))
            else:
                both = [_percents(kept.here), _percents(kept.elsewhere)]
                cells.append(
                    Shown(percent(kept.share), limits="\n".join(each or DASH for each in both))
                )
        rows.append(cells)
    return Grid(["Arm", "Conversations", "Failed", *map(title_of, HEADLINE)], rows)


def groups(of: Figures) -> list[tuple[str, Grid]]:
    """Return a table for each property of probes that varies: an arm per row."""
    found = []
    for column, title in GROUPS.items():
        names = sorted({name for arm in of.arms for name in of.of_arm[arm.name].groups[column]})
        if len(names) < 2:
            continue
        rows = []
        for arm in of.arms:
            cells = [Shown(arm.name)]
            for name in names:
                cell = of.of_arm[arm.name].groups[column].get(name)
                cells.append(
                    Shown(decimal(cell.value), f"({cell.probes})") if cell else Shown(DASH)
                )
            rows.append(cells)
        found.append((title, Grid(["Arm", *names], rows)))
    return found


def misses(found: Sequence[Miss]) -> Grid:
    """Return an arm's misses."""
    return Grid(
        ["Conversation", "Probe", "Knowledge", "Facts not in the answer", "Worst criterion"],
        [
            [
                Shown(miss.unit),
                Shown(miss.probe),
                Shown(decimal(miss.score)),
                Shown(", ".join(miss.lost)),
                Shown(f"{miss.criterion}: {miss.reason}" if miss.criterion else ""),
            ]
            for miss in found
        ],
        texts=frozenset({1, 3, 4}),
    )


def costs(of: Figures) -> Grid:
    """Return what every arm costs."""
    heads = ["Arm", "Compressions", "Calls", "Tokens in", "Tokens out", "Seconds"]
    heads += ["Answer in", "out", "cached", "Grader in", "out", "cached", "All tokens", "Dollars"]
    rows = []
    for arm in of.arms:
        cost = of.of_arm[arm.name].costs
        numbers = [
            decimal(cost.calls, 1),
            whole(cost.input_tokens),
            whole(cost.output_tokens),
            decimal(cost.seconds),
            whole(cost.answer_input_tokens),
            whole(cost.answer_output_tokens),
            whole(cost.answer_cached_tokens),
            whole(cost.grader_input_tokens),
            whole(cost.grader_output_tokens),
            whole(cost.grader_cached_tokens),
            whole(cost.total_tokens),
            decimal(cost.dollars),
        ]
        rows.append([Shown(arm.name), Shown(str(cost.compressions)), *map(Shown, numbers)])
    return Grid(heads, rows)


def failures(of: Figures) -> Grid:
    """Return what failed in every arm."""
    rows = []
    for arm in of.arms:
        found = of.of_arm[arm.name].failures
        counted = [f"{status} {n}" for status, n in found.failed_states.items()]
        rows.append(
            [
                Shown(arm.name),
                Shown(f"{found.scored} of {found.samples}"),
                Shown(str(found.abstained)),
                Shown(f"{sum(found.failed_states.values())} of {found.states}"),
                Shown(str(found.suspect)),
                Shown(decimal(found.lower_bound)),
                Shown(", ".join(counted)),
                Shown(", ".join(f"{reason} {n}" for reason, n in found.reasons.items())),
            ]
        )
    heads = ["Arm", "Scored", "Abstained", "Failed states", "Suspect states", "Bound"]
    heads += ["How they ended", "Samples without a score"]
    return Grid(heads, rows, texts=frozenset({6, 7}))


def reference(published: Published) -> Grid:
    """Return the published figures."""
    return Grid(
        [
            "Method",
            *map(title_of, (*structure().dimensions, OVERALL)),
            "Mean of the six",
            "Tokens removed",
        ],
        [
            [
                Shown(method.method),
                *(Shown(decimal(method.scores[name])) for name in structure().dimensions),
                Shown(decimal(method.overall)),
                Shown(decimal(method.mean)),
                Shown(percent(method.tokens_removed, 1)),
            ]
            for method in published.methods
        ],
    )


def _estimate(of: Figures, arm: Arm, measure: str, *, intervals: bool) -> Shown:
    found = of.of_arm[arm.name].estimates.get(measure)
    if found is None:
        return Shown(DASH)
    limits = between(found.here, measure) if intervals and not found.no_spread else ""
    return Shown(shown(measure, found.mean), limits=limits)


def _marks(of: Figures, arm: Arm) -> str:
    marks = ["no language model"] if arm.offline and not of.offline else []
    return ", ".join([*marks, *(["self-graded"] if arm.self_graded else [])])


def _percents(limits: tuple[float, float] | None) -> str:
    if limits is None or limits[1] - limits[0] < _A_POINT:
        return ""
    return f"{percent(limits[0])} to {percent(limits[1])}"
