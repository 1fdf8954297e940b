"""All pictures of a report."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from compression_eval.analysis.report.charts.costs import costs
from compression_eval.analysis.report.charts.facts import stages, survival
from compression_eval.analysis.report.charts.scores import dimensions, radar
from compression_eval.analysis.report.charts.style import Chart, Look, drawing, looks
from compression_eval.analysis.report.charts.tradeoff import frontier, retention
from compression_eval.analysis.report.figures import Figures

_CHARTS: tuple[Callable[[Figures, Mapping[str, Look], bool], Chart | None], ...] = (
    frontier,
    radar,
    dimensions,
    retention,
    survival,
    stages,
    costs,
)


def charts(of: Figures, *, narrow: bool = False) -> list[Chart]:
    """Draw every picture that there are figures for.

    Args:
        of: The figures.
        narrow: Draw them for a telephone, all of one width.
    """
    controls = frozenset(arm.name for arm in of.arms if arm.role)
    look = looks([arm.name for arm in of.arms], controls, narrow=narrow)
    for arm in of.arms:
        if arm.failed:
            look[arm.name] = replace(
                look[arm.name], label=f"{look[arm.name].label}\n({arm.failed})"
            )
    with drawing():
        drawn = [draw(of, look, narrow) for draw in _CHARTS]
    return [chart for chart in drawn if chart is not None]
