"""The files of a report: a self-contained page, Markdown, figures and charts.

`report_files` reads the logs, computes the figures, draws the charts and fills a template with the
parts of `sections`, the charts, and as JSON every answer for the table of probes.
`agent_report_files` does the same for runs of any agent, with one chart; `page_files` is what such
pages share.
"""

import base64
import gc
import hashlib
import json
import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from compression_eval.analysis.agent_runs import AgentArm, arms_json, arms_page
from compression_eval.analysis.columns import PANEL
from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.comparison.measures import HEADLINE
from compression_eval.analysis.facts import STAGES
from compression_eval.analysis.logs import Log, local_path
from compression_eval.analysis.report import sections
from compression_eval.analysis.report.charts import (
    Chart,
    Mark,
    charts,
    drawn,
    looks,
    scattered,
)
from compression_eval.analysis.report.figures import Frames, as_json, figures, read_frames
from compression_eval.analysis.report.tradeoff import ReportedArm
from compression_eval.analysis.statistics.intervals import arm_mean
from compression_eval.errors import DataError
from compression_eval.fixtures.writing import written_whole
from compression_eval.text.printable import clean
from compression_eval.text.tables import Section, as_markdown, counted

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MAX_CELL, MAX_NAME = 1000, 200
MAX_TEXT = {"question": 2000, "answer": 4000, "reason": 500, "fact": 200, "failure": 300}
"""Characters of a text on the page."""

MAX_ANSWERS = 10_000
"""Answers on the page, which has 1 to 4 KB for each; it says so where there are more."""


def report_files(
    logs: Sequence[Log],
    out: Path,
    *,
    reference: bool = False,
    viewer: str,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a report, by name, its first sentence, and what it says on ranks.

    Raises:
        DataError: A log cannot be read, or no sample of any of them has a score.
    """
    count = len(logs)
    progress(f"reading {count} logs")
    frames = read_frames(logs, progress=lambda read: progress(f"read {read} of {count} logs"))
    if not frames.samples["scored"].any():
        reasons = frames.samples["failure"].astype(str).str[:120].value_counts()
        listed = ", ".join(f"{' '.join(str(name).split())} {n}" for name, n in reasons.items())
        raise DataError(f"no sample has a score, so there is nothing to report: {listed[:400]}")
    progress("computing")
    gc.freeze()  # all of it stays: to look for garbage in it took a sixth of the time
    computed = figures(frames)
    progress("drawing")
    made = charts(computed)
    progress("writing")
    parts = sections.parts(computed, logs, frames.samples, reference=reference)
    notes = list(sections.notes(computed, logs))
    seen = viewer_of([log.path for log in logs], out, viewer)
    data, shown = page_data(frames, computed.arms, seen)
    sizes = (len(computed.arms), "arm"), (len(logs), "log"), (len(frames.samples), "answer")
    units = counted(frames.samples["unit"].nunique(), "conversation")
    page = _filled(
        "report",
        first=sections.opening(computed),
        counts=f"{', '.join(counted(*each) for each in sizes)} on {units}",
        marks=notes,
        parts=parts,
        stages=sections.stage_meanings(computed),
        left_out=sections.left_out(computed),
        miss=f"{MISS:g}",
        viewer=seen,
        shown=f"{shown:,}",
        answers=f"{len(frames.samples):,}",
        data=data,
        charts=made,
    )
    texts = {f"charts/{chart.name}.svg": chart.svg for chart in made} | {
        "figures.json": as_json(computed),
        "report.md": sections.markdown(computed, notes, parts),
        "index.html": page,
    }
    images = {f"charts/{chart.name}.png": chart.png for chart in made}
    remarks = [sections.opening(computed), *sections.notes_on_ranks(computed)]
    return _encoded(texts) | images, remarks


def agent_report_files(arms: Sequence[AgentArm]) -> dict[str, bytes]:
    """Return the files of a report on an agent's runs, by name."""
    look = looks([arm.name for arm in arms], frozenset())
    marks = []
    for arm in arms:
        score, tokens = (arm_mean(arm.values(name)) for name in (arm.score, "tokens"))
        if score and tokens:
            limits = score.here or score.elsewhere
            marks.append(Mark(look[arm.name], tokens.mean, score.mean, limits))
    across, up = "tokens per sample (logarithmic)", arms[0].score
    chart = drawn(
        "tokens",
        "Score against tokens",
        "Means over the samples with a score, with 95 % intervals of the score.",
        lambda width: scattered(marks, width, across, up=up, most=1),
    )
    return page_files(
        "What compaction cost an agent",
        f"Task {arms[0].logs[0].header.eval.task}. Every arm on its own samples; "
        "compression-eval compare pairs two of them.",
        arms_page(arms),
        "Under each mean its 95 % interval: over runs of a sample where samples ran more than "
        "once, else over clusters. Means are over clusters (the metadata cluster of samples, else "
        "each sample by itself).",
        [chart],
        markdown=as_markdown(arms_page(arms, inline=True)),
        figures=arms_json(arms),
    )


def page_files(
    title: str,
    about: str,
    parts: Sequence[Section],
    note: str,
    charts: Sequence[Chart],
    *,
    markdown: str,
    figures: str,
) -> dict[str, bytes]:
    """Return the files of a page without answers, by name: HTML, Markdown, JSON and charts."""
    texts = {
        "index.html": _filled(
            "page", title=title, about=about, parts=parts, note=note, charts=charts
        ),
        "report.md": markdown,
        "figures.json": figures,
    } | {f"charts/{chart.name}.svg": chart.svg for chart in charts}
    return _encoded(texts) | {f"charts/{chart.name}.png": chart.png for chart in charts}


def _encoded(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Return texts as UTF-8; a lone surrogate, which it cannot encode, becomes a question mark."""
    return {name: text.encode("utf-8", "replace") for name, text in texts.items()}


def write_files(out: Path, made: Mapping[str, bytes]) -> None:
    """Write files into a folder, each as a whole.

    Files of an earlier report are replaced; what else is in the folder stays.

    Raises:
        OSError: The folder cannot be written to.
    """
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        with written_whole(out / name) as path:
            path.write_bytes(content)


# ----- the page


def _filled(name: str, *, charts: Sequence[Chart], data: str = "", **given: Any) -> str:
    """Return a page from its template.

    Markup is only what is ours: style, script, charts, whose texts Vega escapes, and JSON in which
    nothing can end its element. Every other text is escaped and made fit for a page.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    folder = files(__package__) / "templates"
    style, script = ((folder / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: clean(value, MAX_CELL) if type(value) is str else value,
        loader=PackageLoader(__package__ or "", "templates"),
    )
    return environment.get_template(f"{name}.html.jinja").render(
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest}",
        data=Markup(data),  # noqa: S704
        charts=[(each, Markup(each.svg), Markup(each.narrow)) for each in charts],  # noqa: S704
        **given,
    )


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
            of a machine is on the page.
        address: Where the viewer serves.
    """
    places = {path: _place(path) for path in log_paths}
    parts = zip(*(each.split("/")[:-1] for each in places.values()), strict=False)
    shared = takewhile(lambda same: len(set(same)) == 1, parts)
    folder = "/".join(part for part, *_ in shared)
    names = {path: place.removeprefix(folder).lstrip("/") for path, place in places.items()}
    seen = folder if "://" in folder else os.path.relpath(folder or "/", out.resolve())
    # Inspect refuses to read below a folder whose address contains "..", so the command goes there.
    command = f"inspect view --log-dir {shlex.quote(seen)}"
    if ".." in Path(seen).parts:
        command = f"cd {shlex.quote(seen)} && inspect view --log-dir ."
    return Viewer(address.rstrip("/") + "/", command, names)


def _place(path: str) -> str:
    """Return an absolute path, or an address of a remote store as it is."""
    if "://" in path and not path.startswith("file:"):
        return unquote(path)
    return local_path(path).resolve().as_posix()


# ----- the table of probes


def script_json(data: Any) -> str:
    """Return JSON that can be in a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(frames: Frames, arms: Sequence[ReportedArm], viewer: Viewer) -> tuple[str, int]:
    """Return the data of the page's table and how many answers it contains.

    It is JSON, safe in a script element; texts are numbers of a list, since many rows share a
    question, a fact or a reason.
    """
    texts: dict[str, int] = {}

    def numbered(text: object, kind: str) -> int:
        return texts.setdefault(clean(text, MAX_TEXT[kind]), len(texts))

    arm_place = {arm.name: place for place, arm in enumerate(arms)}
    paths = {path: place for place, path in enumerate(dict.fromkeys(frames.samples["log_path"]))}
    columns = ["arm", "log_path", "unit", "probe_id", "probe_type", "epoch", "sample", "failure"]
    cells = frames.samples[[*columns, *HEADLINE]].itertuples(index=False, name=None)
    aside = (row for path in paths for row in frames.aside.of(path))
    rows, written = StringIO(), 0  # one text: ten thousand would leave holes in the memory
    for shown, cell, own in zip(shown_answers(frames.samples), cells, aside, strict=True):
        if not shown:
            continue
        arm, path, unit, probe, kind, epoch, sample, failure, *numbers = cell
        _, question, answer, criteria, facts = own
        row = {
            "arm": arm_place[arm],
            "log": paths[path],
            "unit": clean(unit, MAX_NAME),
            "probe": clean(probe, MAX_NAME),
            "type": str(kind),
            "epoch": int(epoch),
            "sample": str(sample).encode("utf-8", "replace").decode(),
            "scores": list(map(_number, numbers)),
            "failure": numbered(failure, "failure") if failure else None,
            "question": numbered(question, "question"),
            "answer": numbered(answer, "answer"),
            # Text and stage of each, and what is in the state instead.
            "facts": [
                [
                    numbered(fact["fact"], "fact"),
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
                    numbered(result["reasoning"], "reason"),
                ]
                for result in json.loads(str(criteria))
                if result["grader"] == PANEL and result["grading"] == 0
            ],
        }
        rows.write("," * bool(written) + script_json(row))
        written += 1
    data = {
        "arms": [arm.name for arm in arms],
        "logs": [viewer.link(path) for path in paths],
        "miss": MISS,
        "stages": STAGES,
        "texts": list(texts),
    }
    return f'{script_json(data)[:-1]},"rows":[{rows.getvalue()}]}}', written


def shown_answers(samples: "DataFrame") -> "Series[bool]":
    """Return which samples are in the page's table: all, or as many as a page can hold.

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


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(float(value)) else round(float(value), 3)
