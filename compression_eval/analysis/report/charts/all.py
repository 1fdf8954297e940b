"""All pictures of a report."""

from collections.abc import Callable, Mapping

from compression_eval.analysis.report.charts.costs import costs
from compression_eval.analysis.report.charts.facts import stages, survival
from compression_eval.analysis.report.charts.scores import dimensions, radar
from compression_eval.analysis.report.charts.style import Chart, Look, drawing, looks
from compression_eval.analysis.report.charts.tradeoff import frontier, retention
from compression_eval.analysis.report.figures import Figures

_CHARTS: tuple[Callable[[Figures, Mapping[str, Look]], Chart | None], ...] = (
    frontier,
    radar,
    dimensions,
    retention,
    survival,
    stages,
    costs,
)


def charts(of: Figures) -> list[Chart]:
    """Draw every picture that there are figures for."""
    controls = frozenset(arm.name for arm in of.arms if arm.role)
    look = looks([arm.name for arm in of.arms], controls)
    with drawing():
        drawn = [draw(of, look) for draw in _CHARTS]
    return [chart for chart in drawn if chart is not None]
