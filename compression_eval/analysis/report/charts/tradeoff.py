"""Quality against retained tokens, and retention between floor and ceiling."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.report.charts.style import (
    NARROW,
    Chart,
    Look,
    finished,
    name_rows,
    new_figure,
    row_height,
)
from compression_eval.analysis.report.figures import Figures
from compression_eval.analysis.report.retained import Point
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

_FEW = 8
"""Most arms whose labels fit into a narrow picture."""

_PLACES = tuple(
    (distance * math.cos(turn * math.pi / 4), distance * math.sin(turn * math.pi / 4))
    for distance in (13, 24, 38, 56, 78, 104, 134)
    for turn in (0, 4, 2, 6, 1, 3, 5, 7)
)
"""Where a label may stand, as points from its mark, the best place first."""


def frontier(of: Figures, looks: Mapping[str, Look], narrow: bool = False) -> Chart | None:
    """Draw every arm's knowledge against the tokens of its states.

    The controls are named and not drawn: beside a state of 100 tokens and one of 50,000 all
    others would be one heap.
    """
    known = [point for point in of.frontier.points if not math.isnan(point.tokens)]
    points = [point for point in known if not point.control] or known
    if not points:
        return None
    if narrow:
        figure = new_figure(NARROW, 4 + 0.34 * len(points))
    else:
        figure = new_figure(10, 6) if len(points) > _FEW else new_figure(6.7, 5)
    axes = figure.subplots()
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.tokens, -point.quality)):
        if not point.dominated_by and (not best or point.quality > best[-1].quality):
            best.append(point)
    axes.step(
        [point.tokens for point in best],
        [point.quality for point in best],
        where="post",
        color="#444444",
        linewidth=1.2,
        linestyle=(0, (4, 2)),
        zorder=1,
    )
    for point in points:
        _mark(axes, point, looks[point.arm])
    _frame(axes, points, narrow)
    if narrow:
        figure.legend(loc="outside lower center", fontsize=9)
    else:
        _label(figure, axes, points, looks, _corners(best))
    controls = [
        f"{point.arm} {point.quality:.2f} at {point.tokens:,.0f} tokens"
        for point in known
        if point not in points
    ]
    return finished(
        figure,
        "frontier",
        "Quality against retained tokens",
        "Means with 95 % intervals on these conversations. Hollow marks are dominated by another "
        "arm, by the intervals; the broken line joins the best of the others by their means, and "
        "where intervals overlap the order may be chance. Failures count as 0."
        + (f" Controls, not drawn: {'; '.join(controls)}." if controls else ""),
    )


def retention(of: Figures, looks: Mapping[str, Look], narrow: bool = False) -> Chart | None:
    """Draw the normalised retention of knowledge."""
    rows = []
    for name in looks:
        found = of.retained[name].measures.get(KNOWLEDGE) if name in of.retained else None
        if found is not None and found.share is not None:
            rows.append((name, found.share, found.here, found.elsewhere))
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
        axes.annotate(
            f"{share:.0%}", (share, place), (0, 9), textcoords="offset points", ha="center",
            fontsize=8.5,
        )  # fmt: skip
    axes.axvline(0, color="#555555", linewidth=1)
    axes.axvline(1, color="#555555", linewidth=1)
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


def _frame(axes: "Axes", points: Sequence[Point], narrow: bool) -> None:
    tokens = [max(point.tokens, 1.0) for point in points]
    axes.set_xscale("log")
    # Room on both sides, so that labels of the outermost marks stay inside.
    room = 1.3 if narrow else 2.0
    axes.set_xlim(min(tokens) / room, max(tokens) * room * 1.2)
    seen = [point.quality for point in points]
    seen += [limit for point in points for limit in point.interval or ()]
    middle = (max(seen) + min(seen)) / 2
    half = max(max(seen) - min(seen) + 0.3, 1.2) / 2
    low = min(max(middle - half, 0.0), MAX_SCORE - 2 * half)
    axes.set_ylim(max(low, 0.0), min(max(low, 0.0) + 2 * half, MAX_SCORE))
    ticks = [
        step * 10**power
        for power in range(8)
        for step in (1, 2, 5)
        if min(tokens) / room <= step * 10**power <= max(tokens) * room * 1.2
    ]
    if len(ticks) > (5 if narrow else 9):
        ticks = [tick for tick in ticks if str(tick)[0] == "1"]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(
        "tokens left (mean, logarithmic)"
        if narrow
        else "tokens left after compression (mean over conversations, logarithmic)"
    )
    axes.set_ylabel("knowledge, 0 to 5")
    axes.grid()


def _corners(best: Sequence[Point]) -> list[tuple[float, float]]:
    """Return the corners of the frontier's line, in tokens and score."""
    found = []
    for point, following in pairwise(best):
        found += [(point.tokens, point.quality), (following.tokens, point.quality)]
    return found + [(point.tokens, point.quality) for point in best[-1:]]


def _label(
    figure: "Figure",
    axes: "Axes",
    points: Sequence[Point],
    looks: Mapping[str, Look],
    line: Sequence[tuple[float, float]],
) -> None:
    """Name every mark, each label where it covers no mark, no other label and no line."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    inside = axes.get_window_extent(renderer)
    marks = [axes.transData.transform((point.tokens, point.quality)) for point in points]
    taken: list[Bbox] = [_around(x, y, 8) for x, y in marks]
    corners = [axes.transData.transform(corner) for corner in line]
    for (x0, y0), (x1, y1) in pairwise(corners):
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
