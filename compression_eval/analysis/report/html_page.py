"""The report as one self-contained page with style, script, charts and data."""

import base64
import hashlib
import json
import math
import os
import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from inspect_ai.log import read_eval_log_sample

from compression_eval.analysis.columns import PANEL, Seen
from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.comparison.measures import CLOSEST, HEADLINE
from compression_eval.analysis.facts import STAGES
from compression_eval.analysis.logs import Log, local_path, reading
from compression_eval.analysis.report import sections
from compression_eval.analysis.report.charts import Chart
from compression_eval.analysis.report.figures import Figures, Frames
from compression_eval.analysis.report.tradeoff import ReportedArm
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.fixtures.conversation import message_text
from compression_eval.text.printable import clean

if TYPE_CHECKING:
    from pandas import DataFrame, Series

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

MAX_ANSWERS = 10_000
"""Answers on the page, which has 1 to 4 KB for each; it says so where there are more."""

MAX_STATES = 4_000_000
"""Characters of all states that a page is made with; those after it cannot be held together."""


@dataclass(frozen=True)
class Viewer:
    """How the samples of some logs are reached in Inspect's viewer."""

    address: str
    """Of the viewer, with a slash at its end."""
    command: str
    """Starts the viewer, in the folder of the report."""
    names: dict[str, str]
    """By the path of a log: what the viewer calls it."""

    def link(self, log_path: str) -> str:
        """Return the address of a log's samples; a sample's id and epoch follow after a slash."""
        return f"{self.address}#/logs/{quote(self.names[log_path], safe='/')}/samples/sample"


def viewer_of(log_paths: Sequence[str], out: Path, address: str) -> Viewer:
    """Return how to reach the samples of some logs.

    Args:
        log_paths: Paths or addresses of the logs.
        out: The report's folder: the command names the logs as seen from there, so that no path
            of a machine stands on the page.
        address: Where the viewer serves.
    """
    places = {path: _place(path) for path in log_paths}
    parts = zip(*(each.split("/")[:-1] for each in places.values()), strict=False)
    shared = takewhile(lambda same: len(set(same)) == 1, parts)
    folder = "/".join(part for part, *_ in shared)
    names = {path: place.removeprefix(folder).lstrip("/") for path, place in places.items()}
    seen = folder if "://" in folder else os.path.relpath(folder or "/", out.resolve())
    # Inspect refuses to read below a folder whose address holds "..", so the command goes there.
    command = f"inspect view --log-dir {shlex.quote(seen)}"
    if ".." in Path(seen).parts:
        command = f"cd {shlex.quote(seen)} && inspect view --log-dir ."
    return Viewer(address.rstrip("/") + "/", command, names)


def _place(path: str) -> str:
    """Return an absolute path, or an address of a remote store as it is."""
    if "://" in path and not path.startswith("file:"):
        return unquote(path)
    return local_path(path).resolve().as_posix()


def html_page(
    of: Figures,
    frames: Frames,
    logs: Sequence[Log],
    charts: Sequence[Chart],
    data: tuple[str, int],
    viewer: Viewer,
    reference: sections.Published | None,
) -> str:
    """Return the page, with what `page_data` returns as `data`."""
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
    # Markup is only what is ours: style, script, charts, whose texts Vega escapes, and
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
            (name.replace("_", " "), meaning) for name, meaning in STAGES.items() if name in stages
        ],
        threshold=f"{DEFAULT_THRESHOLD:g}",
        closest=f"{CLOSEST:g}",
        miss=f"{MISS:g}",
        viewer=viewer,
        reference=reference,
        shown=data[1],
        answers=len(frames.samples),
        runs=sections.runs(frames.samples, logs),
        digests=sections.digests(frames.samples),
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest}",
        data=Markup(data[0]),  # noqa: S704
        charts=[(each, Markup(each.svg), Markup(each.narrow)) for each in charts],  # noqa: S704
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


def page_data(frames: Frames, arms: Sequence[ReportedArm], viewer: Viewer) -> tuple[str, int]:
    """Return the data of the page's table and how many answers it holds.

    It is JSON, safe in a script element; texts by number.
    """
    texts = _Texts()
    arm_place = {arm.name: place for place, arm in enumerate(arms)}
    paths = {path: place for place, path in enumerate(dict.fromkeys(frames.samples["log_path"]))}
    columns = [
        *("arm", "log_path", "unit", "probe_id", "probe_type", "epoch", "sample", "failure"),
        *HEADLINE,
    ]
    cells = frames.samples[columns].itertuples(index=False, name=None)
    aside = (row for path in paths for row in frames.aside.of(path))
    rows, written = StringIO(), 0  # one text: ten thousand would leave holes in the memory
    for shown, cell, own in zip(shown_answers(frames.samples), cells, aside, strict=True):
        if not shown:
            continue
        arm, path, unit, probe, kind, epoch, sample, failure, *numbers = cell
        _, question, answer, criteria, facts = own
        rows.write("," if written else "")
        written += 1
        rows.write(
            script_json(
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
                    # Text and stage of each, and what stands in the state instead.
                    "facts": [
                        [
                            texts.number(fact["fact"], "fact"),
                            fact["stage"],
                            clean(", ".join(fact["instead"]), MAX_TEXT["fact"]),
                        ]
                        for fact in json.loads(str(facts or "[]"))
                    ],
                    # Id and score of each criterion, and what the graders said.
                    "reasons": [
                        [
                            str(result["criterion"]),
                            _number(result["score"]),
                            texts.number(result["reasoning"], "reason"),
                        ]
                        for result in json.loads(str(criteria))
                        if result["grader"] == PANEL and result["grading"] == 0
                    ],
                }
            )
        )
    data = {
        "arms": [arm.name for arm in arms],
        "logs": [viewer.link(path) for path in paths],
        "scores": HEADLINE,
        "miss": MISS,
        "stages": STAGES,
        "states": _states(frames.samples, arms, texts),
        "texts": list(texts),
    }
    return f'{script_json(data)[:-1]},"rows":[{rows.getvalue()}]}}', written


def shown_answers(samples: "DataFrame") -> "Series[bool]":
    """Return which samples stand in the page's table: all, or as many as a page can hold.

    These are the same probes in every arm, of the first epochs, from all conversations.
    """
    if len(samples) <= MAX_ANSWERS:
        return samples["probe_id"].notna()
    key = ["unit", "probe_id", "epoch"]
    answers = samples.groupby(key, sort=False).size().rename("answers").reset_index()
    answers["turn"] = answers.groupby(["unit", "epoch"]).cumcount()
    answers = answers.sort_values(["epoch", "turn"], kind="stable")
    kept = answers.loc[answers["answers"].cumsum() <= MAX_ANSWERS, key]
    return samples[key].merge(kept.assign(shown=True), how="left", on=key)["shown"].notna()


def _states(
    samples: "DataFrame", arms: Sequence[ReportedArm], texts: _Texts
) -> dict[str, dict[int, list[int]]]:
    """Return, per conversation and arm, the lines of one state, for arms to be held together.

    It is that of the first epoch. The controls have none here: one holds all, the other nothing.
    """
    by_unit: dict[str, dict[int, list[int]]] = defaultdict(dict)
    left = MAX_STATES
    columns = ["arm", "log_path", "unit", "sample", "epoch"]  # no more, since they are copied
    fine = samples.loc[samples["state_status"] == "ok", columns]
    first = fine.sort_values("epoch", kind="stable").drop_duplicates(["arm", "unit"])
    for place, arm in enumerate(arms):
        own = first.loc[first["arm"] == arm.name, columns[1:]]
        cells = own.itertuples(index=False, name=None)
        for path, unit, sample, epoch in [] if arm.role else cells:
            lines = _state_lines(path, sample, epoch)
            left -= sum(map(len, lines))
            if left < 0:
                return by_unit
            by_unit[clean(unit, MAX_NAME)][place] = [texts.number(line, "line") for line in lines]
    return by_unit


def _state_lines(path: str, sample_id: str, epoch: int) -> list[str]:
    """Return the state that a sample was answered from, line by line, without blank ones.

    System messages are left out: they stand in every state.
    """
    with reading(path):
        sample = read_eval_log_sample(
            path, sample_id, epoch, resolve_attachments=True, exclude_fields={"events"}
        )
    recorded = Seen(sample, path).recorded
    context = recorded.context if recorded else []
    text = "\n".join(message_text(each) for each in context if each.role != "system")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(float(value)) else round(float(value), 3)
