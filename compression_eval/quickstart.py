"""``compression-eval quickstart``: from the sessions on a disk to a report, in one command.

It chooses sessions, runs the commands import and probes generate on them with their output in
files, and then what sweep and report do. The choice is kept in the output folder, so that the same
command goes on where it was. Before a model is paid it shows what the sweep costs, and asks.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import click
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.analysis.commands import report
from compression_eval.analysis.postmortem import session_line
from compression_eval.authoring.generate import generate_command
from compression_eval.compressors.recorded import unsupported
from compression_eval.compressors.registry import compressor_spec
from compression_eval.conversations.building import names_subagent
from compression_eval.conversations.commands import import_command
from compression_eval.conversations.formats import format_of, only_subagents
from compression_eval.conversations.overview import printable
from compression_eval.conversations.pipeline import why_not
from compression_eval.conversations.sources import (
    Input,
    find_inputs,
    readable,
    source_file,
    usual_places,
)
from compression_eval.errors import (
    DataError,
    PassedOverError,
    describe_validation_error,
    lacking,
    shorten,
)
from compression_eval.fixtures.banks import MIN_PROBES
from compression_eval.fixtures.cuts import TAIL_TOKENS, places
from compression_eval.fixtures.finding_files import BANK_SUFFIX
from compression_eval.fixtures.loading import find_sources, load_pair
from compression_eval.fixtures.writing import write_whole
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.postmortem.sessions import read_sessions
from compression_eval.sweeping.commands import arm_results, outcome_lines, refuse_unfinished
from compression_eval.sweeping.estimate import estimate, role_lines
from compression_eval.sweeping.planning import SweepPlan, refuse_other_work, sweep_plan
from compression_eval.sweeping.running import run_sweep
from compression_eval.sweeping.settings import SweepSettings, read_prices
from compression_eval.terminal import CleanCommand, Output, StoppedError, examples, named_model
from compression_eval.text.tables import counted

DEFAULT_OUT = "compression-quickstart"
STATE_FILE = "quickstart.json"
EMBEDDED = "embedded/"

_RECORDED = "recorded"
"""The arm of the agent's own compactions, which not every session has."""

_SHORT_BYTES = 8 * TAIL_TOKENS
"""Files below that contain hardly more than the tail that every strategy keeps."""

MAX_SHOWN = 5
"""Reasons of a kind that are shown."""

LOOKED_THROUGH = 4
"""Files in which compactions are looked for, for each session that is wanted."""

Pick = Literal["compacted", "longest", "newest"]


class Selection(BaseModel):
    """The selection that an output folder was made from, so that the command can resume."""

    model_config = ConfigDict(extra="ignore")

    format: Literal[1] = 1
    paths: list[str]
    limit: int
    pick: Pick
    names: str | None
    sessions: list[str] = Field(default_factory=list)
    """The files that were taken."""
    imported: bool = False
    """Whether all of them were imported."""
    asked_by: str | None = None
    """Model that writes the questions; empty for none, None if nobody has begun."""
    asked: bool = False
    """Whether all questions are written."""


NEEDED = {
    "analysis": ("jinja2", "vl_convert", "scipy"),
    "scrub": ("kingfisher_sdk", "english_words"),
}
"""Packages that the report and the scrubber use, by extra."""


@click.command(
    "quickstart",
    cls=CleanCommand,
    epilog=examples(
        "quickstart",
        "quickstart ~/.claude/projects --limit 10 --pick longest",
        "quickstart sessions/ --arms anchored,regenerative,claude-code --out try",
        "quickstart ~/.codex/sessions --model openai/gpt-5-mini --grader openai/gpt-5.2",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--out",
    type=Output(folder=True, parents=True),
    default=DEFAULT_OUT,
    show_default=True,
    help="Output folder.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=5, show_default=True, help="Number of sessions."
)
@click.option(
    "--pick",
    type=click.Choice(get_args(Pick)),
    default="compacted",
    show_default=True,
    help="Which sessions to use: of the newest those that were compacted first, or by size or age.",
)
@click.option(
    "--arms",
    help="Strategies, separated by commas.  [default: anchored,masking, and recorded on sessions "
    "that were compacted]; the controls full, none and tail are added.",
)
@click.option(
    "--model",
    help="Model that answers, and without --grader also writes the questions and grades. "
    "Default: the embedded model, which is free.",
)
@click.option("--grader", help="Model that writes the questions and grades.")
@click.option("--compressor-model", help="Model that summarizes. Default: the model that answers.")
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    help="Compressions of each session.  [default: 3; 1 with the embedded model]",
)
@click.option(
    "--names",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with names to replace, one per line.",
)
@click.option("--prices", type=click.Path(path_type=Path), help="Prices file, as for estimate.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation of the cost.")
@click.pass_context
def quickstart_command(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    out: Path,
    limit: int,
    pick: Pick,
    arms: str | None,
    names: Path | None,
    prices: Path | None,
    yes: bool,
    **models: Any,
) -> None:
    """Evaluate compression on your own sessions: import, scrub, ask, run, report.

    PATH is a session, a folder of sessions or a pattern. Default: the usual places of agents.
    Sessions are scrubbed before anything is written. What cannot be used is left out with its
    reason. The embedded model needs no key and costs nothing. With --model the cost is
    estimated and confirmed first. If the command is interrupted, give it again to continue.
    """
    if missing := [extra for extra, names in NEEDED.items() if not all(map(find_spec, names))]:
        raise lacking("quickstart", *missing)
    listed = [arm.strip() for arm in arms.split(",")] if arms else []
    _check(listed, models)
    wanted = Selection(
        paths=[os.path.abspath(Path(path).expanduser()) for path in paths],  # noqa: PTH100 - patterns
        limit=limit,
        pick=pick,
        names=str(names) if names else None,
    )
    chosen = _selected(wanted, out)
    _say_fetched_again(chosen.sessions)
    try:
        fixtures = _import(ctx, chosen, out)
        asked = _probes(ctx, chosen, fixtures, out, models["grader"] or _answerer(models), yes=yes)
        plans = _planned(listed or ["anchored", "masking", _RECORDED], asked, models, out)
        if not _is_free(models):
            _say_costs(plans, prices)
            if not yes:
                click.confirm("Go on?", abort=True)
        logs = [_run(plan, prices) for plan in plans]
    except KeyboardInterrupt:
        raise StoppedError(f"Stopped. The same command continues in {out}.") from None
    _conclude(ctx, logs, out, free=_is_free(models))


def _say(step: str, text: str) -> None:
    """Print what a step did."""
    click.echo(f"{step:<9}{text}")


def _say_fetched_again(sessions: Sequence[str]) -> None:
    """Print what the recorded agents fetched again after compactions of their own."""
    compacted = (row for row in read_sessions(sessions) if row.compactions)
    for number, row in enumerate(compacted):
        _say("" if number else "fetched", session_line(row))


def _check(arms: Sequence[str], models: dict[str, Any]) -> None:
    """Refuse unusable arms and models before anything is read."""
    for arm in arms:
        compressor_spec(arm, {})
    for role in ("model", "grader", "compressor_model"):
        if models[role]:
            with redirect_stdout(sys.stderr):  # where Inspect greets
                option = f"--{role.replace('_', '-')}"
                named_model(models[role], f"{option}: {shorten(models[role])}")


def _answerer(models: dict[str, Any]) -> str:
    chosen = models["model"] or os.environ.get("INSPECT_EVAL_MODEL", "").split(",")[0].strip()
    return chosen or EMBEDDED_MODEL


def _is_free(models: dict[str, Any]) -> bool:
    """Return whether the embedded model does everything."""
    names = [_answerer(models), models["grader"], models["compressor_model"]]
    return all(name.startswith(EMBEDDED) for name in names if name)


def _selected(wanted: Selection, out: Path) -> Selection:
    """Return the selected sessions: those of the last run, or newly chosen ones."""
    file = out / STATE_FILE
    if file.is_file():
        try:
            before = Selection.model_validate_json(file.read_bytes())
        except ValidationError as error:
            raise DataError(describe_validation_error(file, error)) from error
        for name in ("paths", "limit", "pick", "names"):
            was, now = getattr(before, name), getattr(wanted, name)
            if was != now:
                raise DataError(
                    f"--out: {out} was made with other sessions ({name}: {was or 'none'}, now "
                    f"{now or 'none'}); name another folder"
                )
        _say("sessions", f"the {len(before.sessions)} that {out} was begun with")
        return before
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"--out: {out} is there and was not made by quickstart; name another")
    sessions = _sessions(wanted)
    out.mkdir(parents=True, exist_ok=True)
    return _remembered(wanted, out, sessions=sessions)


def _remembered(selection: Selection, out: Path, **update: Any) -> Selection:
    changed = selection.model_copy(update=update)
    write_whole(out / STATE_FILE, changed.model_dump_json(indent=1) + "\n")
    return changed


def _sessions(wanted: Selection) -> list[str]:
    """Return the files of the sessions to use, and say how they were chosen."""
    if not (paths := wanted.paths):
        paths = usual_places()
        for number, place in enumerate(paths):
            _say("" if number else "found", place)
    found = find_inputs(paths)
    skipped = {item.place: why for item in found if (why := readable(item.path))}
    inputs = [item for item in found if item.place not in skipped]
    taken: list[str] = []
    agents = 0
    enough = wanted.limit * (LOOKED_THROUGH if wanted.pick == "compacted" else 1)
    for item in sorted(inputs, key=partial(_rank, wanted.pick)):
        try:
            known = format_of(source_file(item.path))
        except (DataError, OSError, RecursionError) as error:
            skipped[item.place] = why_not(error, item, item.path)
            continue
        if item.named or not only_subagents(known):
            taken.append(item.place)
        else:
            agents += 1
        if len(taken) == enough:
            break
    if agents and not taken:
        raise DataError(f"only sessions of sub-agents in {', '.join(paths)}; name a file of theirs")
    if not taken:
        heading = f"no session of a known format in {', '.join(paths)}:"
        raise DataError("\n".join([heading, *_left_out(skipped)]))
    passed = f"; {agents} files of sub-agents were left out" if agents else ""
    chosen = f"the {len(taken)} {wanted.pick}"
    if wanted.pick == "compacted":
        looked_at = len(taken)
        compacted = {row.place for row in read_sessions(taken) if row.compactions}
        taken = sorted(taken, key=lambda place: place not in compacted)[: wanted.limit]
        first = len(compacted & {*taken})
        chosen = (
            f"{first} with compactions among the newest {looked_at}, then the newest: {len(taken)}"
        )
    _say("sessions", f"{chosen} of {len(inputs)} files (--limit, --pick){passed}")
    for line in _left_out(skipped):
        _say("", line)
    return taken


def _left_out(skipped: dict[str, str]) -> Iterator[str]:
    """Yield a line for each of the first files that cannot be read, with its reason."""
    for place, why in list(skipped.items())[:MAX_SHOWN]:
        yield f"  {printable(place, 300, end=True)}: {printable(why, 500)}"
    if (more := len(skipped) - MAX_SHOWN) > 0:
        yield f"  and {more} more"


def _rank(pick: Pick, item: Input) -> tuple[bool, float]:
    """Return what sorts files: those too short to be compressed go last."""
    found = item.path.stat()
    short = found.st_size < _SHORT_BYTES
    return short, -(found.st_size if pick == "longest" else found.st_mtime)


def _command(ctx: click.Context, command: click.Command, said: Path, *arguments: str | Path) -> str:
    """Run a command with its output in a file; returns why it failed, if it did."""
    with said.open("w", encoding="utf-8") as file, redirect_stdout(file):
        try:
            words = list(map(str, arguments))
            with command.make_context(str(command.name), words, parent=ctx) as own:
                command.invoke(own)
        except StoppedError:
            raise KeyboardInterrupt from None
        except (click.ClickException, DataError) as error:
            return error.message if isinstance(error, click.ClickException) else str(error)
    return ""


def _import(ctx: click.Context, selection: Selection, out: Path) -> list[Path]:
    """Import and scrub what was selected, unless that is done; returns the fixtures."""
    said = out / "import.txt"
    if selection.imported:
        _say("imported", f"before, see {said}")
    else:
        names = ("--names", selection.names) if selection.names else ()
        options = ("--scrub", "default", "--duplicates", "longest", *names)
        # The remains of an interrupted import are overwritten.
        output = ("--out", out / "fixtures", "--force")
        if failed := _command(ctx, import_command, said, *selection.sessions, *options, *output):
            _say("", f"{failed.removesuffix('; see above')} ({said})")
        _remembered(selection, out, imported=True)
    fixtures = [
        path for path in (out / "fixtures").glob("*.json") if not path.name.endswith(BANK_SUFFIX)
    ]
    if not fixtures:
        raise DataError(f"nothing was imported; {said} says why")
    if not selection.imported:
        _say("imported", f"{counted(len(fixtures), 'conversation')}, scrubbed ({said})")
    return sorted(fixtures, key=lambda path: (names_subagent(path.stem), path.name))


def _probes(
    ctx: click.Context,
    selection: Selection,
    fixtures: Sequence[Path],
    out: Path,
    writer: str,
    *,
    yes: bool,
) -> list[Path]:
    """Make a bank for each of the first conversations; returns those that have one."""
    limit, said = selection.limit, out / "probes.txt"
    for path in fixtures[limit:]:
        _say("", f"left out {printable(path.stem, 50, end=True)}: more conversations than --limit")
    taken, by = fixtures[:limit], "" if writer.startswith(EMBEDDED) else writer
    if selection.asked_by not in (None, by):
        raise DataError(
            f"--out: the questions in {out} are by {selection.asked_by or 'rules'}; to have them "
            f"written by {by or 'rules'}, name another folder"
        )
    failed = ""
    if not selection.asked:
        # What an interrupted command has written, and paid for, stays.
        todo = [path for path in taken if not _bank(path).is_file()]
        if by and todo and not yes:
            _confirm_questions(todo, by)
        selection = _remembered(selection, out, imported=True, asked_by=by)
        options = ("--model", by, "--mechanical") if by else ()
        failed = _command(ctx, generate_command, said, *todo, *options) if todo else ""
    asked = [path for path in taken if _bank(path).is_file()]
    if not asked or failed.startswith("model "):
        raise DataError(f"nothing is left to ask about: {failed} ({said})")
    if failed:
        _say("", f"{failed} ({said})")
    _remembered(selection, out, imported=True, asked_by=by, asked=True)
    probes = [probe for path in asked for probe in load_pair(path).bank.probes]
    few = f"; too few to rank strategies: {MIN_PROBES} about each are needed"
    few += "" if by else ", which a language model writes (--model NAME)"
    by_model = any((probe.origin or "").startswith("model") for probe in probes)
    few = few if len(probes) < MIN_PROBES * len(asked) else ""
    _say(
        "asked",
        f"{counted(len(probes), 'question')} about {counted(len(asked), 'conversation')}, by "
        f"{by if by_model else 'rules'} ({said}){few}",
    )
    return asked


def _bank(fixture: Path) -> Path:
    return fixture.with_name(fixture.stem + BANK_SUFFIX)


def _confirm_questions(fixtures: Sequence[Path], writer: str) -> None:
    """Say what is sent to have a model write the questions, and ask whether to."""
    read = (source.read_fixture() for source in find_sources(list(map(str, fixtures))))
    characters = sum(len(message.text) for fixture in read for message in fixture.messages)
    _say(
        "cost",
        f"{printable(writer)} writes the questions: the scrubbed text of "
        f"{counted(len(fixtures), 'conversation')}, about {characters // 4:,} tokens, is sent two "
        "to six times (to write, answer, check and correct them)",
    )
    click.confirm("Go on?", abort=True)


def _planned(
    arms: Sequence[str], fixtures: Sequence[Path], models: dict[str, Any], out: Path
) -> list[SweepPlan]:
    """Plan the sweeps: all arms on all conversations, and `recorded` on those that have it."""
    compacted = [path for path in fixtures if _RECORDED in arms and _takes_recorded(path)]
    others = [arm for arm in arms if arm != _RECORDED]
    plan = partial(_plan, models, out / re.sub(r"[^\w.-]|_", "-", _answerer(models)))
    if not others or len(compacted) == len(fixtures):
        plans = [plan("logs", arms, compacted or fixtures)]
    else:
        plans = [plan("logs", others, fixtures)]
        if compacted:
            # Arms are only comparable on the same probes: a second report is of these alone.
            plans.append(plan(_RECORDED, [_RECORDED], compacted))
    named, controls = (
        ", ".join(arm.label for arm in plans[0].arms if arm.control is control)
        for control in (False, True)
    )
    _say("arms", f"{named}, and controls {controls}")
    if len(plans) > 1:
        _say("", f"{_RECORDED} on the {len(compacted)} of these whose own compaction can be read")
    for reason in plans[0].passed_over[:MAX_SHOWN]:
        _say("", f"skipped: {reason}")
    return plans


def _plan(
    models: dict[str, Any], folder: Path, name: str, arms: Sequence[str], fixtures: Sequence[Path]
) -> SweepPlan:
    roles = {"grader": models["grader"], "compressor": models["compressor_model"]}
    settings = SweepSettings(
        arms=list(arms),
        models=[_answerer(models)],
        roles={role: [model] for role, model in roles.items() if model},
        fixtures=[str(path.resolve()) for path in fixtures],
        controls=name != _RECORDED,
        epochs=models["epochs"] or (1 if _is_free(models) else 3),
        log_dir=str(folder / name),
    )
    plan = sweep_plan(settings)
    refuse_other_work(plan, folder / name, "Name another folder with --out.")
    return plan


def _takes_recorded(path: Path) -> bool:
    """Return whether the agent's own compaction can be evaluated wherever a probe is put."""
    pair = load_pair(path)
    try:
        return all(
            unsupported(pair.fixture, (place.cut,)) is None for place in places(pair, ["auto"])
        )
    except PassedOverError:
        return False


def _say_costs(plans: Sequence[SweepPlan], prices: Path | None) -> None:
    """Say what the sweeps cost, what is done included."""
    _say("cost", f"estimated for all {sum(plan.samples for plan in plans):,} samples:")
    for plan in plans:
        for line in role_lines(estimate(plan, read_prices(prices)), "--grader MODEL"):
            _say("", line)


def _run(plan: SweepPlan, prices: Path | None) -> Path:
    """Run a sweep; returns the folder of its logs."""
    folder = Path(str(plan.settings.log_dir))
    folder.parent.mkdir(exist_ok=True)
    success, logs = run_sweep(plan, folder, read_prices(prices))
    refuse_unfinished(folder, success, logs)
    _say("run", f"{counted(len(logs), 'arm')} ({folder})")
    for line in outcome_lines(arm_results(plan, logs)):
        _say("", line)
    return folder


def _conclude(ctx: click.Context, logs: Sequence[Path], out: Path, *, free: bool) -> None:
    """Make the reports; print what they say of these sessions, and what to look at."""
    folder = logs[0].parent
    reports = [out / "report", out / "report-recorded"][: len(logs)]
    remarks: list[str] = []
    for number, page in enumerate(reports, start=1):
        of_logs = tuple(map(str, logs[:number]))
        opening, *others = ctx.invoke(report, logs=of_logs, out=page, step=f"{'report':<9}")
        remarks += [opening, *others] if number == 1 else [f"Where it was compacted: {opening}"]
    click.echo()
    for remark in remarks:
        click.echo(printable(remark, 1000))
    click.echo("\nLook at")
    for page in reports:
        click.echo(f"  {page / 'index.html'} (or report.md next to it)")
    click.echo(f"  inspect view --log-dir {shlex.quote(str(folder))} --no-trust-content")
    if free:
        click.echo("With --model NAME a language model writes the questions, answers and grades.")
    click.echo("Scrubbing finds much, not everything: read a fixture before you share it.")
