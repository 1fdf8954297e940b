"""What arms cost, in tokens and seconds."""

import math
from collections.abc import Callable, Mapping
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
from compression_eval.analysis.report.costs import Costs
from compression_eval.analysis.report.figures import Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Part = Callable[[Costs], float]

_PANELS: tuple[tuple[str, _Part, _Part | None], ...] = (
    ("tokens per compression", lambda c: c.input_tokens, lambda c: c.output_tokens),
    ("tokens per answer", lambda c: c.answer_input_tokens, lambda c: c.answer_output_tokens),
    ("seconds per compression", lambda c: c.seconds, None),
)
_OUTPUT = "#E69F00"


def costs(of: Figures, looks: Mapping[str, Look], narrow: bool = False) -> Chart | None:
    """Draw what a compression takes and what an answer from its state takes."""
    arms = [name for name in looks if of.of_arm[name].costs.compressions]
    if not arms:
        return None
    labels = [looks[name].label for name in arms]
    height = row_height(labels, least=2.0)
    if narrow:
        figure = new_figure(NARROW, height * len(_PANELS) + 0.4)
        grid: Any = figure.subplots(len(_PANELS), 1)
    else:
        figure = new_figure(10, height + 0.4)
        grid = figure.subplots(1, len(_PANELS), sharey=True)
    for axes, (title, first, second) in zip(grid, _PANELS, strict=True):
        _bars(axes, [of.of_arm[name].costs for name in arms], first, second)
        axes.set_title(title, loc="left")
        if narrow or axes is grid[0]:
            name_rows(axes, labels)
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize=9)
    return finished(
        figure,
        "costs",
        "Cost and time",
        "Means per compression and per answer, as the runs measured them.",
    )


def _bars(axes: "Axes", rows: list[Costs], first: _Part, second: _Part | None) -> None:
    totals = []
    for place, row in enumerate(rows):
        given = _known(first(row))
        taken = _known(second(row)) if second else 0.0
        axes.barh(place, given, height=0.66, color="#0072B2", label="in" if place == 0 else None)
        axes.barh(
            place,
            taken,
            left=given,
            height=0.66,
            color=_OUTPUT,
            hatch="//",
            edgecolor="white",
            label="out" if place == 0 else None,
        )
        totals.append(given + taken)
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


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
