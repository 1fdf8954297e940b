"""``compression-eval postmortem``: the page of a post-mortem, for a terminal or a browser.

`page` is the text, the same everywhere; `_chart` draws what was fetched again by the call before
and after the compactions.
"""

import json
import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from compression_eval.conversations.overview import printable
from compression_eval.conversations.sources import usual_places
from compression_eval.engine import Engine, jobs_option
from compression_eval.errors import DataError
from compression_eval.fixtures.writing import versioned_json
from compression_eval.postmortem.figures import figures, figures_schema
from compression_eval.postmortem.sessions import (
    MEASURES,
    MIN_EXCESS,
    SessionRow,
    Told,
    each_once,
    over_sessions,
    read_sessions,
)
from compression_eval.postmortem.windows import MIN_CONTROLS, WINDOW, Window
from compression_eval.terminal import CleanCommand, Output, examples
from compression_eval.text.tables import Section, Table, as_markdown, as_text, counted

if TYPE_CHECKING:
    from compression_eval.analysis.report.charts import Chart

MIN_COMPACTIONS = 5
"""Judged compactions below which means would only repeat the table."""

_MAX_FILES = 5
_MAX_SKIPPED = 5
_COLUMNS = 140

LIMITS = (
    "Why anything was fetched again: clients attach files by themselves, and demand a read "
    "before an edit.",
    "What a summary in encrypted form said, and what fetching again cost in money or time.",
    "Which agent is better: agents record different things.",
)
"""What a recording cannot show."""


@click.command(
    "postmortem",
    cls=CleanCommand,
    epilog=examples(
        "postmortem",
        "postmortem ~/.claude/projects/logins",
        "postmortem sessions/ --out postmortem",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--out",
    type=Output(folder=True, parents=True),
    help="Write a page with a chart (HTML and Markdown) and the figures as JSON.",
)
@jobs_option
def postmortem_command(paths: tuple[str, ...], out: Path | None, jobs: int | None) -> None:
    """Show what agents fetched again after compactions in your own sessions.

    PATH is a session, a folder of sessions or a pattern. Default: the usual places of agents.
    No model is called, and nothing is kept without --out. The ten calls after each compaction
    are compared with ten calls elsewhere in the same session. Far above usual means: more than
    nine in ten of those, and 1,000 tokens above their median.
    """
    if out:
        from compression_eval.analysis.commands import check_report

        check_report(out)
    skipped: list[tuple[str, str]] = []
    places = paths or usual_places()
    read = list(
        read_sessions(places, Engine(jobs), lambda place, why: skipped.append((place, why)))
    )
    rows = [row for row in read if row.compactions]
    unread = _unread(skipped)
    counted_as = f"{counted(len(read), 'session')}, {len(rows)} with compactions"
    if not rows:
        nothing = f"no session in {', '.join(places)} was compacted ({counted_as})"
        raise DataError("\n".join([*unread, nothing]))
    click.echo(f"{counted_as}{f'; {len(skipped)} could not be read' if skipped else ''}\n")
    parts = list(page(rows))
    click.echo(as_text(parts, _COLUMNS), nl=False)
    if unread:
        click.echo("\n" + "\n".join(unread), err=True)
    if out:
        _write(out, rows, parts)
        click.echo(f"\nwrote {out / 'index.html'}, report.md and figures.json with its schema")
    if not (files := [row for row in _worst_first(rows) if "://" not in row.place]):
        return
    worst = next((row for row in files if row.readable), files[0])
    of = "" if worst.readable else " (its summary cannot be read, other strategies can be tested)"
    click.echo(f"\nWhich facts were lost, and what other strategies would keep{of}:")
    click.echo(f"  {shlex.join(['compression-eval', 'quickstart', worst.place])}")


def _unread(skipped: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines that name the first files that could not be read, with the reason."""
    if not skipped:
        return []
    shown = [
        f"  {printable(place, 200, end=True)}: {printable(why, 300)}"
        for place, why in skipped[:_MAX_SKIPPED]
    ]
    more = len(skipped) - len(shown)
    head = f"{len(skipped)} of the files or conversations could not be read:"
    return [head, *shown, *([f"  and {more} more"] if more > 0 else [])]


def _write(out: Path, rows: Sequence[SessionRow], parts: Sequence[Section]) -> None:
    """Write the page with its chart and figures into a folder."""
    from compression_eval.analysis.report.page import page_files, write_files

    chart = _chart(rows)
    files = page_files(
        "What was fetched again after compactions",
        f"{counted(len(rows), 'session')} with compactions.",
        parts,
        f"Fetched again: tokens of result lines in the {WINDOW} calls after a compaction that the "
        "session already had. Usual: the median of the same in windows of the session that are "
        "away from compactions.",
        [chart] if chart else [],
        markdown=as_markdown(parts),
        figures=versioned_json(figures(rows).model_dump()),
    )
    schema = json.dumps(figures_schema(), indent=1) + "\n"
    write_files(out, files | {"figures.schema.json": schema.encode()})


def _chart(rows: Sequence[SessionRow]) -> "Chart | None":
    """Draw what was fetched again by each call around the boundary, next to the controls."""
    from compression_eval.analysis.report.charts import around, drawn

    judged = [each.compaction for _, each in each_once(rows) if each.compaction.told]
    after = [each.window for each in judged if each.window]
    before = [each.before for each in judged if each.before]
    controls = [control for each in judged for control in each.controls]
    if not before or not after:
        return None
    series = {
        "around a compaction": _by_call(before, -WINDOW) | _by_call(after, 1),
        "windows elsewhere": _by_call(controls, 1),
    }
    return drawn(
        "fetched-again",
        "Fetched again by call",
        f"Mean tokens of each call's result that the session held before the window of {WINDOW} "
        f"calls began: the window before a compaction, the one after, and {len(controls)} windows "
        "elsewhere.",
        lambda width: around(series, width, "calls from the compaction", "tokens fetched again"),
    )


def _by_call(windows: Sequence[Window], first: int) -> dict[int, float]:
    """Return the mean of each call of some windows, numbered from the given number on."""
    calls = zip(*(each.by_call for each in windows), strict=True)
    return dict(enumerate(map(fmean, calls), first))


def page(rows: Sequence[SessionRow]) -> Iterator[Section]:
    """Yield the parts of the page: sessions, compactions, files, all sessions, and the limits."""
    yield Section("", [[session_line(row) for row in _worst_first(rows)]])
    told = list(each_once(rows))
    told.sort(key=lambda pair: _badness(pair[1]), reverse=True)
    yield Section("Compactions, worst first", [_table(told)])
    for row, each in told:
        window = each.compaction.window
        unjudged = window is not None and not each.compaction.told and window.held > MIN_EXCESS
        if window and window.rereads and (each.verdict == "far above usual" or unjudged):
            largest = {file.path: file for file in sorted(window.rereads, key=lambda f: f.tokens)}
            lines = [
                f"{file.path}: {file.lines} of {file.of} lines, last shown or written "
                f"{counted(file.calls_ago, 'call')} earlier, edited {counted(file.edits, 'time')} "
                "before"
                for file in sorted(largest.values(), key=lambda f: -f.tokens)[:_MAX_FILES]
            ]
            yield Section(f"Shown again after message {each.compaction.cut} of {row.name}", [lines])
    if len(rows) > 1 and sum(each.compaction.told for _, each in told) >= MIN_COMPACTIONS:
        yield Section("All sessions", [_means(rows), _flagged(rows)])
    yield Section("What a recording cannot show", [LIMITS])


def _badness(told: Told) -> tuple[bool, float]:
    """Return what sorts compactions: by the excess, and without one by what was fetched again."""
    window = told.compaction.window
    if math.isnan(told.excess):
        return False, window.held if window else 0.0
    return True, told.excess


def _worst_first(rows: Sequence[SessionRow]) -> list[SessionRow]:
    def badness(row: SessionRow) -> tuple[float, tuple[bool, float]]:
        return sum(each.excess for each in _flagged_of(row)), max(map(_badness, row.compactions))

    return sorted(rows, key=badness, reverse=True)


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:,.0f}"


def session_line(row: SessionRow) -> str:
    """Return what is said of a session in one line."""
    flagged = _flagged_of(row)
    judged = [each for each in row.compactions if each.compaction.told]
    who = f"{row.name} ({row.agent})" if row.agent else row.name
    if not judged:
        reasons = dict.fromkeys(each.verdict for each in row.compactions)
        known = counted(len(row.compactions), "compaction")
        return f"{who}: {known}, no verdict: {' and '.join(reasons)}"
    other = len(row.compactions) - len(judged)
    unjudged = f"; {other} cannot be judged" if other else ""
    if not flagged:
        return (
            f"{who}: nothing far above usual after {counted(len(judged), 'compaction')}{unjudged}"
        )
    excess = sum(each.excess for each in flagged)
    sized = [each for each in flagged if _removed(each) > 0]  # not every client records sizes
    away = sum(map(_removed, sized))
    share = f"{sum(each.excess for each in sized) / away:.1%}" if away else ""
    of = f", {share} of the {_number(away)} compacted away" if len(sized) == len(flagged) else ""
    return (
        f"{who}: {len(flagged)} of {counted(len(judged), 'compaction')} far above usual: about "
        f"{_number(excess)} tokens fetched again beyond its own usual{of}{unjudged}"
    )


def _verdict(told: Told) -> str:
    found = told.compaction
    if found.window is None or found.told:
        return told.verdict
    return f"none: {len(found.controls)} of {MIN_CONTROLS} windows"


def _flagged_of(row: SessionRow) -> list[Told]:
    return [each for each in row.compactions if each.verdict == "far above usual"]


def _removed(told: Told) -> float:
    before, after = told.compaction.tokens_before, told.compaction.tokens_after
    return float(before - after) if before and after else 0.0


def _table(told: Sequence[tuple[SessionRow, Told]]) -> Table:
    rows = []
    for row, each in told:
        found, window = each.compaction, each.compaction.window
        edit = "none" if window and window.edit_calls is None else "-"
        if window and window.edit_calls is not None:
            edit = str(window.edit_calls + 1)
        limit = None if math.isinf(each.limit) else each.limit
        sizes = f"{_number(found.tokens_before)} → {_number(found.tokens_after)}"
        rows.append(
            [
                *(row.name, str(found.cut), found.trigger, sizes),
                *(_number(window.held if window else None), _number(found.usual)),
                *(_number(limit), _verdict(each)),
                edit,
            ]
        )
    heads = ["session", "message", "trigger", "before → after", "fetched again", "usual", "limit"]
    heads += ["verdict", "new edit at call"]
    return Table(heads, rows, names=1, texts={2, 3, 7})


def _means(rows: Sequence[SessionRow]) -> Table:
    return Table(
        ["measure", "after a compaction", "median", "control", "median", "difference", "95 %", "n"],
        [
            [
                MEASURES[mean.measure][0],
                *(_number(mean.after), _number(mean.median_after)),
                *(_number(mean.control), _number(mean.median_control)),
                f"{mean.difference:+,.0f}",
                "-" if math.isnan(mean.low) else f"{mean.low:,.0f} to {mean.high:,.0f}",
                str(mean.compactions),
            ]
            for mean in over_sessions(rows)
        ],
        texts={6},
    )


def _flagged(rows: Sequence[SessionRow]) -> list[str]:
    judged = [each for _, each in each_once(rows) if each.compaction.told]
    flagged = sum(each.verdict == "far above usual" for each in judged)
    threads: dict[str, tuple[int, int]] = {}  # of forks, the one with most windows
    for row in rows:
        if not any(each.compaction.told for each in row.compactions):
            continue
        before = threads.get(row.thread, (0, 0))
        threads[row.thread] = max(before, row.flagged_controls, key=lambda each: each[1])
    above, controls = (sum(each[part] for each in threads.values()) for part in (0, 1))
    return [
        f"far above usual: {flagged} of {len(judged)} compactions, {above} of {controls} control "
        "windows",
        f"measured: the {WINDOW} calls after a compaction and equal windows elsewhere in the same "
        "session; limits over threads",
    ]
