"""``compression-eval report``: tables, charts and a page out of some logs."""

from pathlib import Path

import click

from compression_eval.analysis.report.viewer import DEFAULT_VIEWER
from compression_eval.fixtures.errors import DataError
from compression_eval.terminal import CleanCommand


@click.command(
    "report",
    cls=CleanCommand,
    epilog="\b\nExamples:\n  compression-eval report logs --out report\n"
    "  compression-eval report before.eval after.eval --out report --reference\n"
    "  compression-eval report logs --out report --viewer https://example.org/logs",
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder to write to; made if it is not there.",
)
@click.option("--reference", is_flag=True, help="Print published figures beside, marked as such.")
@click.option(
    "--viewer",
    default=DEFAULT_VIEWER,
    show_default=True,
    help="Where Inspect's viewer serves these logs: links to samples lead there.",
)
def report(logs: tuple[str, ...], out: Path, reference: bool, viewer: str) -> None:
    """Make a report of logs: what each arm kept, where facts were lost, and what it cost.

    LOG is a log of this eval, or a folder of logs. Writes index.html (one page that needs no
    network), report.md (to be pasted), figures.json and charts/ (PNG and SVG).
    """
    from compression_eval.analysis.logs import find_logs, one_per_run
    from compression_eval.analysis.report.making import (
        check_extra,
        check_out,
        report_files,
        write_files,
    )

    if not viewer.startswith(("http://", "https://")):
        raise DataError(f"--viewer: an address that begins with http is expected, not {viewer!r}")
    check_extra()
    check_out(out)
    found = one_per_run(find_logs(logs))
    for log in found:
        if not log.complete:
            click.echo(f"{log.path}: the run ended early ({log.header.status})", err=True)
    files = report_files(
        found,
        out,
        reference=reference,
        viewer=viewer,
        progress=lambda told: click.echo(f"report: {told}", err=True),
    )
    write_files(out, files)
    click.echo(f"wrote {out / 'index.html'}, report.md, figures.json and {len(files) - 3} charts")
