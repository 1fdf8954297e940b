"""``compression-eval probes check``."""

from pathlib import Path

import click

from compression_eval.authoring.history import TAIL_TOKENS
from compression_eval.fixtures.errors import (
    DataError,
    PassedOverError,
    nothing_left,
    passed_over,
)
from compression_eval.fixtures.finding_files import find_fixtures
from compression_eval.fixtures.findings import Finding, counted
from compression_eval.fixtures.loading import load_pair


@click.command(
    "check",
    epilog="\b\nExamples:\n  compression-eval probes check\n"
    "  compression-eval probes check cron-config\n"
    "  compression-eval probes check my/fixtures --probes my/banks --tail-tokens 8000",
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--probes", type=click.Path(path_type=Path), help="Bank, or folder with banks.")
@click.option(
    "--tail-tokens",
    type=click.IntRange(min=0),
    default=TAIL_TOKENS,
    show_default=True,
    help="Tokens at the end that are taken to be kept verbatim.",
)
def check_command(paths: tuple[str, ...], probes: Path | None, tail_tokens: int) -> None:
    """Check probe banks; without PATH, those of all fixtures that come with this project.

    PATH is a fixture: a name, a file, a folder or a pattern. Said are facts without evidence,
    questions that give a fact away, facts that a redactor would alter, alternatives that are all
    required, types that do not fit their question, probes that the kept tail answers, verdicts
    that are out of date, and what the bank covers. Fixtures without a bank are passed over. Exits
    with 1 if there are errors, or no bank at all; warnings alone do not fail.
    """
    from compression_eval.authoring.checking import check_bank

    files = find_fixtures(paths or "all")
    findings: list[Finding] = []
    without: list[PassedOverError] = []
    for number, file in enumerate(files, 1):
        if len(files) > 1:
            click.echo(f"{number} of {len(files)}: {file.name}", err=True)
        try:
            report = check_bank(load_pair(file, probes), tail_tokens=tail_tokens)
        except PassedOverError as error:
            without.append(error)
            continue
        except DataError as error:
            found = [Finding("error", "", line) for line in str(error).splitlines()]
            lines: list[str] = []
        else:
            found, lines = report.findings, list(report.coverage.lines())
            if report.left_out:
                click.echo(report.left_out, err=True)
        for finding in found:
            click.echo(str(finding))
        for line in lines:
            click.echo(f"{file.stem}: {line}")
        findings.extend(found)
    if len(without) == len(files):
        raise nothing_left(without)
    if without:
        click.echo(passed_over(without), err=True)
    click.echo(counted(findings, len(files) - len(without)))
    if any(finding.severity == "error" for finding in findings):
        raise click.exceptions.Exit(1)
