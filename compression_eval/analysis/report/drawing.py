"""How every picture looks: sizes, colours that colour-blind people can tell apart, and labels."""

import io
import re
import unicodedata
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#5A4FA2", "#8C6D1F")
"""After Okabe and Ito (2008), darkened where thin lines would be too pale."""

CONTROL = "#6E6E6E"
"""Colour of the controls."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))

_MAX_LABEL = 100
_LABEL_LINE, _NARROW_LABEL_LINE = 30, 20
_LONG_WORD = re.compile(r"(\S{40})(?=\S)")
_LABEL_LINE_HEIGHT = 0.17
"""Inches."""

_DPI = 160
_PAD = 0.06
"""Inches around what is drawn."""
_HALF = 7.0
"""Inches up to which a picture can stand beside another one."""

NARROW = 4.6
"""Inches of every picture that is made for a telephone."""

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titley": 1.0,  # to find a place for each would measure all labels again and again
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "legend.frameon": False,
    # Names of arms hold whatever their user put there: "$" is no formula.
    "text.parse_math": False,
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Chart:
    """A picture in both forms."""

    name: str
    """Name of its files, without suffix."""
    title: str
    description: str
    """Text alternative of the picture."""
    svg: str
    png: bytes
    """Empty for a narrow one."""
    broad: bool
    """Whether it needs the whole width of a page."""


@dataclass(frozen=True)
class Look:
    """What one arm looks like in every picture."""

    label: str
    colour: str
    marker: str
    dashes: Any


def looks(
    names: Sequence[str], controls: frozenset[str], *, narrow: bool = False
) -> dict[str, Look]:
    """Return the look of every arm, by name.

    Args:
        names: In the report's order.
        controls: Names of the controls; they are grey.
        narrow: Whether it is for narrow pictures, with shorter lines.
    """
    by_name: dict[str, Look] = {}
    others = 0
    line = _NARROW_LABEL_LINE if narrow else _LABEL_LINE
    for name, label in zip(names, _labels(names, line), strict=True):
        if name in controls:
            grey = sum(look.colour == CONTROL for look in by_name.values())
            by_name[name] = Look(label, CONTROL, MARKERS[grey % 2], DASHES[1 + grey % 2])
        else:
            round_, place = divmod(others, len(COLOURS))
            marker = MARKERS[(place + round_) % len(MARKERS)]
            by_name[name] = Look(label, COLOURS[place], marker, DASHES[round_ % len(DASHES)])
            others += 1
    return by_name


def drawing() -> AbstractContextManager[None]:
    """Return the context in which pictures are drawn."""
    from matplotlib import rc_context

    return rc_context(cast(Any, _SETTINGS))


def prepare() -> None:
    """Import what draws, which takes half a second."""
    from matplotlib.backends import backend_svg  # noqa: F401

    new_figure(1, 1)


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure, on which labels are measured without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
    from matplotlib.figure import Figure

    class Measuring(FigureCanvasAgg):
        """A canvas of one pixel: labels are as large there, and the others would take 20 MB."""

        @cached_property
        def _measures(self) -> RendererAgg:
            return cast("RendererAgg", cast(Any, RendererAgg)(1, 1, self.figure.dpi))

        def get_renderer(self) -> RendererAgg:
            return self._measures

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    Measuring(figure)
    return figure


def finished(figure: "Figure", name: str, title: str, description: str) -> Chart:
    """Return a figure as SVG and PNG; the same figure gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    vector, pixels = io.StringIO(), io.BytesIO()
    # The ids in a picture come from this, and several pictures share a page.
    salt = f"{name} {figure.get_figwidth()}"
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if not axis.get_label_text():
                axis.set_label_coords(0, 0)  # likewise
    # Laid out and measured once: that takes longer than drawing, and each format would do it anew.
    if layout := figure.get_layout_engine():
        layout.execute(figure)
    figure.set_layout_engine(None)
    # Cut to what is drawn, so that no label is cut off.
    cut: dict[str, Any] = {"bbox_inches": figure.get_tightbbox().padded(_PAD)}
    FigureCanvasAgg(figure)
    with rc_context({"svg.hashsalt": salt}):
        figure.savefig(vector, format="svg", metadata={"Date": None, "Creator": None}, **cut)
    if figure.get_figwidth() != NARROW:  # those are for the page alone
        figure.savefig(pixels, format="png", dpi=_DPI, metadata={"Software": None}, **cut)
    broad = figure.get_figwidth() > _HALF
    return Chart(name, title, description, vector.getvalue(), pixels.getvalue(), broad)


def row_height(labels: Sequence[str], *, least: float = 1.6, each: float = 0.3) -> float:
    """Return the inches that rows of labels need."""
    lines = max((label.count("\n") for label in labels), default=0)
    return max(least, 0.9 + len(labels) * (each + lines * _LABEL_LINE_HEIGHT))


def name_rows(axes: "Axes", labels: Sequence[str]) -> None:
    """Name the rows of a horizontal chart, the first on top."""
    axes.set_yticks(range(len(labels)), list(labels), fontsize=9)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _labels(names: Sequence[str], line: int) -> list[str]:
    """Return names in letters that a picture's font has, in short lines, all different."""
    labels: list[str] = []
    for number, name in enumerate(names, start=1):
        clean = "".join(character if _drawable(character) else "?" for character in name)
        if len(clean) > _MAX_LABEL:  # names differ at their end
            clean = f"{clean[: _MAX_LABEL // 3]}…{clean[-(_MAX_LABEL * 2 // 3) :]}"
        breakable = _LONG_WORD.sub(r"\1 ", clean)
        label = fill(breakable, line, break_long_words=False, break_on_hyphens=False)
        labels.append(f"{label} #{number}" if "?" in label or label in labels else label)
    return labels


def _drawable(character: str) -> bool:
    known = ord(character) < 0x250 or character in "…–—→"
    return known and unicodedata.category(character)[0] != "C"
