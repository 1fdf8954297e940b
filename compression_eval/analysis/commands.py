"""``compression-eval compare``, ``facts``, ``predict`` and ``report``.

Each command reads logs, calls one function of this package and prints what it returns. Here are
only options, checks before the work, and exit codes. `RefusingCommand` ends with 2 where two sides
cannot be compared, so that CI can tell this from a regression.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compression_eval.analysis.comparison import CONDITIONS
from compression_eval.errors import DataError, lacking
from compression_eval.fixtures.writing import versioned_json, write_whole
from compression_eval.terminal import (
    CleanCommand,
    Output,
    check_output,
    examples,
    refusal,
)
from compression_eval.text.printable import printable

if TYPE_CHECKING:
    from compression_eval.analysis.logs import Log

_SPREADING = ("--to", "--controls")
"""Options of `compare` that take several logs at once."""

MAX_COLUMNS = 140
"""Width of a comparison in a file or a pipe: room for a table of facts in one piece."""

_GENERATOR, _HEAD = b'<meta name="generator" content="compression_eval">', 1_000
"""How a page of ours is known, as its template has it, and within how many bytes."""

DEFAULT_VIEWER = "http://127.0.0.1:7575"
"""Default address of `inspect view`."""


class _NotComparableError(click.ClickException):
    exit_code = 2


class RefusingCommand(click.Command):
    """Ends with one clean line where a log or an option is wrong, not with a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the pipe was closed; click ends quietly
        except (DataError, OSError) as error:
            junit: Any = ctx.params.get("junit")
            if isinstance(error, DataError) and junit is not None:
                from compression_eval.analysis.comparison.text import refusal_as_junit

                write_whole(junit, refusal_as_junit(str(error)))
            raise _NotComparableError(refusal(error)) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let ``--to`` and ``--controls`` take every log that follows, up to the next option."""
        spread: list[str] = []
        taking = ""
        for place, arg in enumerate(args):
            if arg == "--":
                spread += args[place:]
                break
            if not arg.startswith("-"):
                spread += [taking, arg] if taking else [arg]
                continue
            option = arg.partition("=")[0]
            taking = option if option in _SPREADING else ""
            # Without a value, click reports that the option needs one.
            alone = place + 1 == len(args) or args[place + 1].startswith("-")
            spread += [arg] if arg not in _SPREADING or alone else []
        return super().parse_args(ctx, spread)


@click.command(
    cls=RefusingCommand,
    epilog=examples(
        "compare logs/before.eval --to logs/after.eval",
        "compare logs/main --to logs/branch --format markdown --out compare.md",
        "compare logs/main --to logs/branch --controls logs/controls --gate",
        "compare logs/sweep --base-arm tail --to logs/sweep --new-arm anchored",
    )
    + "\n\n\b\nExit codes: 0 no regression, 1 regression, 2 could not be compared, 3 cannot tell.",
)
@click.argument("base", nargs=-1, required=True, metavar="BASE...")
@click.option("--to", "new", multiple=True, required=True, metavar="NEW...", help="New logs.")
@click.option(
    "--base-arm", help="Name of the base arm, or a part of it, if logs contain several arms."
)
@click.option(
    "--new-arm", help="Name of the new arm, or a part of it, if logs contain several arms."
)
@click.option(
    *("--margin", "--threshold", "margin"),
    type=click.FloatRange(min=0, min_open=True, max=5),
    help="Largest loss of knowledge (0 to 5) that passes.  "
    "[default: 0.3, or a tenth of the range between the controls if that is less]",
)
@click.option(
    "--controls",
    multiple=True,
    metavar="LOGS...",
    help="Logs of the arms none and full. Default: those in the folders of the compared logs.",
)
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(tuple(CONDITIONS)),
    metavar="NAME",
    help="Compare what both sides have although this differs. Repeatable.",
)
@click.option("--gate", is_flag=True, help="Print only the decision, for CI.")
@click.option(
    *("--format", "form"),
    type=click.Choice(("text", "markdown", "json")),
    default="text",
    show_default=True,
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the output to a file.")
@click.option(
    "--junit",
    type=Output(),
    metavar="FILE",
    help="Also write JUnit XML with a test case for the outcome and for each measure.",
)
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    base: tuple[str, ...],
    new: tuple[str, ...],
    base_arm: str | None,
    new_arm: str | None,
    margin: float | None,
    controls: tuple[str, ...],
    allow: tuple[str, ...],
    gate: bool,
    form: str,
    out: Path | None,
    junit: Path | None,
) -> None:
    """Test whether one arm is worse than another, with an exit code for CI.

    BASE and NEW are logs of this eval, or folders of logs. Each side is one arm. The score
    knowledge decides, on the probes that both sides have, and so do the facts in the states.
    The controls none and full with the same reader are needed to show that nothing was lost.
    docs/statistics.md explains the verdicts.

    Logs of any other Inspect task, whose agent ran with different compaction, are compared by
    their first score (margin 0.1): docs/agents.md.
    """
    if out is not None:
        check_output(out)  # not by its type, so that --junit tells it
    _require("compare", "scipy")
    from compression_eval.analysis.comparison.compare import EXIT_CODES
    from compression_eval.analysis.logs import agent_logs
    from compression_eval.text.tables import MIN_COLUMNS, as_markdown, as_text

    runs = [agent_logs(base), agent_logs(new)]
    if all(runs):
        used = {"--allow": allow, "--junit": junit, "--gate": gate, "--controls": controls}
        if refused := [name for name, value in used.items() if value]:
            raise DataError(f"{', '.join(refused)}: only for logs of compression_eval")
        from compression_eval.analysis import agent_runs

        agents = agent_runs.compare_agents(runs, (base_arm, new_arm), margin)
        outcome = agents.outcome
        sections = agent_runs.comparison_page(agents)
        text = agent_runs.comparison_json(agents) if form == "json" else ""
        columns = MIN_COLUMNS
    else:
        from compression_eval.analysis.comparison.compare import compare as compared
        from compression_eval.analysis.comparison.controls import controls_of
        from compression_eval.analysis.comparison.sides import load_sides
        from compression_eval.analysis.comparison.text import as_json, as_junit, page

        click.echo("reading logs", err=True)
        first, second, beside = load_sides(base, new, base_arm, new_arm)
        found = controls_of((first, second), beside, (*base, *new), controls)
        comparison = compared(first, second, found, margin=margin, allowed=allow)
        outcome = comparison.outcome
        text = as_json(comparison, gate=gate) if form == "json" else ""
        sections = [] if text else page(comparison, gate=gate)
        columns = MAX_COLUMNS
        if junit is not None:
            write_whole(junit, as_junit(comparison))
    text = text or (as_markdown(sections) if form == "markdown" else as_text(sections, columns))
    if out is None:
        click.echo(text, nl=False)
    else:
        write_whole(out, text)
        click.echo(f"{': '.join(outcome)} ({out})")
    ctx.exit(EXIT_CODES[outcome[0]])


@click.command(
    cls=CleanCommand, epilog=examples("facts logs", "facts logs/2026-*.eval --csv facts.csv")
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--csv", "csv_file", type=Output(), help="Write the rows as CSV.")
@click.option("--json", "json_file", type=Output(), help="Write them as JSON.")
def facts(logs: tuple[str, ...], csv_file: Path | None, json_file: Path | None) -> None:
    """List every expected fact and the stage at which it was lost.

    LOG is a log of this eval, or a folder of logs. There is one row per fact, probe and epoch.
    Totals are by stage, probe type, region of the state, age and compressions. docs/matching.md
    explains the stages.
    """
    from compression_eval.analysis.arms import arm_names
    from compression_eval.analysis.facts import rows_as_csv, totals
    from compression_eval.analysis.frames import fact_rows

    selected = _found(logs)
    rows = fact_rows(selected)
    if not rows:
        raise DataError(f"{', '.join(logs)}: no sample got as far as a compression")
    if csv_file:
        write_whole(csv_file, rows_as_csv(rows))
    if json_file:
        write_whole(json_file, versioned_json({"facts": rows}))
    arms = dict(zip([log.name for log in selected], arm_names(selected), strict=True))
    click.echo(totals(rows, arms))


@click.command(
    cls=CleanCommand,
    epilog=examples("predict logs", "predict logs/work logs/answers --format markdown"),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    *("--format", "form"),
    type=click.Choice(("text", "markdown")),
    default="text",
    show_default=True,
)
def predict(logs: tuple[str, ...], form: str) -> None:
    """Test whether facts and answers predict the work that follows.

    LOG is a log, or a folder of logs, of both tasks: resumption, whose constraints were kept or
    broken, and compression on the probes of these constraints with the same strategies (-T
    probes=FOLDER with the banks of the tasks). See docs/resumption.md.
    """
    _require("predict", "scipy")
    from compression_eval.analysis.prediction import joined, sections
    from compression_eval.text.tables import as_markdown, as_text

    page = list(sections(joined(logs)))
    click.echo(as_markdown(page) if form == "markdown" else as_text(page, MAX_COLUMNS), nl=False)


def _found(paths: tuple[str, ...]) -> "list[Log]":
    """Return one log of each run, and report those that ended early."""
    from compression_eval.analysis.logs import find_logs, one_per_run

    selected = one_per_run(find_logs(paths))
    for log in selected:
        if not log.complete:
            click.echo(f"{log.path}: the run ended early ({log.header.status})", err=True)
    return selected


@click.command(
    cls=CleanCommand,
    epilog=examples(
        "report logs --out report",
        "report before.eval after.eval --out report --reference",
        "report logs --out report --viewer https://example.org/logs",
    ),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--out",
    type=Output(folder=True),
    required=True,
    help="Output folder; created if missing.",
)
@click.option("--reference", is_flag=True, help="Add published figures, marked as such.")
@click.option(
    "--viewer",
    default=DEFAULT_VIEWER,
    show_default=True,
    help="Address of Inspect's viewer for links to samples.",
)
def report(
    logs: tuple[str, ...], out: Path, reference: bool, viewer: str, step: str = ""
) -> list[str]:
    """Write a report of logs: scores, lost facts, costs, charts.

    LOG is a log of this eval, or a folder of logs, or logs of any other Inspect task whose
    agent ran with different compaction (docs/agents.md). Writes index.html (one page, no
    network needed), report.md (to paste), figures.json and charts/ (PNG and SVG).
    """
    if not viewer.startswith(("http://", "https://")):
        raise DataError(f"--viewer: an address that begins with http is expected, not {viewer!r}")
    check_report(out)
    from compression_eval.analysis.logs import agent_logs
    from compression_eval.analysis.report.page import report_files, write_files

    if runs := agent_logs(logs):
        if reference:
            raise DataError("--reference: only for logs of compression_eval")
        from compression_eval.analysis.agent_runs import agent_arms
        from compression_eval.analysis.report.page import agent_report_files

        write_files(out, agent_report_files(agent_arms(runs)))
        click.echo(f"wrote {out / 'index.html'}, report.md, figures.json and a chart")
        return []
    files, remarks = report_files(
        _found(logs),
        out,
        reference=reference,
        viewer=viewer,
        progress=lambda done: click.echo(f"{step or 'report: '}{done}", err=True),
    )
    write_files(out, files)
    told = f"wrote {out / 'index.html'}, report.md, figures.json and {len(files) - 3} charts"
    click.echo(f"{step}{told}")
    if not step:
        click.echo("\n" + "\n".join(printable(remark, 1000) for remark in remarks))
    return remarks  # for quickstart


def check_report(out: Path) -> None:
    """Check that the packages for a report are installed, and that its folder has no other page.

    Raises:
        DataError: A package is missing, or the folder has an index.html of something else.
    """
    _require("report", "jinja2", "vl_convert", "scipy")
    page = out / "index.html"
    if page.exists() and _GENERATOR not in page.read_bytes()[:_HEAD]:
        raise DataError(f"--out: {page} is not a page of compression_eval; name another folder")


def _require(what: str, *packages: str) -> None:
    if not all(map(find_spec, packages)):
        raise lacking(what, "analysis")
