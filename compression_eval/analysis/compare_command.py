"""``compression-eval compare``: is one arm better than another, or is it noise?"""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.writing import write_whole
from compression_eval.terminal import model_by_name, model_options

if TYPE_CHECKING:
    from compression_eval.analysis.comparison.result import Comparison
    from compression_eval.analysis.comparison.sides import Side


class _NotComparableError(click.ClickException):
    """Ends with one clean line, and with the exit code for what could not be compared."""

    exit_code = 2


class _Refusing(click.Command):
    """Ends with one clean line where a log or an option is wrong, not with a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of a pipe has seen enough; click ends quietly
        except (DataError, OSError) as error:
            junit = ctx.params.get("junit")
            if isinstance(error, DataError) and junit is not None and junit.parent.is_dir():
                from compression_eval.analysis.comparison.for_programs import refusal_as_junit

                write_whole(junit, refusal_as_junit(str(error)))
            raise _NotComparableError(str(error)) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let ``--to`` take every log that follows it, up to the next option."""
        return super().parse_args(ctx, _spread_over("--to", args))


def _spread_over(option: str, args: list[str]) -> list[str]:
    """Put an option before each of the values that follow it."""
    result: list[str] = []
    taking = False
    for position, arg in enumerate(args):
        if arg == "--":
            return [*result, *args[position:]]
        if arg == option:
            taking = True
            # Without a value the option stands alone, and click says that it wants one.
            if position + 1 == len(args) or args[position + 1].startswith("-"):
                result.append(arg)
        elif arg.startswith("-"):
            taking = arg.startswith(f"{option}=")
            result.append(arg)
        else:
            result.extend([option, arg] if taking else [arg])
    return result


def _allowed(_ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]) -> Any:
    from compression_eval.analysis.comparison.comparable import CONDITIONS

    for name in names:
        if name not in CONDITIONS:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(CONDITIONS)}")
    return names


@click.command(
    "compare",
    cls=_Refusing,
    epilog="\b\nExamples:\n"
    "  compression-eval compare logs/before.eval --to logs/after.eval\n"
    "  compression-eval compare logs/main --to logs/branch --format markdown --out compare.md\n"
    "  compression-eval compare logs/main --to logs/branch --gate --junit compare.xml\n"
    "  compression-eval compare logs/before.eval --to logs/after.eval --regrade openai/gpt-5\n"
    "  compression-eval compare logs/sweep --base-arm tail --to logs/sweep --new-arm anchored\n"
    "\n\b\nExit codes: 0 no regression, 1 regression, 2 could not be compared, 3 cannot tell.",
)
@click.argument("base", nargs=-1, required=True, metavar="BASE...")
@click.option("--to", "new", multiple=True, required=True, metavar="NEW...", help="New logs.")
@click.option("--base-arm", help="Which arm is the base where its logs hold several.")
@click.option("--new-arm", help="Which arm is the new one where its logs hold several.")
@click.option(
    "--margin",
    "--threshold",
    "margin",
    type=click.FloatRange(min=0, min_open=True, max=5),
    default=0.3,
    show_default=True,
    help="Largest loss of knowledge (0 to 5) that is let pass; the least that counts elsewhere.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    callback=_allowed,
    help="Let this differ, and compare what both have; can be given several times.",
)
@click.option(
    "--regrade",
    metavar="MODEL[,MODEL]",
    help="Have the answers of both sides graded together by this model, and compare by that.",
)
@model_options
@click.option("--gate", is_flag=True, help="For CI: only the decision.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "markdown", "json")),
    default="text",
    show_default=True,
)
@click.option("--out", type=click.Path(path_type=Path), help="Write it to a file.")
@click.option(
    "--junit",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the verdicts as JUnit XML, a test case for the outcome and each measure.",
)
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    base: tuple[str, ...],
    new: tuple[str, ...],
    base_arm: str | None,
    new_arm: str | None,
    margin: float,
    allow: tuple[str, ...],
    gate: bool,
    form: str,
    out: Path | None,
    junit: Path | None,
    regrade: str | None,
    **options: Any,
) -> None:
    """Say whether the arm of the NEW logs is better than that of the BASE logs, or worse.

    BASE and NEW are logs of this eval, or folders of logs; each side is one arm. The score
    knowledge decides, on the probes that both have: whether it is shown to be worse by less than
    the margin. docs/statistics.md says how, and what the verdicts mean.
    """
    _need_scipy()
    _refuse_unwritable("--out", out)
    _refuse_unwritable("--junit", junit)
    if regrade is None and (given := [name for name, value in options.items() if value]):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise DataError(f"{flags}: only with --regrade")
    from compression_eval.analysis.comparison.result import EXIT_CODES
    from compression_eval.analysis.comparison.result import compare as compared
    from compression_eval.analysis.comparison.sides import load_sides

    click.echo("reading logs", err=True)
    sides = load_sides(base, new, base_arm, new_arm, scored=regrade is None)
    if regrade is not None:
        sides = _regraded(sides, regrade, options, allow)
    found = compared(*sides, threshold=margin, allowed=allow, whole=not gate)
    outcome, why = found.outcome
    text = _form(form)(found, gate)
    if junit is not None:
        from compression_eval.analysis.comparison.for_programs import as_junit

        write_whole(junit, as_junit(found))
    if out is None:
        click.echo(text, nl=False)
    else:
        write_whole(out, text)
        click.echo(f"{outcome}: {why} ({out})")
    ctx.exit(EXIT_CODES[outcome])


def _regraded(
    sides: "tuple[Side, Side]", names: str, options: dict[str, Any], allowed: tuple[str, ...]
) -> "tuple[Side, Side]":
    from compression_eval.analysis.comparison.regrading import regraded

    with redirect_stdout(sys.stderr):  # where Inspect greets when its first model is made
        models = [model_by_name(name.strip(), options) for name in names.split(",")]
    try:
        return regraded(*sides, models, allowed)
    except KeyboardInterrupt:
        raise _NotComparableError("interrupted while grading; nothing was written") from None


def _form(name: str) -> "Callable[[Comparison, bool], str]":
    from compression_eval.analysis.comparison.blocks import as_markdown, as_text
    from compression_eval.analysis.comparison.for_programs import as_json
    from compression_eval.analysis.comparison.page import page

    if name == "json":
        return lambda found, gate: as_json(found, gate=gate)
    render = as_markdown if name == "markdown" else as_text
    return lambda found, gate: render(page(found, gate=gate))


def _refuse_unwritable(option: str, out: Path | None) -> None:
    """Refuse a place for the result before all logs have been read for it."""
    if out is not None and out.is_dir():
        raise DataError(f"{option}: {out}: is a folder; name a file")
    if out is not None and not out.parent.is_dir():
        raise DataError(f"{option}: {out.parent}: no such folder")


def _need_scipy() -> None:
    if find_spec("scipy") is None:
        raise DataError("compare needs scipy: pip install 'compression_eval[analysis]'")
