"""Charts of a report's figures, without text of conversations."""

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from compression_eval.analysis.comparison.measures import HEADLINE, SHARES
from compression_eval.analysis.report.drawing import (
    NARROW,
    Chart,
    Look,
    drawing,
    finished,
    looks,
    name_rows,
    new_figure,
    row_height,
)
from compression_eval.analysis.report.figures import Figures, Share
from compression_eval.analysis.report.sections import percent, title_of
from compression_eval.analysis.report.tradeoff import Point
from compression_eval.analysis.spending import FETCHING
from compression_eval.facts.life import AGE_GROUPS, Stage
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

MAX_IN_NARROW = 8
"""Arms whose labels fit into a narrow picture."""

MAX_TOGETHER = 6
"""Maximum arms in one readable radar."""

_PLACES = tuple(
    (distance * math.cos(turn * math.pi / 4), distance * math.sin(turn * math.pi / 4))
    for distance in (13, 24, 38, 56, 78, 104, 134)
    for turn in (0, 4, 2, 6, 1, 3, 5, 7)
)
"""Where a label may stand, as points from its mark, the best place first."""

_STAGES: Mapping[str, tuple[str, str]] = {
    "used": ("#0072B2", ""),
    "verbatim": ("#56B4E9", ""),
    "answered": ("#56B4E9", "//"),
    "answered_not_found": ("#9AD0F0", ".."),
    "survived": ("#B9DDF4", ""),
    "unused": ("#F0E442", ""),
    "unanswered": ("#F0E442", "//"),
    "never_fed": ("#E69F00", ""),
    "superseded": ("#CC79A7", ""),
    "distorted": ("#CC79A7", "//"),
    "dropped": ("#D55E00", ""),
    "lost": ("#8A3B00", ""),
    "unknown": ("#CCCCCC", ""),
    "not_in_history": ("#CCCCCC", "//"),
    "compression_failed": ("#555555", ""),
}
"""Colour and hatch; blue is in the answer, yellow in the state only, orange to brown is lost."""

_DARK = {"#0072B2", "#D55E00", "#8A3B00", "#555555"}

_COSTS: Sequence[tuple[str, str, str]] = (
    ("tokens per compression", "input_tokens", "output_tokens"),
    ("tokens per answer", "answer_input_tokens", "answer_output_tokens"),
    ("seconds per compression", "seconds", ""),
)
"""Panels of the costs: title, what goes in, what comes out."""

assert set(_STAGES) == set(get_args(Stage))  # noqa: S101  (a new stage needs a colour)

Looks = Mapping[str, Look]


def chart(of: Figures, name: str, *, narrow: bool = False) -> Chart | None:
    """Draw one of the `PICTURES`; None if there are no figures for it."""
    controls = frozenset(arm.name for arm in of.arms if arm.role)
    look = looks([arm.name for arm in of.arms], controls, narrow=narrow)
    for arm in of.arms:
        if arm.failed:
            label = f"{look[arm.name].label}\n({arm.failed})"
            look[arm.name] = replace(look[arm.name], label=label)
    with drawing():
        drawn = PICTURES[name](of, look, narrow)
    gc.collect()  # a figure refers to itself, and may hold 30 MB
    return drawn


# ----- quality against what is kept


def _frontier(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw every arm's knowledge against the tokens of its states.

    The controls are named and not drawn: beside a state of 100 tokens and one of 50,000 all
    others would be one heap.
    """
    known = [point for point in of.frontier.points if not math.isnan(point.tokens)]
    points = [point for point in known if not point.control] or known
    if not points:
        return None
    across = "tokens left (mean, logarithmic)"
    if not narrow:
        across = "tokens left after compression (mean over conversations, logarithmic)"
    figure = _scattered(points, looks, narrow, across)
    controls = [
        f"{point.arm} {point.quality:.2f} at {point.tokens:,.0f} tokens"
        for point in known
        if point not in points
    ]
    said = (
        "Means. Hollow marks are dominated by another arm; the broken line joins the best of the "
        "others."
    )
    if any(point.interval and point.interval[0] != point.interval[1] for point in points):
        said = (
            "Means with 95 % intervals on these conversations. Hollow marks are dominated by "
            "another arm, by the intervals; the broken line joins the best of the others by their "
            "means, and where intervals overlap the order may be chance."
        )
    return finished(
        figure,
        "frontier",
        "Quality against retained tokens",
        f"{said} On the probes that all have an answer to."
        + (f" Controls, not drawn: {'; '.join(controls)}." if controls else ""),
    )


def _spending(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw every arm's knowledge against the tokens of an answer, without and with fetching."""
    points: list[Point] = []
    marks: dict[str, Look] = {}
    for arm, ways in of.spending.items():
        for way, spent in ways.items():
            better = (
                other_arm
                for other_arm, others in of.spending.items()
                for other in others.values()
                if other.tokens < spent.tokens and (other.knowledge or 0) >= (spent.knowledge or 0)
            )
            name = f"{arm}, {way}"
            points.append(
                Point(name, spent.tokens, spent.knowledge or 0.0, None, next(better, ""), False)
            )
            more = " + fetching" if way == FETCHING else ""
            marks[name] = replace(looks[arm], label=f"{looks[arm].label}{more}")
    if not points:
        return None
    figure = _scattered(points, marks, narrow, "tokens per answer, fetching included (logarithmic)")
    return finished(
        figure,
        "spending",
        "Quality against tokens per answer, with and without fetching",
        "Input and output of all requests of an answer. Hollow marks are dominated, by the means: "
        "another is no worse and takes fewer tokens. The broken line joins the others.",
    )


def _scattered(points: Sequence[Point], looks: Looks, narrow: bool, across: str) -> "Figure":
    """Return a figure of marks with their names, and a line along those that none dominates."""
    if narrow:
        figure = new_figure(NARROW, 4 + 0.34 * len(points))
    else:
        figure = new_figure(10, 6) if len(points) > MAX_IN_NARROW else new_figure(6.7, 5)
    axes = figure.subplots()
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.tokens, -point.quality)):
        if not point.dominated_by and (not best or point.quality > best[-1].quality):
            best.append(point)
    line = ([point.tokens for point in best], [point.quality for point in best])
    style: dict[str, Any] = {"color": "#444444", "linewidth": 1.2, "linestyle": (0, (4, 2))}
    axes.step(*line, where="post", zorder=1, **style)
    for point in points:
        _mark(axes, point, looks[point.arm])
    _scales(axes, points, narrow, across)
    if narrow:
        figure.legend(loc="outside lower center", fontsize=9)
    else:
        _label(figure, axes, points, looks, best)
    return figure


def _mark(axes: "Axes", point: Point, look: Look) -> None:
    hollow = bool(point.dominated_by)
    if point.interval and point.interval[0] != point.interval[1]:
        axes.plot([point.tokens] * 2, point.interval, color=look.colour, linewidth=1.4, zorder=2)
    axes.plot(
        point.tokens,
        point.quality,
        look.marker,
        markersize=10,
        markeredgewidth=1.8,
        markeredgecolor=look.colour,
        markerfacecolor="white" if hollow else look.colour,
        linestyle="none",
        label=look.label.replace("\n", " "),
        zorder=3,
    )


def _scales(axes: "Axes", points: Sequence[Point], narrow: bool, across: str) -> None:
    tokens = [max(point.tokens, 1.0) for point in points]
    axes.set_xscale("log")
    # Room on both sides, so that labels of the outermost marks stay inside.
    room = 1.3 if narrow else 2.0
    first, last = min(tokens) / room, max(tokens) * room * 1.2
    axes.set_xlim(first, last)
    seen = [point.quality for point in points]
    seen += [limit for point in points for limit in point.interval or ()]
    middle = (max(seen) + min(seen)) / 2
    half = max(max(seen) - min(seen) + 0.3, 1.2) / 2
    low = max(min(max(middle - half, 0.0), MAX_SCORE - 2 * half), 0.0)
    axes.set_ylim(low, min(low + 2 * half, MAX_SCORE))
    ticks = [step * 10**power for power in range(8) for step in (1, 2, 5)]
    ticks = [tick for tick in ticks if first <= tick <= last]
    if len(ticks) > (5 if narrow else 9):
        ticks = [tick for tick in ticks if str(tick)[0] == "1"]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(across)
    axes.set_ylabel("knowledge, 0 to 5")
    axes.grid()


def _label(
    figure: "Figure",
    axes: "Axes",
    points: Sequence[Point],
    looks: Looks,
    best: Sequence[Point],
) -> None:
    """Name every mark, each label where it covers no mark, no other label and no line."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    inside = axes.get_window_extent(renderer)
    marks = [axes.transData.transform((point.tokens, point.quality)) for point in points]
    taken: list[Bbox] = [_around(x, y, 8) for x, y in marks]
    corners = [(point.tokens, point.quality) for point in best[:1]]
    for point, following in pairwise(best):
        corners += [(following.tokens, point.quality), (following.tokens, following.quality)]
    for (x0, y0), (x1, y1) in pairwise(map(axes.transData.transform, corners)):
        taken += [
            _around(x0 + (x1 - x0) * step / 40, y0 + (y1 - y0) * step / 40, 2) for step in range(41)
        ]
    for point in sorted(points, key=lambda point: -point.quality):
        label = looks[point.arm].label
        for place in _PLACES:
            text = _written(axes, point, label, place)
            text.update_positions(renderer)
            # Of the text alone: an annotation counts its line as well.
            box = Text.get_window_extent(text, renderer)
            fits = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0
            if fits and box.y1 <= inside.y1 and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
        else:  # among very many arms there may be no free place
            _written(axes, point, label, _PLACES[0])


def _written(axes: "Axes", point: Point, label: str, place: tuple[float, float]) -> "Annotation":
    x, y = place
    far = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.7, "shrinkB": 5}
    return axes.annotate(
        label,
        (point.tokens, point.quality),
        place,
        textcoords="offset points",
        ha="left" if x > 1 else "right" if x < -1 else "center",
        va="center",
        fontsize=9,
        color="#222222",
        arrowprops=far if math.hypot(x, y) > 20 else None,
    )


def _around(x: float, y: float, far: float) -> "Bbox":
    from matplotlib.transforms import Bbox

    return Bbox.from_extents(x - far, y - far, x + far, y + far)


def _retention(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw the normalised retention of knowledge."""
    rows = []
    for name in looks:
        retention = of.retained[name].measures.get(KNOWLEDGE) if name in of.retained else None
        if retention is not None and retention.share is not None:
            rows.append((name, retention.share, retention.here, retention.elsewhere))
    if not rows:
        return None
    labels = [looks[name].label for name, *_ in rows]
    figure = new_figure(NARROW if narrow else 10, row_height(labels, each=0.36))
    axes = figure.subplots()
    for place, (name, share, here, elsewhere) in enumerate(rows):
        look = looks[name]
        for limits, width, colour in ((elsewhere, 1.2, "#999999"), (here, 3.2, look.colour)):
            if limits:
                axes.plot(limits, [place, place], color=colour, linewidth=width, zorder=2)
        axes.plot(share, place, look.marker, color=look.colour, markersize=8, zorder=3)
        above: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 8.5}
        axes.annotate(f"{share:.0%}", (share, place), (0, 9), **above)
    for end in (0, 1):
        axes.axvline(end, color="#555555", linewidth=1)
    shares = [share for _, share, *_ in rows]
    limits_seen = [limit for _, _, here, there in rows for limit in (*(here or ()), *(there or ()))]
    # Intervals may run out of the picture, the values never.
    low = min(max(min([0.0, *limits_seen]), -0.6), *shares) - 0.05
    high = max(min(max([1.0, *limits_seen]), 1.8), *shares) + 0.05
    axes.set_xlim(low, high)
    axes.set_xticks([0, 0.5, 1], ["floor\n0 %", "50 %", "ceiling\n100 %"])
    axes.grid(axis="x")
    name_rows(axes, labels)
    axes.set_ylim(len(rows) - 0.4, -0.8)
    return finished(
        figure,
        "retention",
        "Retention between floor and ceiling",
        "(arm - floor) / (ceiling - floor) of knowledge, failures as 0. Thick lines: 95 % "
        "intervals on these conversations; thin lines: for new conversations.",
    )


# ----- scores


def _radar(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw the six dimensions of every arm; with many arms, one small radar for each."""
    arms = [name for name in looks if of.of_arm[name].estimates]
    if not arms:
        return None
    if len(arms) <= MAX_TOGETHER:
        figure = new_figure(NARROW, 5.8) if narrow else new_figure(6.7, 5)
        axes: Any = figure.add_subplot(projection="polar")
        for name in arms:
            _polygon(axes, of, name, looks[name], filled=False)
        _spokes(axes, small=False)
        figure.legend(loc="outside lower center" if narrow else "outside right center", fontsize=9)
    else:
        columns, height = (2, 2.7) if narrow else (4, 2.85)
        rows = math.ceil(len(arms) / columns)
        figure = new_figure(NARROW if narrow else 10, height * rows)
        for number, name in enumerate(arms, start=1):
            axes = figure.add_subplot(rows, columns, number, projection="polar")
            _polygon(axes, of, name, looks[name], filled=True)
            _spokes(axes, small=True)
            axes.set_title(looks[name].label, fontsize=8, pad=28)  # above the first spoke's name
    said = "Mean of each of the six dimensions, 0 to 5, for every arm; failures count as 0."
    return finished(figure, "radar", "Six dimensions", said)


def _polygon(axes: Any, of: Figures, name: str, look: Look, *, filled: bool) -> None:
    estimates, order = of.of_arm[name].estimates, structure().dimensions
    values = [estimates[each].mean if each in estimates else math.nan for each in order]
    angles = _angles(len(order))
    closed = ([*angles, angles[0]], [*values, values[0]])
    style = {"color": look.colour, "linestyle": look.dashes, "marker": look.marker}
    axes.plot(*closed, markersize=5, linewidth=2, label=look.label, **style)
    if filled and not any(map(math.isnan, values)):
        axes.fill(*closed, color=look.colour, alpha=0.15)


def _spokes(axes: Any, *, small: bool) -> None:
    names = [title_of(each) for each in structure().dimensions]
    angles = _angles(len(names))
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, names, fontsize=7 if small else 10)
    axes.set_ylim(0, MAX_SCORE)
    axes.set_yticks(range(1, 6), [str(n) if not small else "" for n in range(1, 6)])
    axes.tick_params(axis="x", pad=2 if small else 8)
    axes.tick_params(axis="y", labelsize=8, labelcolor="#555555")
    axes.set_rlabel_position(30)
    axes.spines["polar"].set_color("#BBBBBB")
    for label, angle in zip(axes.get_xticklabels(), [] if small else angles, strict=False):
        side = math.sin(angle)
        place = "center" if abs(side) < 0.1 else "left" if side > 0 else "right"
        label.set_horizontalalignment(place)


def _angles(count: int) -> list[float]:
    return [2 * math.pi * place / count for place in range(count)]


def _dimensions(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw a panel of bars for each measure, with the interval on these conversations."""
    arms = [name for name in looks if of.of_arm[name].estimates]
    if not arms:
        return None
    columns = 1 if narrow else 3
    rows = math.ceil(len(HEADLINE) / columns)
    height = row_height([looks[name].label for name in arms], each=0.26)
    figure = new_figure(NARROW if narrow else 10, rows * height)
    grid: Any = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes, measure in zip(grid.flat, HEADLINE, strict=False):
        _measure_bars(axes, of, arms, looks, measure)
    for axes in grid.flat[len(HEADLINE) :]:
        axes.set_visible(False)
    title, description = "Every measure", "Bars: means, failures as 0."
    estimates = (each for name in arms for each in of.of_arm[name].estimates.values())
    if any(each.here and not each.no_spread for each in estimates):
        title += ", with its interval"
        description += " Lines: 95 % intervals on these conversations."
    return finished(figure, "dimensions", title, description)


def _measure_bars(
    axes: "Axes", of: Figures, arms: Sequence[str], looks: Looks, measure: str
) -> None:
    most = 1.0 if measure in SHARES else MAX_SCORE
    bars: list[tuple[int, float, str]] = []
    lines: list[tuple[float, float, int]] = []
    for place, name in enumerate(arms):
        estimate = of.of_arm[name].estimates.get(measure)
        if estimate is None:
            axes.text(most * 0.02, place, "no value", va="center", fontsize=8, color="#555555")
            continue
        bars.append((place, estimate.mean, looks[name].colour))
        end = estimate.mean
        if estimate.here and not estimate.no_spread:
            low, high = (min(max(limit, 0.0), most) for limit in estimate.here)
            lines.append((low, high, place))
            end = max(end, high)
        axes.text(end + most * 0.02, place, f"{estimate.mean:.2f}", va="center", fontsize=8)
    # All together: an object for each would take longer than drawing it.
    if bars:
        places, means, colours = zip(*bars, strict=True)
        axes.barh(places, means, height=0.66, color=colours, alpha=0.85)
    across = [x for low, high, _ in lines for x in (low, high, math.nan)]
    down = [place for _, _, place in lines for _ in range(3)]
    axes.plot(across, down, "-|", color="black", linewidth=1.4, markersize=6)
    axes.set_xlim(0, most * 1.18)
    axes.set_xticks([0, 0.5, 1] if most == 1.0 else [0, 1, 2, 3, 4, 5])
    axes.grid(axis="x")
    axes.set_title(title_of(measure), loc="left")
    name_rows(axes, [looks[name].label for name in arms])


# ----- facts


def _survival(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw the share of facts in the state, by age and by cycle, a cell for each arm."""
    survivals = {
        name: of.of_arm[name].survival for name in looks if of.of_arm[name].survival.by_age
    }
    if not survivals:
        return None
    ages = [group for group in AGE_GROUPS if any(group in arm.by_age for arm in survivals.values())]
    cycles = {cycle for arm in survivals.values() for cycle in arm.by_cycle}
    passed = sorted(cycles, key=lambda name: (len(name), name))
    labels = [looks[name].label for name in survivals]
    height = row_height(labels, least=2.2, each=0.36) + 0.3
    if narrow:
        figure = new_figure(NARROW, 2 * height)
        first, second = figure.subplots(2, 1)
        second.set_yticks(_middles(len(labels)), labels, fontsize=9)
        second.set_ylim(len(labels), 0)
    else:
        figure = new_figure(10, height)
        ratios = [max(len(ages), 2), max(len(passed), 1.5)]
        first, second = figure.subplots(1, 2, sharey=True, width_ratios=ratios)
    _cells(first, [arm.by_age for arm in survivals.values()], ages)
    first.set_title("by age: part of the history", loc="left")
    broken = [group.replace(" quarter", "\nquarter") for group in ages]
    first.set_xticks(_middles(len(ages)), broken, fontsize=8 if narrow else None)
    _cells(second, [arm.by_cycle for arm in survivals.values()], passed)
    second.set_title("by cycles", loc="left")
    second.set_xticks(_middles(len(passed)), passed)
    first.set_yticks(_middles(len(labels)), labels, fontsize=9)
    first.set_ylim(len(labels), 0)
    # By whose word facts are in the states.
    read = sum(arm.read for arm in survivals.values())
    facts = sum(sum(arm.stages.values()) for arm in survivals.values())
    agreed = ", ".join(
        f"{name} {percent(arm.fact_agreement)}"
        for name, arm in survivals.items()
        if arm.fact_agreement is not None
    )
    source = f"By the reader's word on {read} of {facts} facts, else looked up."
    source += f" The look-up agrees on: {agreed}." if agreed else ""
    return finished(
        figure,
        "survival",
        "Facts that survive",
        "Share of the expected facts that are in the state. First quarter: said first in the "
        "oldest part of the history. Where a compression failed, none of them is. "
        + (source if read else "Looked up in the state; no model read it."),
    )


def _cells(axes: "Axes", rows: Sequence[Mapping[str, Share]], columns: Sequence[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    # From pale to dark blue, which keeps its order in grey, too.
    colours: Any = LinearSegmentedColormap.from_list("survival", ["#F2F5F9", "#7FB2D9", "#08457E"])
    unknown = Share(0, 0)
    shares = [[row.get(column, unknown).share for column in columns] for row in rows]
    # Drawn as shapes: an image would be pixels inside of the SVG.
    axes.pcolormesh(shares, cmap=colours, vmin=0, vmax=1, edgecolors="white", linewidth=2)
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    for place, row in enumerate(shares):
        for number, share in enumerate(row):
            if math.isnan(share):
                axes.text(number + 0.5, place + 0.5, "–", color="#555555", **middle)
                continue
            colour = "white" if share > 0.55 else "black"
            text = f"{share:.0%}"
            axes.text(number + 0.5, place + 0.5, text, fontsize=9, color=colour, **middle)
    axes.tick_params(axis="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _middles(count: int) -> list[float]:
    return [place + 0.5 for place in range(count)]


def _stages(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw what became of the facts of every arm, as shares that add up to all."""
    stages = {name: of.of_arm[name].survival.stages for name in looks}
    arms = {name: counts for name, counts in stages.items() if counts}
    if not arms:
        return None
    present = [stage for stage in _STAGES if any(stage in counts for counts in arms.values())]
    labels = [looks[name].label for name in arms]
    height = row_height(labels, least=2.0, each=0.36)
    figure = new_figure(NARROW if narrow else 10, height + (1.2 if narrow else 0.6))
    axes = figure.subplots()
    left = [0.0] * len(arms)
    for stage in present:
        shares = [counts.get(stage, 0) / sum(counts.values()) for counts in arms.values()]
        colour, hatch = _STAGES[stage]
        style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white"}
        style |= {"linewidth": 0.8, "label": stage.replace("_", " ")}
        axes.barh(range(len(arms)), shares, left=left, height=0.7, **style)
        written: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        written["color"] = "white" if colour in _DARK else "black"
        for place, share in enumerate(shares):
            if share >= (0.13 if narrow else 0.06):
                axes.text(left[place] + share / 2, place, f"{share:.0%}", **written)
            left[place] += share
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    name_rows(axes, labels)
    columns = min(len(present), 2 if narrow else 6)
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    return finished(
        figure,
        "stages",
        "Where facts were lost",
        "Every expected fact of every answer by what became of it. Blue: in the answer. "
        "Yellow: in the state, not in the answer. Orange to brown: not in the state. "
        "Grey: not known, or no state.",
    )


# ----- costs


def _costs(of: Figures, looks: Looks, narrow: bool) -> Chart | None:
    """Draw what a compression takes and what an answer from its state takes."""
    arms = [name for name in looks if of.of_arm[name].costs["compressions"]]
    if not arms:
        return None
    labels = [looks[name].label for name in arms]
    height = row_height(labels, least=2.0)
    if narrow:
        figure = new_figure(NARROW, height * len(_COSTS) + 0.4)
        grid: Any = figure.subplots(len(_COSTS), 1)
    else:
        figure = new_figure(10, height + 0.4)
        grid = figure.subplots(1, len(_COSTS), sharey=True)
    for axes, (title, first, second) in zip(grid, _COSTS, strict=True):
        _cost_bars(axes, [of.of_arm[name].costs for name in arms], first, second)
        axes.set_title(title, loc="left")
        if narrow or axes is grid[0]:
            name_rows(axes, labels)
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize=9)
    description = "Means per compression and per answer, as the runs measured them."
    return finished(figure, "costs", "Cost and time", description)


def _cost_bars(axes: "Axes", rows: Sequence[Mapping[str, float]], first: str, second: str) -> None:
    sent, taken = (
        [0.0 if math.isnan(row.get(name, math.nan)) else row[name] for row in rows]
        for name in (first, second)
    )
    output: dict[str, Any] = {"color": "#E69F00", "hatch": "//", "edgecolor": "white"}
    axes.barh(range(len(rows)), sent, height=0.66, color="#0072B2", label="in")
    axes.barh(range(len(rows)), taken, left=sent, height=0.66, label="out", **output)
    totals = [sum(both) for both in zip(sent, taken, strict=True)]
    most = max([*totals, 0.0]) or 1.0
    for place, total in enumerate(totals):
        axes.text(total + most * 0.02, place, _short(total), va="center", fontsize=8)
    axes.set_xlim(0, most * 1.28)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value / 1000:.1f}".removesuffix(".0") + "k"
    if 0 < value < 0.01:
        return "<0.01"
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


PICTURES: Mapping[str, Callable[[Figures, Looks, bool], Chart | None]] = {
    "frontier": _frontier,
    "spending": _spending,
    "radar": _radar,
    "dimensions": _dimensions,
    "retention": _retention,
    "survival": _survival,
    "stages": _stages,
    "costs": _costs,
}
"""What draws each picture, in the order of the page."""

LARGE = ("dimensions", "radar")
"""Those that take the longest, and the most memory."""
