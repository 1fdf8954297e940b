"""Charts of a report, by Vega-Lite: SVG for the page at two widths, PNG for elsewhere.

Each chart is a function of the figures that calls `drawn` with a title, a description, and a
function that returns a Vega-Lite specification for a width, as plain data. The functions above them
return the parts that charts share: axes, colours, bars, panels. No text of a conversation is in a
chart; names of arms are data of a specification, which Vega escapes. vl-convert draws without a
browser or a network.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from textwrap import wrap
from typing import Any, get_args

from compression_eval.analysis.comparison.measures import HEADLINE, SHARES
from compression_eval.analysis.facts import Share
from compression_eval.analysis.report.figures import Figures
from compression_eval.analysis.report.sections import percent, title_of
from compression_eval.analysis.statistics.intervals import Limits
from compression_eval.facts.life import AGE_GROUPS, Stage
from compression_eval.grading.rubric import MAX_SCORE, structure
from compression_eval.text.printable import clean

Spec = dict[str, Any]
"""A Vega-Lite specification: a view, layers, or several views."""

WIDE, NARROW = 980, 400
"""Pixels: across the page, and on a telephone."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#5A4FA2", "#8C6D1F")
"""After Okabe and Ito (2008), darkened where thin lines would be too pale."""

CONTROL = "#6E6E6E"
"""Colour of the controls."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left")

_STAGES: Mapping[str, str] = {
    "used": "#0072B2",
    "verbatim": "#3F9BD1",
    "answered": "#74B9E4",
    "answered_not_found": "#A3D0EE",
    "survived": "#CBE4F5",
    "unused": "#F0E442",
    "unanswered": "#F8F1A0",
    "never_fed": "#E69F00",
    "superseded": "#CC79A7",
    "distorted": "#E3B5CE",
    "dropped": "#D55E00",
    "lost": "#8A3B00",
    "unknown": "#CCCCCC",
    "not_in_history": "#E4E4E4",
    "compression_failed": "#555555",
}
"""Blue is in the answer, yellow in the state only, orange to brown is lost."""

assert set(_STAGES) == set(get_args(Stage))  # noqa: S101  (a new stage needs a colour)

_DARK = {"#0072B2", "#D55E00", "#8A3B00", "#555555"}

_MARK = re.compile(r'(<path aria-label="([^"]*)" role="graphics-symbol"[^>]*?)/?>(?:</path>)?')
_MAX_LABEL = 100
_CONFIG: Spec = {
    "font": "Arial, Liberation Sans, sans-serif",
    "background": "white",
    "padding": 6,
    "view": {"stroke": None},
    "concat": {"spacing": 18},
    "axis": {
        "gridColor": "#DDDDDD",
        "domainColor": "#555555",
        "tickColor": "#555555",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 400,
    },
    "legend": {"labelFontSize": 12, "labelLimit": 360, "symbolSize": 110, "title": None},
    "title": {"fontSize": 13, "anchor": "start"},
    "point": {"opacity": 1, "size": 50},
    "text": {"fontSize": 11},
}

_SCALE = 1.6
"""Pixels of a PNG for each of the SVG."""

_LONG_WORD = re.compile(r"(\S{40})(?=\S)")


@dataclass(frozen=True)
class Chart:
    """A chart as the report's files contain it."""

    name: str
    """Name of its files, without suffix."""
    title: str
    description: str
    """Text alternative of the chart."""
    svg: str
    narrow: str
    """SVG for a telephone."""
    png: bytes


@dataclass(frozen=True)
class Look:
    """What one arm looks like in every chart."""

    label: str
    colour: str
    shape: str


@dataclass(frozen=True)
class Mark:
    """An arm in a chart of quality against tokens."""

    look: Look
    tokens: float
    quality: float
    interval: Limits | None
    dominated: bool = False


def charts(of: Figures) -> list[Chart]:
    """Draw the charts that there are figures for, in the order of the page."""
    controls = frozenset(arm.name for arm in of.arms if arm.role)
    failed = {arm.name: arm.failed for arm in of.arms if arm.failed}
    look = looks([arm.name for arm in of.arms], controls, failed)
    made = (draw(of, look) for draw in (_frontier, _radar, _dimensions, _survival, _stages))
    return [chart for chart in made if chart]


def drawn(name: str, title: str, description: str, view: Callable[[int], Spec]) -> Chart:
    """Draw a chart; the same figures give the same bytes.

    Args:
        name: Name of its files, without suffix.
        title: Above the chart.
        description: Text alternative of the chart, and the caption.
        view: Returns the specification for a width in pixels.
    """
    from vl_convert import svg_to_png

    wide, narrow = (_svg(view(width)) for width in (WIDE, NARROW))
    return Chart(name, title, description, wide, narrow, svg_to_png(wide, scale=_SCALE))


def _svg(view: Spec) -> str:
    """Return a view as SVG in which every mark gives its value to the pointer."""
    from vl_convert import vegalite_to_svg

    return _MARK.sub(r"\1><title>\2</title></path>", vegalite_to_svg(view | {"config": _CONFIG}))


def looks(
    names: Sequence[str], controls: frozenset[str], failed: Mapping[str, str] | None = None
) -> dict[str, Look]:
    """Return the look of every arm, by name.

    Args:
        names: In the report's order.
        controls: Names of the controls; they are grey.
        failed: How many samples failed, by the name of an arm.
    """
    by_name: dict[str, Look] = {}
    greys, others = count(), count()
    for number, name in enumerate(names, start=1):
        label = clean(" ".join(name.split()), len(name))
        if len(label) > _MAX_LABEL:  # names differ at their end
            label = f"{label[: _MAX_LABEL // 3]}…{label[-(_MAX_LABEL * 2 // 3) :]}"
        if any(label == look.label for look in by_name.values()):
            label += f" #{number}"
        if failed and name in failed:
            label += f" ({failed[name]})"
        if name in controls:
            by_name[name] = Look(label, CONTROL, SHAPES[next(greys) % 2])
        else:
            round_, place = divmod(next(others), len(COLOURS))
            by_name[name] = Look(label, COLOURS[place], SHAPES[(place + round_) % len(SHAPES)])
    return by_name


# ----- parts of a specification


def _number(field: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": None} | more


def _word(field: str, **more: Any) -> Spec:
    return {"field": field, "type": "nominal", "title": None} | more


def _colour(field: str) -> Spec:
    """Return an encoding by colours that are in the data."""
    return _word(field, scale=None, legend=None)


def _range(*ends: float, **more: Any) -> Spec:
    return {"domain": list(ends), "nice": False, "zero": False} | more


def _mark(kind: str, encoding: Spec, rows: Sequence[Spec] = (), **more: Any) -> Spec:
    """Return a layer; a mark without a description is silent to the pointer."""
    layer = {"mark": {"type": kind, "aria": "description" in encoding} | more, "encoding": encoding}
    return layer | ({"data": {"values": list(rows)}} if rows else {})


def _layers(rows: Sequence[Spec], encoding: Spec, *layers: Spec, **more: Any) -> Spec:
    return {"data": {"values": rows}, "encoding": encoding, "layer": list(layers)} | more


def _arms(looks: Sequence[Look], legend: Spec | None) -> tuple[Spec, Spec]:
    """Return the colours and the shapes of arms, with one legend."""
    labels = [look.label for look in looks]
    ranges = ([look.colour for look in looks], [look.shape for look in looks])
    colour, shape = (
        _word("arm", scale={"domain": labels, "range": own}, legend=legend) for own in ranges
    )
    return colour, shape


class _Rows:
    """The vertical axis of a chart that has a row for each arm, the first one on top.

    Args:
        looks: Of the arms; their labels are the field ``arm`` of the data.
        width: Of the chart; labels are broken into lines that leave the chart its room.
    """

    def __init__(self, looks: Sequence[Look], width: int) -> None:
        most = 30 if width > NARROW else 18
        self.lines = {
            look.label: wrap(
                _LONG_WORD.sub(r"\1 ", look.label),
                most,
                break_long_words=False,
                break_on_hyphens=False,
            )
            for look in looks
        }
        self.room = width - 40 - 7 * max(len(x) for lines in self.lines.values() for x in lines)
        """Pixels that the labels leave."""

    def axis(self, *, shown: bool = True) -> Spec:
        """Return the encoding of the axis."""
        labels = list(self.lines)
        axis = {"labels": shown, "labelExpr": f"{json.dumps(self.lines)}[datum.value]"}
        axis |= {"labelPadding": 6, "ticks": False, "domain": False, "grid": False}
        return _word("arm", sort=labels, axis=axis, scale={"domain": labels})

    def height(self, each: int = 26) -> int:
        """Return the pixels of all rows, of which each has at least so many."""
        return len(self.lines) * max(each, 6 + 14 * max(map(len, self.lines.values())))


def _panels(views: Sequence[Spec], columns: int) -> Spec:
    apart = {"scale": dict.fromkeys(("x", "color", "shape"), "independent")}
    return {"concat": list(views), "columns": columns, "resolve": apart}


def _bars(rows: Sequence[Spec], x: Spec, colour: Spec, *layers: Spec, **more: Any) -> Spec:
    """Return bars from `left` to `right`, and layers on them."""
    bars = {"x": x, "x2": {"field": "right"}, "color": colour, "description": _word("said")}
    bar = _mark("bar", bars, height={"band": 0.72}, stroke="white", strokeWidth=0.8)
    return _layers(rows, {"y": more.pop("y")}, bar, *layers, **more)


# ----- quality against what is kept


def _frontier(of: Figures, looks: Mapping[str, Look]) -> Chart | None:
    """Draw every arm's knowledge against the tokens of its states.

    The controls are named and not drawn: on a scale with a state of 100 tokens and one of 50,000
    all others would be one heap.
    """
    marks: list[Mark] = []
    controls: list[str] = []
    for point in of.frontier.points:
        mean, tokens = of.estimate(point.arm), of.of_arm[point.arm].costs["tokens_after"]
        if mean is None or math.isnan(tokens):
            continue
        mark = Mark(looks[point.arm], tokens, mean.mean, mean.here, bool(point.dominated_by))
        if point.control:
            controls.append(f"{point.arm} {mean.mean:.2f} at {tokens:,.0f} tokens")
        else:
            marks.append(mark)
    if not marks:
        return None
    said = "Means. Hollow marks are dominated by another arm; the broken line joins the best of "
    said += "the others."
    if any(mark.interval and mark.interval[0] != mark.interval[1] for mark in marks):
        said = (
            "Means with 95 % intervals on these conversations. Hollow marks are dominated by "
            "another arm, by the intervals; the broken line joins the best of the others by their "
            "means, and where intervals overlap the order may be chance."
        )
    return drawn(
        "frontier",
        "Quality against retained tokens",
        said + (f" Controls, not drawn: {'; '.join(controls)}." if controls else ""),
        lambda width: scattered(marks, width, "tokens left (mean, logarithmic)"),
    )


def scattered(
    marks: Sequence[Mark],
    width: int,
    across: str,
    *,
    up: str = "knowledge, 0 to 5",
    most: float = MAX_SCORE,
) -> Spec:
    """Return marks of quality against tokens, and a line along those that none dominates."""
    best: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.tokens, -mark.quality)):
        if not mark.dominated and (not best or mark.quality > best[-1].quality):
            best.append(mark)
    rows = []
    for mark in marks:
        look, (low, high) = mark.look, mark.interval or (mark.quality, mark.quality)
        said = f"{look.label}: {mark.quality:.2f} at {mark.tokens:,.0f} tokens"
        row: Spec = {"arm": look.label, "colour": look.colour, "said": said}
        row |= {"tokens": max(mark.tokens, 1.0), "quality": mark.quality, "low": low, "high": high}
        rows.append(row | {"paint": "white" if mark.dominated else look.colour})
    seen = [row[name] for row in rows for name in ("low", "high")]
    middle = (max(seen) + min(seen)) / 2
    half = max(max(seen) - min(seen) + 0.06 * most, 0.24 * most) / 2
    low = max(min(max(middle - half, 0.0), most - 2 * half), 0.0)
    ends = [row["tokens"] for row in rows]
    broad = width > NARROW
    axis = {"format": ",", "labelOverlap": "greedy", "tickCount": 6 if broad else 4}
    room = _range(min(ends) / 1.25, max(ends) * 1.25, type="log")
    y = _number("quality", title=up, scale=_range(low, min(low + 2 * half, most)))
    legend = {"orient": "right" if broad else "bottom", "columns": 1, "symbolFillColor": "white"}
    legend["labelLimit"] = 340 if broad else width - 60
    colour, shape = _arms([mark.look for mark in marks], legend)
    point = {"stroke": colour, "fill": _colour("paint"), "shape": shape, "y": y}
    spread = {"y": _number("low", title=up), "y2": {"field": "high"}, "color": _colour("colour")}
    joined = [{"tokens": max(each.tokens, 1.0), "quality": each.quality} for each in best]
    dashed = {"strokeDash": [5, 3], "strokeWidth": 1.2, "color": "#444444"}
    return _layers(
        rows,
        {"x": _number("tokens", title=across, scale=room, axis=axis)},
        _mark("line", {"y": y}, joined, interpolate="step-after", **dashed),
        _mark("rule", spread, strokeWidth=1.6),
        _mark("point", point | {"description": _word("said")}, size=110, strokeWidth=2),
        width=width - 420 if broad else width - 60,
        height=380 if broad else 280,
    )


# ----- scores


def _radar(of: Figures, looks: Mapping[str, Look]) -> Chart | None:
    """Draw the six dimensions, a small radar for each arm."""
    known = {name: look for name, look in looks.items() if of.of_arm[name].estimates}
    if not known:
        return None

    def view(width: int) -> Spec:
        columns = 4 if width > NARROW else 2
        titles = _Rows(list(known.values()), NARROW).lines
        radars = []
        for name, look in known.items():
            means = [of.estimate(name, measure) for measure in structure().dimensions]
            radar = _web(look, [mean.mean if mean else math.nan for mean in means])
            side = width // columns - 100
            radars.append(radar | {"title": titles[look.label], "width": side, "height": side})
        return _panels(radars, columns)

    said = "Mean of each of the six dimensions, 0 to 5, for every arm."
    return drawn("radar", "Six dimensions", said, view)


def _web(look: Look, means: Sequence[float]) -> Spec:
    """Return one radar: Vega-Lite has no polar axes, so that its points are computed here."""
    names = [title_of(each) for each in structure().dimensions]
    turn, places = 2 * math.pi / len(names), range(len(names) + 1)

    def at(place: int, radius: float, **more: Any) -> Spec:
        x, y = radius * math.sin(turn * place), radius * math.cos(turn * place)
        return {"x": round(x, 4), "y": round(y, 4), "order": place} | more

    net = [at(place, ring, line=ring) for ring in range(1, 6) for place in places]
    net += [at(place, end, line=10 + place) for place in places[1:] for end in (0, MAX_SCORE)]
    ends: dict[str, list[Spec]] = {"center": [], "left": [], "right": []}
    for place, name in enumerate(names):
        sideways = math.sin(turn * place)
        align = "center" if abs(sideways) < 0.1 else "left" if sideways > 0 else "right"
        ends[align].append(at(place, MAX_SCORE * 1.08, name=name))
    rows = [
        at(place, mean, said=f"{look.label}, {name}: {mean:.2f}")
        for place, (name, mean) in enumerate(
            zip([*names, names[0]], [*means, means[0]], strict=True)
        )
        if not math.isnan(mean)
    ]
    span = _range(-MAX_SCORE * 1.02, MAX_SCORE * 1.02)
    lines = {"detail": _number("line"), "order": _number("order")}
    return _layers(
        rows,
        {axis: _number(axis, scale=span, axis=None) for axis in ("x", "y")},
        _mark("line", lines, net, color="#CCC", strokeWidth=1),
        *(
            _mark("text", {"text": _word("name")}, texts, align=align, fontSize=9)
            for align, texts in ends.items()
        ),
        _mark("line", {"order": _number("order")}, color=look.colour, strokeWidth=2),
        _mark("point", {"description": _word("said")}, filled=True, color=look.colour),
    )


def around(series: Mapping[str, Mapping[int, float]], width: int, across: str, up: str) -> Spec:
    """Return lines of values by whole numbers, from before 0 to after it, one for each name.

    Args:
        series: Values by name and number; the last name is drawn as a control.
        width: Of the chart.
        across: Title of the horizontal axis.
        up: Title of the vertical axis.
    """
    *names, control = series
    colours = [*COLOURS[: len(names)], CONTROL]
    rows = [
        {"name": name, "at": at, "value": value, "said": f"{name}, {at:+d}: {value:,.0f}"}
        for name, values in series.items()
        for at, value in values.items()
    ]
    broad = width > NARROW
    legend = {"orient": "top", "columns": len(series) if broad else 1, "labelLimit": width - 60}
    scale = {"domain": [*names, control], "range": colours}
    return _layers(
        rows,
        {
            "x": _number("at", title=across, axis={"tickCount": 11 if broad else 5}),
            "y": _number("value", title=up, axis={"format": ",.0f"}),
            "color": _word("name", scale=scale, legend=legend),
        },
        _mark(
            "rule", {"x": {"datum": 0}, "y": {}, "color": {"value": "#555555"}}, strokeDash=[4, 3]
        ),
        _mark("line", {}, strokeWidth=2),
        _mark("point", {"description": _word("said")}, filled=True, size=50),
        width=width - 90,
        height=300,
    )


def _dimensions(of: Figures, looks: Mapping[str, Look]) -> Chart | None:
    """Draw a panel of bars for each measure, with the interval on these conversations."""
    known = {name: look for name, look in looks.items() if of.of_arm[name].estimates}
    if not known:
        return None

    def panel(measure: str, **more: Any) -> Spec:
        most = 1.0 if measure in SHARES else MAX_SCORE
        title, rows = title_of(measure), []
        for name, look in known.items():
            estimate = of.estimate(name, measure)
            written = f"{estimate.mean:.2f}" if estimate else "no value"
            end = estimate.mean if estimate else 0.0
            row: Spec = {"arm": look.label, "left": 0, "right": end, "end": end}
            row |= {"written": written, "colour": look.colour}
            row["said"] = f"{look.label}, {title}: {written}"
            if estimate and estimate.here and not estimate.no_spread:
                low, high = (min(max(limit, 0.0), most) for limit in estimate.here)
                row |= {"low": low, "high": high, "end": max(end, high)}
            rows.append(row)
        axis = {"values": [0, 0.5, 1] if most == 1.0 else [*range(6)], "format": "~g"}
        x = _number("left", scale=_range(0, most * 1.18), axis=axis)
        spread = {"x": _number("low"), "x2": {"field": "high"}}
        ends = {"x": _number("end"), "text": _word("written")}
        return _bars(
            rows,
            x,
            _colour("colour"),
            _mark("rule", spread, strokeWidth=1.6),
            _mark("text", ends, align="left", dx=4),
            title=title,
            **more,
        )

    def view(width: int) -> Spec:
        columns, arms = 3 if width > NARROW else 1, _Rows(list(known.values()), width)
        size = {"width": arms.room // columns - 22, "height": arms.height()}
        views = [
            panel(measure, y=arms.axis(shown=not place % columns), **size)
            for place, measure in enumerate(HEADLINE)
        ]
        return _panels(views, columns)

    title, description = "Every measure", "Bars: means."
    estimates = (each for name in known for each in of.of_arm[name].estimates.values())
    if any(each.here and not each.no_spread for each in estimates):
        title += ", with its interval"
        description += " Lines: 95 % intervals on these conversations."
    return drawn("dimensions", title, description, view)


# ----- facts


def _survival(of: Figures, looks: Mapping[str, Look]) -> Chart | None:
    """Draw the share of facts in the state, by age and by cycle, a cell for each arm."""
    arms = {look: own for name, look in looks.items() if (own := of.of_arm[name].survival).by_age}
    if not arms:
        return None
    shares = {
        look.label: own.by_age | {_passed(number): each for number, each in own.by_cycle.items()}
        for look, own in arms.items()
    }
    cycles = {number for own in arms.values() for number in own.by_cycle}
    passed = sorted(cycles, key=lambda number: (len(number), number))
    columns = [group for group in AGE_GROUPS if any(group in own.by_age for own in arms.values())]
    columns += [_passed(number) for number in passed]
    cells = []
    for label, row in shares.items():
        for column in columns:
            share = row.get(column, Share(0, 0)).share
            known = not math.isnan(share)
            cell: Spec = {"arm": label, "column": column, "share": share if known else None}
            cell["written"] = f"{share:.0%}" if known else "–"
            cell["ink"] = "#555555" if not known else "white" if share > 0.55 else "black"
            cells.append(cell | {"said": f"{label}, {column}: {cell['written']}"})
    axis: Spec = {"labelAngle": 0, "ticks": False, "domain": False}
    axis["labelExpr"] = "split(datum.label, ' ')"
    # From pale to dark blue, which keeps its order in grey, too.
    shades = {"domain": [0, 0.5, 1], "range": ["#F2F5F9", "#7FB2D9", "#08457E"]}
    boxes = {"color": _number("share", scale=shades, legend=None), "description": _word("said")}

    def view(width: int) -> Spec:
        rows = _Rows(list(arms), width)
        return _layers(
            cells,
            {"x": _word("column", sort=None, axis=axis), "y": rows.axis()},
            _mark("rect", boxes, stroke="white", strokeWidth=2, invalid=None),
            _mark("text", {"text": _word("written"), "color": _colour("ink")}),
            resolve={"scale": {"color": "independent"}},
            width=rows.room,
            height=rows.height(30),
        )

    read = sum(own.read for own in arms.values())
    facts = sum(sum(own.stages.values()) for own in arms.values())
    agreed = ", ".join(
        f"{look.label} {percent(own.fact_agreement)}"
        for look, own in arms.items()
        if own.fact_agreement is not None
    )
    said = (
        "Share of the expected facts that are in the state, where the compression gave one: by the "
        "part of the history that said them first, and by the compressions they went through. "
    )
    said += f"By the reader's word on {read} of {facts} facts, else looked up." if read else ""
    said += "" if read else "Looked up in the state; no model read it."
    said += f" The look-up agrees on: {agreed}." if agreed else ""
    return drawn("survival", "Facts that survive", said, view)


def _passed(number: str) -> str:
    return f"{number} cycle" if number == "1" else f"{number} cycles"


def _stages(of: Figures, looks: Mapping[str, Look]) -> Chart | None:
    """Draw what became of the facts of every arm, as shares that add up to all."""
    arms = {look: own for name, look in looks.items() if (own := of.of_arm[name].survival.stages)}
    if not arms:
        return None
    present = [stage for stage in _STAGES if any(stage in counts for counts in arms.values())]
    names = [stage.replace("_", " ") for stage in present]
    shades = {"domain": names, "range": [_STAGES[stage] for stage in present]}

    def view(width: int) -> Spec:
        broad, rows = width > NARROW, _Rows(list(arms), width)
        parts = []
        for look, counts in arms.items():
            left, total = 0.0, sum(counts.values())
            for stage, shown in zip(present, names, strict=True):
                if not (share := counts.get(stage, 0) / total):
                    continue
                part: Spec = {"arm": look.label, "part": shown, "left": left, "right": left + share}
                part["said"] = f"{look.label}, {shown}: {share:.0%}"
                if share >= (0.06 if broad else 0.13):
                    ink = "white" if _STAGES[stage] in _DARK else "black"
                    part |= {"middle": left + share / 2, "written": f"{share:.0%}", "ink": ink}
                parts.append(part)
                left += share
        legend = {"orient": "bottom", "columns": 5 if broad else 2, "symbolType": "square"}
        axis = {"values": [0, 0.5, 1], "format": ".0%"}
        text = {"x": _number("middle"), "text": _word("written"), "color": _colour("ink")}
        return _bars(
            parts,
            _number("left", scale=_range(0, 1), axis=axis),
            _word("part", scale=shades, legend=legend),
            _mark("text", text),
            y=rows.axis(),
            width=rows.room,
            height=rows.height(),
            resolve={"scale": {"color": "independent"}},
        )

    said = (
        "Every expected fact of every answer by what became of it. Blue: in the answer. "
        "Yellow: in the state, not in the answer. Orange to brown: not in the state. "
        "Grey: not known, or no state."
    )
    return drawn("stages", "Where facts were lost", said, view)
