"""Pictures of many arms: labels are told apart, drawable, and none covers another."""

import math
import re
from itertools import combinations

from compression_eval.analysis.report.charts import PICTURES, chart
from compression_eval.analysis.report.drawing import CONTROL, looks
from compression_eval.analysis.report.figures import ArmFigures, Failures, Figures, Survival
from compression_eval.analysis.report.tradeoff import Frontier, Point, ReportedArm

_LABEL = re.compile(r"<!-- (arm \d\d) -->\s*<g[^>]*translate\(([\d.]+) ([\d.]+)\)")
_WIDTH, _HEIGHT = 32, 8
"""Of such a label at its size, in points."""


def test_every_arm_has_a_look_of_its_own() -> None:
    names = ["full", "none", *(f"arm {number}" for number in range(24))]
    found = looks(names, frozenset({"full", "none"}))
    assert found["full"].colour == found["none"].colour == CONTROL
    others = [(look.colour, look.marker) for name, look in found.items() if name.startswith("arm")]
    assert len(set(others)) == 24
    assert found["full"].marker != found["none"].marker


def test_labels_are_short_drawable_and_different() -> None:
    long = "anchored (prompt 0123abcd, tail_tokens=2000) [vendor/model-"
    names = [f"{long}1]", f"{long}2]", "圧縮.py@mine", "\x1b[2Jx", "$x_1$"]
    labels = [look.label for look in looks(names, frozenset()).values()]
    assert len(set(labels)) == len(labels)
    # What differs stands at the end and is never cut.
    assert labels[0].endswith("1]")
    assert labels[1].endswith("2]")
    assert all(len(line) <= 40 for label in labels for line in label.splitlines())
    assert all(line.isprintable() for label in labels for line in label.splitlines())
    assert not any("圧" in label for label in labels)
    assert labels[-1] == "$x_1$"


def test_a_crowd_of_arms_is_labelled_without_overlap() -> None:
    points = [
        Point(f"arm {n:02}", 1000.0 + 90 * (n % 5), 2.5 + 0.05 * n, None, "", False)
        for n in range(12)
    ]
    points.append(Point("full", 90_000.0, 4.9, None, "", True))
    drawn = [chart(_figures(points), name) for name in PICTURES]
    (wide,) = (each for each in drawn if each)
    assert (wide.name, wide.broad) == ("frontier", True)
    assert wide.png.startswith(b"\x89PNG")
    found = {name: (float(x), float(y)) for name, x, y in _LABEL.findall(wide.svg)}
    # A control far away would press the others together; it is told in words.
    assert set(found) == {point.arm for point in points if not point.control}
    assert wide.description.endswith("Controls, not drawn: full 4.90 at 90,000 tokens.")
    narrow = chart(_figures(points), "frontier", narrow=True)
    assert narrow
    assert not narrow.broad
    for (_, one), (_, other) in combinations(found.items(), 2):
        assert abs(one[0] - other[0]) >= _WIDTH or abs(one[1] - other[1]) >= _HEIGHT


def _figures(points: list[Point]) -> Figures:
    """Return figures of arms that have nothing but a place on the frontier."""
    nothing = ArmFigures(
        table=[],
        estimates={},
        groups={},
        misses=[],
        survival_read=None,
        survival=Survival({}, {}, {}),
        costs={"compressions": 0},
        failures=Failures(0, 0, 0, {}, 0, {}, 0, math.nan),
    )
    arms = [
        ReportedArm(point.arm, "x", "{}", "", "", "m", "m", "g", False, False, ["log"], 1, 1, 1, "")
        for point in points
    ]
    of_arm = {point.arm: nothing for point in points}
    return Figures("", arms, of_arm, {}, Frontier(3, points, [], [], []), [])
