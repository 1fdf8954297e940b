"""``compression-eval probes …``: make probe banks, check them, qualify them."""

from pathlib import Path
from typing import Any

import click

from compression_eval.authoring.history import TAIL_TOKENS
from compression_eval.fixtures.cuts import CutArgument
from compression_eval.fixtures.errors import DataError, shorten
from compression_eval.terminal import CleanGroup, examples, model_options


@click.group(cls=CleanGroup)
def probes() -> None:
    """Make probe banks, check them, qualify them."""


def _cut(value: str) -> CutArgument:
    """Read a cut as the task takes it; whether it fits is checked with each fixture."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _cuts(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> tuple[CutArgument, ...]:
    cuts = tuple(map(_cut, values))
    for cut in cuts:
        if isinstance(cut, str) and cut not in ("auto", "end", "recorded"):
            raise click.BadParameter(
                f"{shorten(cut)} is no number of messages, share between 0 and 1, 'end', "
                "'recorded' or 'auto'"
            )
    return cuts


@probes.command(
    "generate",
    epilog=examples(
        "probes generate my/session.json",
        "probes generate my/fixtures --model openai/gpt-5 --mechanical --out my/banks",
        "probes generate my/session.json --cut 120 --cut end --report report.json",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="FIXTURE...")
@click.option("--model", help="Model that proposes probes, as Inspect names it.")
@model_options
@click.option("--chunk-tokens", type=click.IntRange(min=1_000), help="History per call [60000].")
@click.option("--mechanical", is_flag=True, help="With a model: also what needs none.")
@click.option("--per-type", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--cut", "cuts", multiple=True, callback=_cuts, help="Messages, share, end, or recorded."
)
@click.option("--tail-tokens", type=click.IntRange(min=0), help="Kept verbatim [2000].")
@click.option("--out", type=click.Path(path_type=Path), help="Folder; else beside the fixture.")
@click.option("--force", is_flag=True, help="Overwrite banks.")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write JSON.")
def generate_command(
    paths: tuple[str, ...],
    model: str | None,
    mechanical: bool,
    per_type: int,
    cuts: tuple[CutArgument, ...],
    tail_tokens: int | None,
    chunk_tokens: int | None,
    out: Path | None,
    force: bool,
    report: Path | None,
    **options: Any,
) -> None:
    """Make a probe bank for each FIXTURE, from the history before its cuts.

    FIXTURE is a name, a file, a folder, a pattern, a Parquet file or an address. Without --model,
    probes come from what needs none: tool calls, task lists, and what the recorded agent went on
    to use after the cut. Every probe is checked against the conversation, and at least one of its
    facts is in nothing that is kept verbatim; what fails is dropped, with its reason. Cuts are
    those of the fixture, else the end. A fixture that has a bank already, or that no probe can be
    made for, is passed over and named; exits with 1 if all are.
    """
    from compression_eval.authoring.generate import Wanted, generate

    if model is None and (given := [name for name, value in options.items() if value]):
        raise DataError(f"{', '.join(given)}: only with --model")
    tail = TAIL_TOKENS if tail_tokens is None else tail_tokens
    wanted = Wanted(per_type, tail, cuts, mechanical or model is None, model)
    generate(
        paths,
        wanted,
        out=out,
        force=force,
        report=report,
        chunk_tokens=chunk_tokens,
        model_options=options,
    )


@probes.command(
    "check",
    epilog=examples(
        "probes check",
        "probes check cron-config",
        "probes check my/fixtures --probes my/banks --tail-tokens 8000",
    ),
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

    PATH is a fixture: a name, a file, a folder, a pattern, a Parquet file or an address. Said are
    facts without evidence, questions that give a fact away, facts that a redactor would alter,
    alternatives that are all required, types that do not fit their question, probes that the kept
    tail answers, verdicts that are out of date, and what the bank covers. Fixtures without a bank
    are passed over. Exits with 1 if there are errors, or no bank at all; warnings alone do not
    fail.
    """
    from compression_eval.authoring.check import check

    check(paths, probes, tail_tokens)


@probes.command(
    "qualify",
    epilog=examples(
        "probes qualify my/fixtures --model openai/gpt-5 --dry-run",
        "probes qualify my/fixtures --model openai/gpt-5",
        "probes qualify a.json --model openai/gpt-5 --grader anthropic/claude-x",
        "probes qualify a.json --out checked",
    ),
)
@click.argument("fixtures", nargs=-1, required=True, metavar="FIXTURE...")
@click.option("--probes", type=click.Path(path_type=Path), help="Bank, or folder with banks.")
@click.option("--model", help="Who answers; by default the embedded model, a lexical reader.")
@click.option("--model-base-url", help="Address of the model's provider.")
@click.option("--grader", help="Judge by the rubric with this model, not by looking facts up.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 5),
    help="With --grader: least score for accuracy and for completeness.  [default: 4]",
)
@click.option("--epochs", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--cut", help="Where history ends, as in the task; by default each probe's own cut.")
@click.option("--tail-tokens", type=click.IntRange(min=1), help="Budget of the kept tail.")
@click.option("--temperature", type=click.FloatRange(min=0))
@click.option("--max-connections", type=click.IntRange(min=1))
@click.option("--log-dir", default="logs/qualify", show_default=True, help="Folder for the logs.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder to write the banks to; by default each is rewritten where it lies.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be asked and what it costs.")
def qualify_command(
    fixtures: tuple[str, ...],
    probes: Path | None,
    out: Path | None,
    dry_run: bool,
    **options: str | int | float | None,
) -> None:
    """Put every probe to a model with the full history, with nothing, and with the kept tail.

    A probe qualifies if the full history passes and nothing fails, each in more than half of the
    epochs. Whether the tail alone passes is kept as its region. An answer passes if it holds every
    expected fact and gives no superseded or forbidden value as current, or with --grader by its
    scores. The verdicts are written into the banks; a probe that could not be judged gets none,
    is named, and the command exits with 1.
    """
    from compression_eval.authoring.qualify import QualifySettings, qualify

    if options["threshold"] is not None and options["grader"] is None:
        raise DataError("--threshold: only with --grader; without one, facts are looked up")
    if options["model"] is None:
        click.echo(
            "No --model was chosen: these will be the verdicts of the embedded lexical reader. "
            "What it cannot answer a language model may, so qualify again with the one you use.",
            err=True,
        )
    given = {name: value for name, value in options.items() if value is not None}
    if "cut" in given:
        given["cut"] = _cut(str(given["cut"]))
    qualify(fixtures, probes, out, QualifySettings(**given), dry_run=dry_run)  # type: ignore[arg-type]
