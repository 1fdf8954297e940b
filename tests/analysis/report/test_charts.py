"""Charts of many arms: every arm can be told apart, and a hostile name stays text."""

import re
from xml.etree import ElementTree

from compression_eval.analysis.comparison.measures import Failures
from compression_eval.analysis.report.charts import CONTROL, charts, looks
from compression_eval.analysis.report.figures import ArmFigures, Figures, Survival
from compression_eval.analysis.report.tradeoff import Frontier, Point, ReportedArm
from compression_eval.analysis.statistics.intervals import Estimate

_TITLE = re.compile(r"<title>([^<]*)</title>")


def test_every_arm_has_a_look_of_its_own() -> None:
    names = ["full", "none", *(f"arm {number}" for number in range(24))]
    found = looks(names, frozenset({"full", "none"}))
    assert found["full"].colour == found["none"].colour == CONTROL
    others = [(look.colour, look.shape) for name, look in found.items() if name.startswith("arm")]
    assert len(set(others)) == 24
    assert found["full"].shape != found["none"].shape


def test_every_mark_gives_its_value_and_controls_are_in_the_description() -> None:
    arms = {f"arm {n:02}": (1000.0 + 90 * (n % 5), 2.5 + 0.05 * n) for n in range(12)}
    made = {chart.name: chart for chart in charts(_figures(arms | {"full": (90_000.0, 4.9)}))}
    chart = made["frontier"]
    assert chart.png.startswith(b"\x89PNG")
    for svg in (chart.svg, chart.narrow):
        assert {said.split(":")[0] for said in _TITLE.findall(svg)} == set(arms)
    assert "arm 03: 2.65 at 1,270 tokens" in _TITLE.findall(chart.svg)
    # A control far away would press the others together.
    assert chart.description.endswith("Controls, not drawn: full 4.90 at 90,000 tokens.")
    assert "arm 03, Knowledge: 2.65" in _TITLE.findall(made["dimensions"].svg)


def test_a_hostile_name_stays_text() -> None:
    name = "<script>alert(1)</script><img src=x onerror=alert(1)> \" ' & {{7*7}} $x$"
    for chart in charts(_figures({name: (1000.0, 3.0)})):
        for svg in (chart.svg, chart.narrow):
            root = ElementTree.fromstring(svg)  # noqa: S314 - our own
            assert {element.tag.partition("}")[2] for element in root.iter()} <= {
                *("svg", "g", "path", "text", "line", "rect", "title", "defs", "clipPath", "tspan")
            }
            assert any("<script>" in (element.text or "") for element in root.iter())
            assert not any(
                key.startswith("on") for element in root.iter() for key in element.attrib
            )


def _figures(arms: dict[str, tuple[float, float]]) -> Figures:
    """Return figures of arms that have a size, a knowledge and nothing else."""
    of_arm = {
        name: ArmFigures(
            table=[],
            estimates={"knowledge": Estimate(quality, 3, 1, 3, None, None, no_spread=False)},
            groups={},
            misses=[],
            survival=Survival({}, {}, {}),
            costs={"compressions": 0, "tokens_after": tokens},
            failures=Failures(1, 0, 1, 0, {}, 0, {}),
            suspect=0,
            abstained=0,
        )
        for name, (tokens, quality) in arms.items()
    }
    reported = [
        ReportedArm(name, "x", "{}", "", "ceiling" if name == "full" else "", "m", "m", "g", False,
                    False, ["log"], 1, 1, 1, "m")
        for name in arms
    ]  # fmt: skip
    points = [Point(name, *own, "", name == "full") for name, own in arms.items()]
    return Figures("", reported, of_arm, {}, Frontier(3, points, [], []), [])
