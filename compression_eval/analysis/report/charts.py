"""Charts of a report, by Vega-Lite: SVG for the page at two widths, PNG for elsewhere.

Each chart is a function of the figures that returns a Vega-Lite specification for a width, as
plain data. No text of a conversation is in them; names of arms are data of a specification, which
Vega escapes. vl-convert draws without a browser or a network.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from textwrap import fill
from typing import Any, get_args

from compression_eval.analysis.comparison.measures import HEADLINE, SHARES
from compression_eval.analysis.report.figures import Figures, Share
from compression_eval.analysis.report.sections import percent, title_of
from compression_eval.analysis.report.tradeoff import Point
from compression_eval.analysis.spending import FETCHING
from compression_eval.facts.life import AGE_GROUPS, Stage
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, structure
from compression_eval.text.printable import clean

Spec = dict[str, Any]
"""A Vega-Lite specification: a view, layers, or several views beside each other."""

WIDE, HALF, NARROW = 980, 620, 400
"""Pixels: across the page, half of it, and on a telephone."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#5A4FA2", "#8C6D1F")
"""After Okabe and Ito (2008), darkened where thin lines would be too pale."""

CONTROL = "#6E6E6E"
"""Colour of the controls."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left")

MAX_TOGETHER = 6
"""Maximum arms in one readable radar."""

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

_COSTS: Mapping[str, Sequence[str]] = {
    "tokens per compression": ("input_tokens", "output_tokens"),
    "tokens per answer": ("answer_input_tokens", "answer_output_tokens"),
    "seconds per compression": ("seconds",),
}
"""Panels of the costs: what goes in, and what comes out."""

_SPLIT = "split(datum.label, '\\n')"
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
    """A chart as the report's files hold it."""

    name: str
    """Name of its files, without suffix."""
    title: str
    description: str
    """Text alternative of the chart."""
    svg: str
    narrow: str
    """SVG for a telephone."""
    png: bytes
    broad: bool
    """Whether it needs the whole width of a page."""


@dataclass(frozen=True)
class Look:
    """What one arm looks like in every chart."""

    label: str
    colour: str
    shape: str


@dataclass(frozen=True)
class Drawing:
    """A chart that is not yet drawn."""

    title: str
    description: str
    width: int
    """Of the wide form, in pixels."""
    view: Callable[[int], Spec]
    """The specification for a width."""


def charts(of: Figures) -> list[Chart]:
    """Draw the charts that there are figures for, in the order of the page."""
    controls = frozenset(arm.name for arm in of.arms if arm.role)
    failed = {arm.name: arm.failed for arm in of.arms if arm.failed}
    look = looks([arm.name for arm in of.arms], controls, failed)
    made = ((name, draw(of, look)) for name, draw in CHARTS.items())
    return [drawn(name, drawing) for name, drawing in made if drawing]


def drawn(name: str, drawing: Drawing) -> Chart:
    """Draw a chart; the same figures give the same bytes."""
    from vl_convert import svg_to_png

    wide, narrow = (_svg(drawing.view(width)) for width in (drawing.width, NARROW))
    pixels = svg_to_png(wide, scale=_SCALE)
    broad = drawing.width > HALF
    return Chart(name, drawing.title, drawing.description, wide, narrow, pixels, broad)


def _svg(view: Spec) -> str:
    """Return a view as SVG in which every mark says its value to the pointer."""
    from vl_convert import vegalite_to_svg

    return _MARK.sub(r"\1><title>\2</title></path>", vegalite_to_svg(view | {"config": _CONFIG}))


def looks(
    names: Sequence[str], controls: frozenset[str], failed: Mapping[str, str] | None = None
) -> dict[str, Look]:
    """Return the look of every arm, by name.

    Args:
        names: In the report's order.
        controls: Names of the controls; they are grey.
        failed: What to say of arms with failures, by name.
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


# ----- what the charts share


def _number(field: str, **more: Any) -> Spec:
    """Return how a number is drawn."""
    return {"field": field, "type": "quantitative", "title": None} | more


def _word(field: str, **more: Any) -> Spec:
    """Return how a text is drawn."""
    return {"field": field, "type": "nominal", "title": None} | more


def _colour(field: str) -> Spec:
    """Return colours that stand in the data."""
    return {"field": field, "type": "nominal", "scale": None, "legend": None}


def _range(*ends: float, **more: Any) -> Spec:
    return {"domain": list(ends), "nice": False, "zero": False} | more


def _mark(kind: str, encoding: Spec, rows: Sequence[Spec] = (), **more: Any) -> Spec:
    """Return a layer; what says nothing of its own is silent to the pointer."""
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


def _lines(label: str, width: int) -> str:
    """Return a label in lines that leave the chart its room."""
    breakable = _LONG_WORD.sub(r"\1 ", label)
    most = 30 if width > NARROW else 18
    return fill(breakable, most, break_long_words=False, break_on_hyphens=False)


def _rows(labels: Sequence[str], *, shown: bool = True) -> Spec:
    """Return the axis of a horizontal chart, the first arm on top."""
    axis = {"labels": shown, "labelExpr": _SPLIT, "labelPadding": 6}
    axis |= {"ticks": False, "domain": False, "grid": False}
    return _word("row", sort=list(labels), axis=axis, scale={"domain": list(labels)})


def _room(labels: Sequence[str]) -> int:
    """Return the pixels that the names of rows take."""
    return 40 + 7 * max(len(line) for label in labels for line in label.split("\n"))


def _height(labels: Sequence[str], *, each: int = 26) -> int:
    lines = max(label.count("\n") for label in labels) + 1
    return len(labels) * max(each, 6 + 14 * lines)


def _panels(views: Sequence[Spec], columns: int) -> Spec:
    apart = {"scale": dict.fromkeys(("x", "color", "shape"), "independent")}
    return {"concat": list(views), "columns": columns, "resolve": apart}


def _beside(
    panels: Sequence[str],
    labels: Sequence[str],
    width: int,
    panel: Callable[[str, Sequence[str], int, bool], Spec],
) -> Spec:
    """Return panels in three columns, or on a telephone in one; the first names the rows."""
    columns = 3 if width > NARROW else 1
    lines = [_lines(label, width) for label in labels]
    each = (width - _room(lines)) // columns - 22
    views = [panel(name, lines, each, not place % columns) for place, name in enumerate(panels)]
    return _panels(views, columns)


def _bars(
    rows: Sequence[Spec],
    x: Spec,
    colour: Spec,
    labels: Sequence[str],
    *layers: Spec,
    width: int,
    names: bool = True,
    title: str = "",
) -> Spec:
    """Return bars from `left` to `right`, with what is `written` behind their `end`."""
    bars = {"x": x, "x2": {"field": "right"}, "color": colour, "description": _word("said")}
    text = {"x": _number("end"), "text": _word("written")}
    return _layers(
        rows,
        {"y": _rows(labels, shown=names)},
        _mark("bar", bars, height={"band": 0.72}, stroke="white", strokeWidth=0.8),
        *layers,
        *([_mark("text", text, align="left", dx=4)] if any("end" in row for row in rows) else ()),
        width=width,
        height=_height(labels),
        title=title,
    )


# ----- quality against what is kept


def _frontier(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
    """Draw every arm's knowledge against the tokens of its states.

    The controls are named and not drawn: beside a state of 100 tokens and one of 50,000 all
    others would be one heap.
    """
    known = [point for point in of.frontier.points if not math.isnan(point.tokens)]
    points = [point for point in known if not point.control] or known
    if not points:
        return None
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
    return Drawing(
        "Quality against retained tokens",
        f"{said} On the probes that all have an answer to."
        + (f" Controls, not drawn: {'; '.join(controls)}." if controls else ""),
        HALF if len(points) <= MAX_TOGETHER else WIDE,
        lambda width: scattered(points, looks, width, "tokens left (mean, logarithmic)"),
    )


def _spending(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
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
            look = looks[arm]
            marks[name] = Look(look.label + more, look.colour, "stroke" if more else look.shape)
    if not points:
        return None
    return Drawing(
        "Quality against tokens per answer, with and without fetching",
        "Input and output of all requests of an answer. Hollow marks are dominated, by the means: "
        "another is no worse and takes fewer tokens. The broken line joins the others.",
        HALF if len(points) <= MAX_TOGETHER else WIDE,
        lambda width: scattered(
            points, marks, width, "tokens per answer, fetching included (logarithmic)"
        ),
    )


def scattered(
    points: Sequence[Point],
    looks: Mapping[str, Look],
    width: int,
    across: str,
    *,
    up: str = "knowledge, 0 to 5",
    most: float = MAX_SCORE,
) -> Spec:
    """Return marks of quality against tokens, and a line along those that none dominates."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.tokens, -point.quality)):
        if not point.dominated_by and (not best or point.quality > best[-1].quality):
            best.append(point)
    rows = []
    for point in points:
        look, limits = looks[point.arm], point.interval or (point.quality, point.quality)
        said = f"{look.label}: {point.quality:.2f} at {point.tokens:,.0f} tokens"
        row: Spec = {"arm": look.label, "colour": look.colour, "said": said}
        row |= {"tokens": max(point.tokens, 1.0), "quality": point.quality}
        row |= {"low": limits[0], "high": limits[1]}
        rows.append(row | {"paint": "white" if point.dominated_by else look.colour})
    seen = [row[name] for row in rows for name in ("low", "high")]
    middle = (max(seen) + min(seen)) / 2
    half = max(max(seen) - min(seen) + 0.06 * most, 0.24 * most) / 2
    low = max(min(max(middle - half, 0.0), most - 2 * half), 0.0)
    ends = [row["tokens"] for row in rows]
    broad = width > NARROW
    axis = {"format": ",", "labelOverlap": "greedy", "tickCount": 6 if broad else 4}
    room = _range(min(ends) / 1.25, max(ends) * 1.25, type="log")
    y = _number("quality", title=up, scale=_range(low, min(low + 2 * half, most)))
    sideways = width > HALF
    legend = {"orient": "right" if sideways else "bottom", "columns": 1, "symbolFillColor": "white"}
    legend["labelLimit"] = 340 if sideways else width - 60
    colour, shape = _arms([looks[point.arm] for point in points], legend)
    marks = {"stroke": colour, "fill": _colour("paint"), "shape": shape}
    spread = {"y": _number("low", title=up), "y2": {"field": "high"}, "color": _colour("colour")}
    joined = [{"tokens": max(each.tokens, 1.0), "quality": each.quality} for each in best]
    dashed = {"strokeDash": [5, 3], "strokeWidth": 1.2, "color": "#444444"}
    return _layers(
        rows,
        {"x": _number("tokens", title=across, scale=room, axis=axis)},
        _mark("line", {"y": y}, joined, interpolate="step-after", **dashed),
        _mark("rule", spread, strokeWidth=1.6),
        _mark("point", marks | {"y": y, "description": _word("said")}, size=110, strokeWidth=2),
        width=width - 420 if sideways else width - 60,
        height=380 if broad else 280,
    )


def _retention(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
    """Draw the normalised retention of knowledge."""
    found = []
    for name in looks:
        retention = of.retained[name].measures.get(KNOWLEDGE) if name in of.retained else None
        if retention is not None and retention.share is not None:
            found.append((looks[name], retention.share, retention.here, retention.elsewhere))
    if not found:
        return None
    limits = [limit for _, _, *both in found for each in both for limit in each or ()]
    shares = [share for _, share, *_ in found]
    # Intervals may run out of the chart, the values never.
    low = min(max(min([0.0, *limits]), -0.6), *shares) - 0.05
    high = max(min(max([1.0, *limits]), 1.8), *shares) + 0.05

    def view(width: int) -> Spec:
        labels = [_lines(look.label, width) for look, *_ in found]
        rows = []
        for label, (look, share, here, there) in zip(labels, found, strict=True):
            row = {"row": label, "share": share, "colour": look.colour}
            row |= {"written": f"{share:.0%}", "said": f"{look.label}: {share:.0%}"}
            for name, both in (("here", here), ("there", there)):
                for end, limit in zip(("low", "high"), both or (), strict=False):
                    row[f"{name}_{end}"] = min(max(limit, low), high)
            rows.append(row)
        ticks = {0: "floor 0 %", 0.5: "50 %", 1: "ceiling 100 %"}
        axis = {"values": list(ticks), "labelExpr": f"{ticks}[datum.value]", "labelFlush": False}
        x = _number("share", scale=_range(low, high), axis=axis)

        def rule(name: str, colour: Spec, thick: float) -> Spec:
            ends = {"x": _number(f"{name}_low"), "x2": {"field": f"{name}_high"}, "color": colour}
            return _mark("rule", ends, strokeWidth=thick)

        marks = {"x": x, "color": _colour("colour"), "description": _word("said")}
        return _layers(
            rows,
            {"y": _rows(labels)},
            rule("there", {"value": "#999999"}, 1.2),
            rule("here", _colour("colour"), 3.2),
            _mark("point", marks, filled=True, size=90),
            _mark("text", {"x": x, "text": _word("written")}, dy=-11),
            width=width - _room(labels),
            height=_height(labels, each=36),
        )

    said = (
        "(arm - floor) / (ceiling - floor) of knowledge, failures as 0. Thick lines: 95 % "
        "intervals on these conversations; thin lines: for new conversations."
    )
    return Drawing("Retention between floor and ceiling", said, WIDE, view)


# ----- scores


def _radar(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
    """Draw the six dimensions of every arm; with many arms, one small radar for each."""
    arms = [name for name in looks if of.of_arm[name].estimates]
    if not arms:
        return None
    means: dict[Look, list[float]] = {}
    for name in arms:
        found = map(of.of_arm[name].estimates.get, structure().dimensions)
        means[looks[name]] = [each.mean if each else math.nan for each in found]
    together = len(arms) <= MAX_TOGETHER

    def view(width: int) -> Spec:
        if together:
            return _web(means, 300 if width > NARROW else 220, width)
        columns = 4 if width > NARROW else 2
        side = width // columns - 100
        small = [
            _web({look: own}, side, 0) | {"title": _lines(look.label, NARROW).split("\n")}
            for look, own in means.items()
        ]
        return _panels(small, columns)

    said = "Mean of each of the six dimensions, 0 to 5, for every arm; failures count as 0."
    return Drawing("Six dimensions", said, HALF if together else WIDE, view)


def _web(means: Mapping[Look, Sequence[float]], side: int, width: int) -> Spec:
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
        aside = math.sin(turn * place)
        align = "center" if abs(aside) < 0.1 else "left" if aside > 0 else "right"
        ends[align].append(at(place, MAX_SCORE * 1.08, name=name))
    rows = []
    for look, own in means.items():
        for place, (name, mean) in enumerate(zip([*names, names[0]], [*own, own[0]], strict=True)):
            if not math.isnan(mean):
                said = f"{look.label}, {name}: {mean:.2f}"
                rows.append(at(place, mean, arm=look.label, said=said))
    sideways = width > NARROW
    legend: Spec = {"orient": "right" if sideways else "bottom", "columns": 1}
    legend |= {"offset": 100, "labelLimit": 180} if sideways else {"offset": 18, "labelLimit": 340}
    colour, shape = _arms(list(means), legend if width else None)
    span = _range(-MAX_SCORE * 1.02, MAX_SCORE * 1.02)
    order, size = _number("order"), 12 if sideways else 11 if width else 9
    return _layers(
        rows,
        {axis: _number(axis, scale=span, axis=None) for axis in ("x", "y")},
        _mark(
            "line", {"detail": _number("line"), "order": order}, net, color="#CCC", strokeWidth=1
        ),
        *(
            _mark("text", {"text": _word("name")}, texts, align=align, fontSize=size)
            for align, texts in ends.items()
        ),
        _mark("line", {"color": colour, "order": order}, strokeWidth=2),
        _mark(
            "point", {"color": colour, "shape": shape, "description": _word("said")}, filled=True
        ),
        width=side,
        height=side,
    )


def _dimensions(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
    """Draw a panel of bars for each measure, with the interval on these conversations."""
    arms = [name for name in looks if of.of_arm[name].estimates]
    if not arms:
        return None

    def panel(measure: str, labels: Sequence[str], width: int, names: bool) -> Spec:
        most = 1.0 if measure in SHARES else MAX_SCORE
        title, rows = title_of(measure), []
        for name, label in zip(arms, labels, strict=True):
            estimate = of.of_arm[name].estimates.get(measure)
            written = f"{estimate.mean:.2f}" if estimate else "no value"
            said = f"{looks[name].label}, {title}: {written}"
            end = estimate.mean if estimate else 0.0
            row: Spec = {"row": label, "left": 0, "right": end, "end": end, "said": said}
            row |= {"written": written, "colour": looks[name].colour}
            if estimate and estimate.here and not estimate.no_spread:
                low, high = (min(max(limit, 0.0), most) for limit in estimate.here)
                row |= {"low": low, "high": high, "end": max(end, high)}
            rows.append(row)
        axis = {"values": [0, 0.5, 1] if most == 1.0 else [*range(6)], "format": "~g"}
        x = _number("left", scale=_range(0, most * 1.18), axis=axis)
        spread = _mark("rule", {"x": _number("low"), "x2": {"field": "high"}}, strokeWidth=1.6)
        colour = _colour("colour")
        return _bars(rows, x, colour, labels, spread, width=width, names=names, title=title)

    title, description = "Every measure", "Bars: means, failures as 0."
    estimates = (each for name in arms for each in of.of_arm[name].estimates.values())
    if any(each.here and not each.no_spread for each in estimates):
        title += ", with its interval"
        description += " Lines: 95 % intervals on these conversations."
    own = [looks[name].label for name in arms]
    return Drawing(title, description, WIDE, lambda width: _beside(HEADLINE, own, width, panel))


# ----- facts


def _survival(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
    """Draw the share of facts in the state, by age and by cycle, a cell for each arm."""
    arms = {name: of.of_arm[name].survival for name in looks if of.of_arm[name].survival.by_age}
    if not arms:
        return None
    ages = [group for group in AGE_GROUPS if any(group in arm.by_age for arm in arms.values())]
    cycles = {cycle for arm in arms.values() for cycle in arm.by_cycle}
    passed = sorted(cycles, key=lambda name: (len(name), name))

    def view(width: int) -> Spec:
        labels = [_lines(looks[name].label, width) for name in arms]
        broad, room = width > NARROW, width - _room(labels) - 20
        parts = (max(len(ages), 2), max(len(passed), 2))
        first = room * parts[0] // sum(parts) if broad else room
        second = room - first if broad else min(room, 90 * len(passed))
        by_age, by_cycle = zip(*((arm.by_age, arm.by_cycle) for arm in arms.values()), strict=True)
        left = _cells(by_age, ages, labels, first, names=True)
        right = _cells(by_cycle, passed, labels, second, names=not broad)
        titles = ("by age: part of the history", "by cycles")
        views = [part | {"title": title} for part, title in zip((left, right), titles, strict=True)]
        return _panels(views, 2 if broad else 1)

    # By whose word facts are in the states.
    read = sum(arm.read for arm in arms.values())
    facts = sum(sum(arm.stages.values()) for arm in arms.values())
    agreed = ", ".join(
        f"{name} {percent(arm.fact_agreement)}"
        for name, arm in arms.items()
        if arm.fact_agreement is not None
    )
    source = f"By the reader's word on {read} of {facts} facts, else looked up."
    source += f" The look-up agrees on: {agreed}." if agreed else ""
    said = (
        "Share of the expected facts that are in the state. First quarter: said first in the "
        "oldest part of the history. Where a compression failed, none of them is. "
    )
    said += source if read else "Looked up in the state; no model read it."
    return Drawing("Facts that survive", said, WIDE, view)


def _cells(
    rows: Sequence[Mapping[str, Share]],
    columns: Sequence[str],
    labels: Sequence[str],
    width: int,
    *,
    names: bool,
) -> Spec:
    cells = []
    for label, row in zip(labels, rows, strict=True):
        for column in columns:
            share = row.get(column, Share(0, 0)).share
            known = not math.isnan(share)
            cell: Spec = {"row": label, "column": column.replace(" quarter", "\nquarter")}
            cell |= {"share": share if known else None, "written": f"{share:.0%}" if known else "–"}
            cell["ink"] = "#555555" if not known else "white" if share > 0.55 else "black"
            cell["said"] = f"{label}, {column}: {cell['written']}".replace("\n", " ")
            cells.append(cell)
    axis = {"labelAngle": 0, "ticks": False, "domain": False, "labelExpr": _SPLIT}
    # From pale to dark blue, which keeps its order in grey, too.
    shades = {"domain": [0, 0.5, 1], "range": ["#F2F5F9", "#7FB2D9", "#08457E"]}
    boxes = {"color": _number("share", scale=shades, legend=None), "description": _word("said")}
    return _layers(
        cells,
        {"x": _word("column", sort=None, axis=axis), "y": _rows(labels, shown=names)},
        _mark("rect", boxes, stroke="white", strokeWidth=2, invalid=None),
        _mark("text", {"text": _word("written"), "color": _colour("ink")}),
        resolve={"scale": {"color": "independent"}},
        width=width,
        height=_height(labels, each=30),
    )


def _stages(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
    """Draw what became of the facts of every arm, as shares that add up to all."""
    arms = {name: found for name in looks if (found := of.of_arm[name].survival.stages)}
    if not arms:
        return None
    present = [stage for stage in _STAGES if any(stage in counts for counts in arms.values())]

    def view(width: int) -> Spec:
        broad, labels = width > NARROW, [_lines(looks[name].label, width) for name in arms]
        rows = []
        for label, counts in zip(labels, arms.values(), strict=True):
            left, total = 0.0, sum(counts.values())
            for stage in (each for each in present if counts.get(each)):
                share, shown = counts[stage] / total, stage.replace("_", " ")
                row: Spec = {"row": label, "part": shown, "left": left, "right": left + share}
                row["said"] = f"{label}, {shown}: {share:.0%}".replace("\n", " ")
                if share >= (0.06 if broad else 0.13):
                    ink = "white" if _STAGES[stage] in _DARK else "black"
                    row |= {"middle": left + share / 2, "written": f"{share:.0%}", "ink": ink}
                rows.append(row)
                left += share
        names = [stage.replace("_", " ") for stage in present]
        shades = {"domain": names, "range": [_STAGES[stage] for stage in present]}
        legend = {"orient": "bottom", "columns": 5 if broad else 2, "symbolType": "square"}
        colour = _word("part", scale=shades, legend=legend)
        axis = {"values": [0, 0.5, 1], "format": ".0%"}
        text = {"x": _number("middle"), "text": _word("written"), "color": _colour("ink")}
        bars = _bars(
            rows,
            _number("left", scale=_range(0, 1), axis=axis),
            colour,
            labels,
            _mark("text", text),
            width=width - _room(labels),
        )
        return bars | {"resolve": {"scale": {"color": "independent"}}}

    said = (
        "Every expected fact of every answer by what became of it. Blue: in the answer. "
        "Yellow: in the state, not in the answer. Orange to brown: not in the state. "
        "Grey: not known, or no state."
    )
    return Drawing("Where facts were lost", said, WIDE, view)


# ----- costs


def _costs(of: Figures, looks: Mapping[str, Look]) -> Drawing | None:
    """Draw what a compression takes and what an answer from its state takes."""
    arms = [name for name in looks if of.of_arm[name].costs["compressions"]]
    if not arms:
        return None

    def panel(title: str, labels: Sequence[str], width: int, names: bool) -> Spec:
        rows: list[Spec] = []
        most = 0.0
        for label, name in zip(labels, arms, strict=True):
            left = 0.0
            for part, column in zip(("in", "out"), _COSTS[title], strict=False):
                value = of.of_arm[name].costs.get(column, math.nan)
                value = 0.0 if math.isnan(value) else value
                said = f"{label}, {title}, {part}: {_short(value)}".replace("\n", " ")
                row = {"row": label, "part": part, "left": left, "right": left + value}
                rows.append(row | {"said": said})
                left += value
            rows[-1] |= {"end": left, "written": _short(left)}
            most = max(most, left)
        axis = {"format": "~s", "tickCount": 4, "labelExpr": "datum.value ? datum.label : '0'"}
        x = _number("left", scale=_range(0, most * 1.28 or 1), axis=axis)
        shades = {"domain": ["in", "out"], "range": ["#0072B2", "#E69F00"]}
        colour = _word("part", scale=shades, legend={"orient": "bottom"})
        return _bars(rows, x, colour, labels, width=width, names=names, title=title)

    own = [looks[name].label for name in arms]
    description = "Means per compression and per answer, as the runs measured them."
    return Drawing(
        "Cost and time", description, WIDE, lambda width: _beside(list(_COSTS), own, width, panel)
    )


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value / 1000:.1f}".removesuffix(".0") + "k"
    if 0 < value < 0.01:
        return "<0.01"
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


CHARTS: Mapping[str, Callable[[Figures, Mapping[str, Look]], Drawing | None]] = {
    "frontier": _frontier,
    "spending": _spending,
    "radar": _radar,
    "dimensions": _dimensions,
    "retention": _retention,
    "survival": _survival,
    "stages": _stages,
    "costs": _costs,
}
"""What draws each chart, in the order of the page."""
