"""``compression-eval grader``: is the grader any good?"""

import click

from compression_eval.fixtures.writing import versioned_json
from compression_eval.terminal import CleanCommand


@click.command(
    "grader",
    cls=CleanCommand,
    epilog="\b\nExamples:\n"
    "  inspect eval tasks/grader_calibration.py --model openai/gpt-5 -T variants=true\n"
    "  compression-eval grader logs\n"
    "  compression-eval grader logs/calibration.eval --format json",
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True
)
def grader(logs: tuple[str, ...], form: str) -> None:
    """Say how well graders agree with a careful reader.

    LOG is a log of tasks/grader_calibration.py, or a folder with some. For each grader and
    dimension: the mean absolute error and the bias (above 0: lenient) in points of 5, Spearman's
    rank correlation, the quadratic weighted kappa with its 95 % bootstrap interval over answers;
    the traps it fell for; and how far changes that should not count moved its scores.
    """
    from compression_eval.calibration.results import read_results
    from compression_eval.calibration.table import as_data, lines

    results = read_results(logs)
    if form == "json":
        data = [as_data(result) for result in results]
        click.echo(versioned_json({"graders": data}), nl=False)
        return
    for number, result in enumerate(results):
        if number:
            click.echo()
        for line in lines(result):
            click.echo(line)
