"""The report as one page that needs nothing else: style, script, charts and data are in it."""

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import Any

from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.logs import Log
from compression_eval.analysis.report import grids, provenance
from compression_eval.analysis.report.charts.style import Chart
from compression_eval.analysis.report.figures import Figures
from compression_eval.analysis.report.page import part
from compression_eval.analysis.report.probes import probe_data
from compression_eval.analysis.report.published import Published
from compression_eval.analysis.report.reading import Frames
from compression_eval.analysis.report.retained import CLOSEST
from compression_eval.analysis.report.survival import STAGES
from compression_eval.analysis.report.texts import script_json
from compression_eval.analysis.report.viewer import Viewer
from compression_eval.analysis.report.wording import counted, findings
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.analysis.tables import clean

_PROLOGUE = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_LONGEST_CELL = 1000

_SECTIONS = (
    ("summary", "Arms"),
    ("charts", "Charts"),
    ("scores", "Scores"),
    ("intervals", "Intervals"),
    ("pairs", "Pairs"),
    ("groups", "Groups"),
    ("misses", "Misses"),
    ("costs", "Cost"),
    ("failures", "Failures"),
    ("probes", "Probes"),
    ("runs", "Runs"),
)

_INTERVALS = (
    "Means over the conversations, every one counting the same. Under each, 95 % intervals: on "
    "these conversations (fixtures and probes as they are; the unit is the compression), below it "
    "for new conversations (the unit is the fixture; Student's t). No spread: every "
    "compression and answer came out the same."
)


def html_page(
    of: Figures,
    frames: Frames,
    logs: Sequence[Log],
    charts: tuple[Sequence[Chart], Sequence[Chart]],
    viewer: Viewer,
    reference: Published | None,
) -> str:
    """Return the page.

    Args:
        of: The figures.
        frames: What they were computed from.
        logs: The logs that were read.
        charts: Pictures, in their order, and the same ones for narrow screens.
        viewer: How samples are reached.
        reference: Published figures to show beside ours.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    script = part("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_fit)
    # Markup is only what is ours: style, script, charts without a text of a conversation, and
    # JSON in which nothing can end its element.
    return environment.from_string(part("report.html.jinja")).render(
        **_context(of, frames, logs, viewer, reference),
        style=Markup(part("report.css")),  # noqa: S704
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest}",
        data=Markup(script_json(probe_data(frames, logs, of.arms, viewer))),  # noqa: S704
        charts=[
            {
                "name": chart.name,
                "title": chart.title,
                "description": chart.description,
                "broad": chart.broad,
                "svg": Markup(_PROLOGUE.sub("", chart.svg)),  # noqa: S704
                "narrow": Markup(_PROLOGUE.sub("", narrow.svg)),  # noqa: S704
            }
            for chart, narrow in zip(*charts, strict=True)
        ],
    )


def _fit(value: Any) -> Any:
    """Make every text that the template puts in fit for a page; markup of ours stays."""
    return clean(value, _LONGEST_CELL) if type(value) is str else value


def _context(
    of: Figures,
    frames: Frames,
    logs: Sequence[Log],
    viewer: Viewer,
    reference: Published | None,
) -> dict[str, Any]:
    arms = [
        {
            "name": arm.name,
            "table": grids.scores(of.of_arm[arm.name].table),
            "misses": grids.misses(of.of_arm[arm.name].misses),
            "misses_title": _misses_title(len(of.of_arm[arm.name].misses)),
        }
        for arm in of.arms
    ]
    shared = of.frontier.probes
    return {
        "lead": f"{counted(len(of.arms), 'arm')}, {counted(len(logs), 'log')}, "
        f"{counted(len(frames.samples), 'answer')} on "
        f"{counted(frames.samples['unit'].nunique(), 'conversation')}.",
        "findings": findings(of.frontier),
        "marks": provenance.notes(of, logs),
        "sections": _SECTIONS,
        "summary": grids.summary(of),
        "summary_note": f"{provenance.formula(of)} "
        "Dominated: another arm is better and keeps no more tokens, or keeps fewer and is less "
        f"than {DEFAULT_THRESHOLD:g} away, by the intervals and not by the means alone. Failed: "
        "samples without a score, and compressions that gave no state, or one that is suspect.",
        "pairs": grids.pairs(of),
        "pairs_note": f"Knowledge on the {shared} probes that every arm has, "
        "controls left out. Intervals are on these conversations; p is adjusted by Holm's method "
        f"over all pairs. Better: at least {DEFAULT_THRESHOLD:g} higher and p under 5 %. No "
        "change: less than that either way, by two one-sided tests. Exact: both arms come out the "
        "same every time.",
        "stages": [
            (name.replace("_", " "), said)
            for name, said in STAGES.items()
            if any(name in figures.survival.stages for figures in of.of_arm.values())
        ],
        "chart_notes": [
            f"Not in the chart of quality, without any score: {', '.join(of.frontier.left_out)}"
        ]
        if of.frontier.left_out
        else [],
        "formula": of.formula[0].upper() + of.formula[1:],
        "arms": arms,
        "interval_note": _INTERVALS,
        "intervals": grids.intervals(of),
        "retention": grids.retention(of),
        "retention_note": "(arm - floor) / (ceiling - floor), a ratio of means over the "
        "conversations, on the probes that all three have, by Fieller's method. "
        f"Failures count as 0. Close: ceiling and floor (given under it) are less than "
        f"{CLOSEST:g} of 5 apart, so that a share would "
        "say nothing. Under each, 95 % limits on these conversations, below them for new ones.",
        "groups": grids.groups(of),
        "miss": f"{MISS:g}",
        "costs": grids.costs(of),
        "failures": grids.failures(of),
        "viewer_note": "The link to Inspect's viewer works while this runs, in this page's folder:",
        "viewer_command": viewer.command,
        "reference": grids.reference(reference) if reference else None,
        "reference_note": f"{reference.source}: {reference.conditions}." if reference else "",
        "runs": provenance.runs(frames.samples, logs),
        "digests": provenance.digests(frames.samples),
    }


def _misses_title(count: int) -> str:
    return f"{count or 'no'} miss{'' if count == 1 else 'es'}"
