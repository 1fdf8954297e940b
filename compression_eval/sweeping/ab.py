"""``compression-eval ab``: is the new prompt better than the old one?

The two prompts are two arms of one strategy in a sweep with the controls none and full. The
estimate comes first, then the run, which goes on where it was when the same command is given again,
then the comparison with its exit code.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from compression_eval.analysis.commands import MAX_COLUMNS, RefusingCommand
from compression_eval.analysis.comparison.sides import CONTROLS
from compression_eval.analysis.logs import find_logs, one_per_run
from compression_eval.analysis.statistics.significance import DEFAULT_THRESHOLD
from compression_eval.errors import DataError
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.commands import (
    arm_results,
    end_dry_run,
    failure_lines,
    refuse_unfinished,
    refuse_useless,
)
from compression_eval.sweeping.estimate import estimate, estimate_text
from compression_eval.sweeping.planning import (
    SweepPlan,
    check_models,
    finished_samples,
    log_folder,
    refuse_other_work,
    sweep_plan,
    with_default_models,
)
from compression_eval.sweeping.running import run_sweep
from compression_eval.sweeping.settings import option_of, read_prices, settings_of
from compression_eval.terminal import StoppedError, examples, go_on

OPTIONS = (
    *("models", "roles", "fixtures", "probes", "probe_types", "cut", "epochs"),
    *("generate", "model_args", "model_base_url"),
)
"""Settings of a sweep that the command takes."""


@click.command(
    "ab",
    cls=RefusingCommand,
    epilog=examples(
        "ab old.md new.md --model openai/gpt-5-mini --model-role grader=openai/gpt-5 --dry-run",
        "ab old.md new.md --model openai/gpt-5-mini --model-role grader=openai/gpt-5 \\\n"
        "      --fixtures core --budget 6000",
    )
    + "\n\n\b\nExit codes: 0 no regression, 1 regression, 2 could not be compared, 3 cannot tell.",
)
@click.argument("old", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--compressor",
    default="regenerative",
    show_default=True,
    help="The summarising strategy whose instructions the prompts replace.",
)
@click.option("--budget", type=click.IntRange(min=1), help="Tokens of the whole state.")
@option_of(*OPTIONS)
@click.option(
    "--log-dir",
    type=click.Path(path_type=Path),
    help="Folder of the logs.  [default: logs/ab, or the next one that has no other prompts]",
)
@click.option(
    "--controls",
    multiple=True,
    metavar="LOGS...",
    help="Logs of the arms none and full by the same models, which are not run again then.",
)
@click.option("--prices", type=click.Path(path_type=Path), help="Prices file, as for estimate.")
@click.option(
    "--margin",
    type=click.FloatRange(min=0, min_open=True, max=5),
    help="Largest loss of knowledge (0 to 5) that passes, as in compare.",
)
@click.option("--dry-run", is_flag=True, help="Print the estimate, and call no model.")
@click.pass_context
def ab_command(
    ctx: click.Context,
    /,
    old: Path,
    new: Path,
    compressor: str,
    budget: int | None,
    log_dir: Path | None,
    controls: tuple[str, ...],
    prices: Path | None,
    margin: float | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Compare two summary prompts: estimate, run both, give a verdict.

    Both files replace the instructions of a summarizing strategy. The command runs both prompts
    and the controls none, full and tail on the same conversations with the same models, and
    compares them. It prints the cost and the smallest difference that it can find first. If it is
    interrupted, give it again to continue.
    """
    from compression_eval.analysis.comparison.compare import EXIT_CODES, compare
    from compression_eval.analysis.comparison.controls import controls_of
    from compression_eval.analysis.comparison.sides import load_sides
    from compression_eval.analysis.comparison.text import page
    from compression_eval.text.tables import as_text

    if old.read_bytes() == new.read_bytes():
        raise DataError(f"{old} and {new} are the same prompt; name two that differ")
    arms = [{"compressor": compressor, "prompt": str(path)} for path in (old, new)]
    given = {"arms": arms, "budgets": [budget] if budget else [], "controls": not controls}
    settings, known = settings_of(None, options | given), read_prices(prices)
    if not dry_run:
        if with_default_models(settings).models == [EMBEDDED_MODEL] and not options["models"]:
            raise DataError(
                "--model: name a language model; the embedded one reads no instructions"
            )
        check_models(settings)
    plan = sweep_plan(settings)
    folder = _folder(plan, log_dir)
    click.echo(f"folder   {folder}\n")
    expected = estimate(plan, known, margin or DEFAULT_THRESHOLD)
    click.echo(f"{estimate_text(expected)}\n")
    if dry_run:
        end_dry_run(settings)
        return
    if controls:
        _check_controls(controls, plan)
    if finished_samples(folder).total() < plan.samples:
        plan.call_models()
    try:
        success, logs = run_sweep(plan, folder, known)
        refuse_unfinished(folder, success, logs)
    except KeyboardInterrupt:
        raise StoppedError(f"Stopped. The same command continues in {folder}.") from None
    done = [each for each in arm_results(plan, logs) if not each.arm.control]
    for line in failure_lines(done):
        click.echo(line, err=True)
    refuse_useless(done)
    named = [str(folder)]
    first, second, beside = load_sides(named, named, *(each.name for each in done))
    found = controls_of((first, second), beside, named, controls)
    comparison = compare(first, second, found, margin=margin)
    click.echo(as_text(page(comparison), MAX_COLUMNS), nl=False)
    go_on(
        ("compression-eval", "report", *named, "--out", str(folder / "report")),
        ("inspect", "view", "--log-dir", *named),
    )
    ctx.exit(EXIT_CODES[comparison.outcome[0]])


def _check_controls(controls: Sequence[str], plan: SweepPlan) -> None:
    """Raise, before anything is paid for, if there are no logs of the controls by the models."""
    try:
        logs = one_per_run(find_logs(controls))
    except DataError as error:
        raise DataError(f"--controls: {error}") from error
    found = {(log.compressor, log.header.eval.model) for log in logs}
    for model in plan.settings.models:
        for name in CONTROLS:
            if (name, model) not in found:
                told = f"--controls: {', '.join(controls)}: no run of the arm {name!r} by {model}"
                raise DataError(told)


def _folder(plan: SweepPlan, given: Path | None) -> Path:
    """Return the folder that is given, or the first of the default ones that fits the plan."""
    if given is not None:
        folder = log_folder(str(given))
        refuse_other_work(plan, folder, "Name another folder with --log-dir.")
        return folder
    number = 1
    while True:
        folder = log_folder("logs/ab" if number == 1 else f"logs/ab-{number}")
        try:
            refuse_other_work(plan, folder)
        except DataError:
            if not folder.exists():
                raise
            number += 1
        else:
            return folder
