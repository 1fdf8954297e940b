"""The report as one page that needs nothing else: style, script, charts and data are in it."""

import base64
import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.comparison.measures import HEADLINE
from compression_eval.analysis.logs import Log
from compression_eval.analysis.report import sections
from compression_eval.analysis.report.drawing import Chart
from compression_eval.analysis.report.figures import Figures, Frames
from compression_eval.analysis.report.tradeoff import CLOSEST, ReportedArm
from compression_eval.analysis.report.viewer import Viewer
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.analysis.tables import clean

if TYPE_CHECKING:
    from pandas import DataFrame

_BEFORE_SVG = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)

MAX_CELL, MAX_NAME = 1000, 200
MAX_TEXT = {
    "question": 2000,
    "answer": 4000,
    "reason": 500,
    "fact": 200,
    "failure": 300,
    "line": 300,
}
"""Characters of a text on the page."""

MAX_STATES = 4_000_000
"""Characters of all states that a page is made with; those after it cannot be held together."""


def html_page(
    of: Figures,
    frames: Frames,
    logs: Sequence[Log],
    charts: tuple[Sequence[Chart], Sequence[Chart]],
    viewer: Viewer,
    reference: sections.Published | None,
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

    parts = files(__package__) / "page"
    template, style, script = (
        (parts / f"report.{kind}").read_text(encoding="utf-8")
        for kind in ("html.jinja", "css", "js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_fit)
    stages = {name for each in of.of_arm.values() for name in each.survival.stages}
    conversations = frames.samples["unit"].nunique()
    # Markup is only what is ours: style, script, charts without a text of a conversation, and
    # JSON in which nothing can end its element.
    return environment.from_string(template).render(
        of=of,
        sections=sections,
        counts=[
            sections.counted(number, noun)
            for number, noun in (
                (len(of.arms), "arm"),
                (len(logs), "log"),
                (len(frames.samples), "answer"),
                (conversations, "conversation"),
            )
        ],
        marks=list(sections.notes(of, logs)),
        stages=[
            (name.replace("_", " "), said)
            for name, said in sections.STAGES.items()
            if name in stages
        ],
        threshold=f"{DEFAULT_THRESHOLD:g}",
        closest=f"{CLOSEST:g}",
        miss=f"{MISS:g}",
        viewer=viewer,
        reference=reference,
        runs=sections.runs(frames.samples, logs),
        digests=sections.digests(frames.samples),
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest}",
        data=Markup(script_json(probe_data(frames, logs, of.arms, viewer))),  # noqa: S704
        charts=[
            (chart, *(Markup(_BEFORE_SVG.sub("", each.svg)) for each in (chart, narrow)))  # noqa: S704
            for chart, narrow in zip(*charts, strict=True)
        ],
    )


def _fit(value: Any) -> Any:
    """Make every text that the template puts in fit for a page; markup of ours stays."""
    return clean(value, MAX_CELL) if type(value) is str else value


def script_json(data: Any) -> str:
    """Return JSON that can stand in a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class _Texts(dict[str, int]):
    """Texts by number, each kept once: many rows share a question, a fact or a reason."""

    def number(self, text: object, kind: str) -> int:
        """Return the number of a text."""
        return self.setdefault(clean(text, MAX_TEXT[kind]), len(self))


def probe_data(
    frames: Frames, logs: Sequence[Log], arms: Sequence[ReportedArm], viewer: Viewer
) -> dict[str, Any]:
    """Return what the page's script makes its table of; plain data, texts by number.

    Args:
        frames: Of all logs.
        logs: The logs that they were read from.
        arms: In the order of the page.
        viewer: How samples are reached.
    """
    texts = _Texts()
    facts, reasons = _facts(frames.facts, texts), _reasons(frames.criteria, texts)
    arm_place = {arm.name: place for place, arm in enumerate(arms)}
    paths = {path: place for place, path in enumerate(dict.fromkeys(frames.samples["log_path"]))}
    columns = [
        *("arm", "log", "log_path", "unit", "probe_id", "probe_type", "epoch", "sample"),
        *("sample_uuid", "failure", "question", "answer", *HEADLINE),
    ]
    rows = []
    for cell in frames.samples[columns].itertuples(index=False, name=None):
        arm, log, path, unit, probe, kind, epoch, sample, uuid, failure, *rest = cell
        question, answer, *numbers = rest
        rows.append(
            {
                "arm": arm_place[arm],
                "log": paths[path],
                "unit": clean(unit, MAX_NAME),
                "probe": clean(probe, MAX_NAME),
                "type": str(kind),
                "epoch": int(epoch),
                "sample": str(sample).encode("utf-8", "replace").decode(),
                "scores": [_number(value) for value in numbers],
                "failure": texts.number(failure, "failure") if failure else None,
                "question": texts.number(question, "question"),
                "answer": texts.number(answer, "answer"),
                "facts": facts.get((arm, log, unit, probe, epoch), []),
                "reasons": reasons.get(uuid, []),
            }
        )
    return {
        "arms": [arm.name for arm in arms],
        "logs": [viewer.link(path) for path in paths],
        "scores": HEADLINE,
        "miss": MISS,
        "stages": sections.STAGES,
        "states": _states(frames.samples, logs, arms, texts),
        "texts": list(texts),
        "rows": rows,
    }


def _states(
    samples: "DataFrame", logs: Sequence[Log], arms: Sequence[ReportedArm], texts: _Texts
) -> dict[str, dict[int, list[int]]]:
    """Return, per conversation and arm, the lines of one state, for arms to be held together.

    It is that of the first epoch. The controls have none here: one holds all, the other nothing.
    """
    found: dict[str, dict[int, list[int]]] = defaultdict(dict)
    left = MAX_STATES
    by_path = {log.path: log for log in logs}
    fine = samples[samples["state_status"] == "ok"].sort_values("epoch", kind="stable")
    first = fine.drop_duplicates(["arm", "unit"])
    for place, arm in enumerate(arms):
        own = first.loc[first["arm"] == arm.name, ["log_path", "unit", "sample", "epoch"]]
        cells = own.itertuples(index=False, name=None)
        for path, unit, sample, epoch in [] if arm.role else cells:
            lines = by_path[path].state_lines(sample, epoch)
            left -= sum(map(len, lines))
            if left < 0:
                return found
            found[clean(unit, MAX_NAME)][place] = [texts.number(line, "line") for line in lines]
    return found


def _facts(facts: "DataFrame", texts: _Texts) -> dict[tuple[Any, ...], list[list[Any]]]:
    """Return, per sample, its facts: text, stage, and what stands in the state instead."""
    found: dict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
    names = ["arm", "log", "fixture", "cut", "probe", "epoch", "fact", "stage", "instead"]
    for arm, log, fixture, cut, probe, epoch, fact, stage, instead in facts[names].itertuples(
        index=False, name=None
    ):
        also = clean(", ".join(map(str, instead or ())), MAX_TEXT["fact"])
        key = (arm, log, f"{fixture}@{cut}", probe, epoch)
        found[key].append([texts.number(fact, "fact"), str(stage), also])
    return found


def _reasons(criteria: "DataFrame", texts: _Texts) -> dict[Any, list[list[Any]]]:
    """Return, per sample, its criteria: id, score, and what the graders said."""
    found: dict[Any, list[list[Any]]] = defaultdict(list)
    rows = criteria[(criteria["grader"] == "panel") & (criteria["grading"] == 0)]
    names = ["sample_uuid", "criterion", "score", "reasoning"]
    for uuid, criterion, score, reason in rows[names].itertuples(index=False, name=None):
        found[uuid].append([str(criterion), _number(score), texts.number(reason, "reason")])
    return found


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(float(value)) else round(float(value), 3)
