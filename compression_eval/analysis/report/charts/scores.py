"""Radar and bars: the dimensions of every arm."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.comparison.measures import HEADLINE, SHARES
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
from compression_eval.analysis.report.wording import title_of
from compression_eval.grading.rubric import MAX_SCORE, structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TOGETHER = 6
"""Most arms that one radar can hold and still be read."""


def radar(of: Figures, looks: Mapping[str, Look], narrow: bool = False) -> Chart | None:
    """Draw the six dimensions of every arm; with many arms, one small radar for each."""
    arms = [name for name in looks if of.of_arm[name].estimates]
    if not arms:
        return None
    description = "Mean of each of the six dimensions, 0 to 5, for every arm; failures count as 0."
    if len(arms) <= _TOGETHER:
        figure = new_figure(NARROW, 5.8) if narrow else new_figure(6.7, 5)
        axes: Any = figure.add_subplot(projection="polar")
        for name in arms:
            _polygon(axes, of, name, looks[name], filled=False)
        _spokes(axes, small=False)
        figure.legend(loc="outside lower center" if narrow else "outside right center", fontsize=9)
        return finished(figure, "radar", "Six dimensions", description)
    columns = 2 if narrow else 4
    rows = math.ceil(len(arms) / columns)
    figure = new_figure(NARROW if narrow else 10, (2.85 if not narrow else 2.7) * rows)
    for number, name in enumerate(arms, start=1):
        axes = figure.add_subplot(rows, columns, number, projection="polar")
        _polygon(axes, of, name, looks[name], filled=True)
        _spokes(axes, small=True)
        axes.set_title(looks[name].label, fontsize=8, pad=12)
    return finished(figure, "radar", "Six dimensions", description)


def dimensions(of: Figures, looks: Mapping[str, Look], narrow: bool = False) -> Chart | None:
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
        _bars(axes, of, arms, looks, measure)
    for axes in grid.flat[len(HEADLINE) :]:
        axes.set_visible(False)
    return finished(
        figure,
        "dimensions",
        "Every measure, with its interval",
        "Bars: means, failures as 0. Lines: 95 % intervals on these conversations.",
    )


def _polygon(axes: Any, of: Figures, name: str, look: Look, *, filled: bool) -> None:
    estimates = of.of_arm[name].estimates
    order: Sequence[str] = structure().dimensions
    values = [estimates[each].mean if each in estimates else math.nan for each in order]
    angles = _angles(len(order))
    closed = ([*angles, angles[0]], [*values, values[0]])
    axes.plot(
        *closed,
        color=look.colour,
        linestyle=look.dashes,
        marker=look.marker,
        markersize=5,
        linewidth=2,
        label=look.label,
    )
    if filled and not any(map(math.isnan, values)):
        axes.fill(*closed, color=look.colour, alpha=0.15)


def _spokes(axes: Any, *, small: bool) -> None:
    order: Sequence[str] = structure().dimensions
    names = [title_of(each) for each in order]
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(_angles(len(order)), names, fontsize=7 if small else 10)
    axes.set_ylim(0, MAX_SCORE)
    axes.set_yticks(range(1, 6), [str(n) if not small else "" for n in range(1, 6)])
    axes.tick_params(axis="x", pad=2 if small else 8)
    axes.tick_params(axis="y", labelsize=8, labelcolor="#555555")
    axes.set_rlabel_position(30)
    axes.spines["polar"].set_color("#BBBBBB")
    if not small:
        for label, angle in zip(axes.get_xticklabels(), _angles(len(order)), strict=True):
            side = math.sin(angle)
            label.set_horizontalalignment(
                "center" if abs(side) < 0.1 else "left" if side > 0 else "right"
            )


def _angles(count: int) -> list[float]:
    return [2 * math.pi * place / count for place in range(count)]


def _bars(
    axes: "Axes", of: Figures, arms: Sequence[str], looks: Mapping[str, Look], measure: str
) -> None:
    most = 1.0 if measure in SHARES else MAX_SCORE
    for place, name in enumerate(arms):
        estimate = of.of_arm[name].estimates.get(measure)
        if estimate is None:
            axes.text(most * 0.02, place, "no value", va="center", fontsize=8, color="#555555")
            continue
        axes.barh(place, estimate.mean, height=0.66, color=looks[name].colour, alpha=0.85)
        end = estimate.mean
        if estimate.here and not estimate.no_spread:
            low, high = (min(max(limit, 0.0), most) for limit in estimate.here)
            axes.plot([low, high], [place, place], color="black", linewidth=1.4)
            axes.plot([low, high], [place, place], "|", color="black", markersize=6)
            end = max(end, high)
        axes.text(end + most * 0.02, place, f"{estimate.mean:.2f}", va="center", fontsize=8)
    axes.set_xlim(0, most * 1.18)
    axes.set_xticks([0, 0.5, 1] if most == 1.0 else [0, 1, 2, 3, 4, 5])
    axes.grid(axis="x")
    axes.set_title(title_of(measure), loc="left")
    name_rows(axes, [looks[name].label for name in arms])
