"""``compression-eval facts``: where the facts of some logs were lost."""

from pathlib import Path

import click

from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.writing import write_whole
from compression_eval.terminal import CleanCommand


@click.command(
    "facts",
    cls=CleanCommand,
    epilog="\b\nExamples:\n  compression-eval facts logs\n"
    "  compression-eval facts logs/2026-*.eval --csv facts.csv",
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--rows", "show_rows", is_flag=True, help="Print every row first, on one line.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write the rows as CSV.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write them as JSON.")
def facts(
    logs: tuple[str, ...], show_rows: bool, csv_file: Path | None, json_file: Path | None
) -> None:
    """Tell what became of every expected fact, and at which stage it was lost.

    LOG is a log of this eval, or a folder of logs. One row per fact, probe and epoch; the totals
    are by stage and probe type, region of the state, age and cycles. docs/matching.md says what
    the stages mean and where look-ups err.
    """
    from compression_eval.analysis.arms import arm_names
    from compression_eval.analysis.fact_tables import listing, totals
    from compression_eval.analysis.facts import fact_rows, rows_as_csv, rows_as_json
    from compression_eval.analysis.logs import find_logs, one_per_run

    found = one_per_run(find_logs(logs))
    for log in found:
        if not log.complete:
            click.echo(f"{log.path}: the run ended early ({log.header.status})", err=True)
    rows = fact_rows(found)
    if not rows:
        raise DataError(f"{', '.join(logs)}: no sample got as far as a compression")
    if csv_file:
        write_whole(csv_file, rows_as_csv(rows))
    if json_file:
        write_whole(json_file, rows_as_json(rows))
    if show_rows:
        click.echo(listing(rows) + "\n")
    arms = dict(zip([log.name for log in found], arm_names(found), strict=True))
    click.echo(totals(rows, arms))
