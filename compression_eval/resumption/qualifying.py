"""``compression-eval continuations qualify``: does memory decide a task, by what agents made of it.

A task tells something about compression if agents with the whole history keep all its constraints,
and agents with nothing but the message and the code base break some. Both are ordinary runs of the
task `resumption`, with the strategies ``full`` and ``none``; their logs are read here, and the
verdict is written next to the tasks.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from compression_eval.errors import DataError
from compression_eval.fixtures.continuations import (
    MIN_TRIES,
    Continuations,
    TaskVerdict,
    TaskVerdicts,
    verdicts_file,
)
from compression_eval.fixtures.loading import parsed
from compression_eval.fixtures.models import parsed_yaml
from compression_eval.fixtures.writing import write_whole
from compression_eval.resumption.scoring import MARK
from compression_eval.terminal import CleanCommand, examples
from compression_eval.text.printable import MAX_CELL, printable

_MAX_LINE = 500
"""Characters of a verdict that are shown."""


@dataclass(frozen=True)
class _Try:
    """What one agent made of one task."""

    task: str
    digest: str
    compressor: str
    model: str
    uuid: str
    lost: list[str]
    """Probes of the constraints that it did not keep, whether it asked or not."""


@click.command(
    "qualify",
    cls=CleanCommand,
    epilog=examples("continuations qualify logs/full logs/none --tasks my/continuations"),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--tasks",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="Folder with the tasks (NAME.yaml). NAME.verdicts.json is written there.",
)
def qualify_command(logs: tuple[str, ...], tasks: Path) -> None:
    """Say which tasks memory decides, by runs with the whole history and with none.

    LOG is a log of the task resumption, or a folder of logs, with -T compressor=full or
    compressor=none. A task qualifies if at least two tries with the whole history keep every
    constraint, and every one of at least two with nothing goes against some. Tries that were
    recorded before count too, as long as the task is the same. Exits with 1 if one does not
    qualify.
    """
    tries: dict[str, list[_Try]] = defaultdict(list)
    for log in sorted(_logs(logs), key=lambda log: log.eval.created):
        for each in _tries(log):
            tries[each.task].append(each)
    if not tries:
        raise DataError(f"{', '.join(logs)}: no log of the task resumption with full or none")
    failed, known = False, len(tries)
    for path in sorted(tasks.glob("*.yaml")):
        loaded = parsed_yaml(path, Continuations)
        file = verdicts_file(path)
        names = {f"{loaded.fixture}/{task.id}": task.id for task in loaded.tasks}
        verdicts = {name: own for name, own in _known(file).items() if name in names.values()}
        for name in filter(tries.__contains__, names):
            made = tries.pop(name)
            newest = [each for each in made if each.digest == made[-1].digest]
            found = _verdict(newest, made[-1].digest, verdicts.get(names[name]))
            verdicts[names[name]] = found
            click.echo(f"{printable(name, MAX_CELL)}: {printable(_said(found), _MAX_LINE)}")
            failed = failed or not found.qualified
        if verdicts:
            content = TaskVerdicts(verdicts=dict(sorted(verdicts.items())))
            write_whole(file, content.model_dump_json(indent=2) + "\n")
    if len(tries) == known:
        raise DataError(f"--tasks: {tasks} has none of the {known} tasks that the logs are of")
    if failed:
        raise click.exceptions.Exit(1)


def _logs(paths: Sequence[str]) -> Iterator[EvalLog]:
    names = [
        info.name
        for path in paths
        for info in (list_eval_logs(path, descending=False) if Path(path).is_dir() else [])
    ]
    for name in [*names, *(path for path in paths if not Path(path).is_dir())]:
        header = read_eval_log(name, header_only=True)
        if MARK in (header.eval.metadata or {}) and header.status != "started":
            yield read_eval_log(name, exclude_fields={"messages", "events", "attachments"})


def _tries(log: EvalLog) -> Iterator[_Try]:
    compressor = str(((log.eval.metadata or {}).get("compressor") or {}).get("name"))
    for sample in log.samples or []:
        score = (sample.scores or {}).get("finishing")
        constraints = (score.metadata or {}).get("constraints") if score else None
        written = (sample.metadata or {}).get("message") == "written"  # others nobody chose
        if written and constraints and compressor in ("full", "none"):
            lost = [str(each["probe"]) for each in constraints if not each["passed"]]
            digest = str((sample.metadata or {}).get("task_digest"))
            yield _Try(str(sample.id), digest, compressor, log.eval.model, str(sample.uuid), lost)


def _known(file: Path) -> Mapping[str, TaskVerdict]:
    return parsed(file.read_bytes(), str(file), TaskVerdicts).verdicts if file.is_file() else {}


def _verdict(tries: Sequence[_Try], digest: str, before: TaskVerdict | None) -> TaskVerdict:
    """Return the verdict by some tries and, if the task is still the same, those known before."""
    same = before if before and before.digest == digest else None
    models = {*(same.model.split(", ") if same else ()), *(each.model for each in tries)}
    return TaskVerdict(
        model=", ".join(sorted(models)),
        full={
            **(same.full if same else {}),
            **{each.uuid: each.lost for each in tries if each.compressor == "full"},
        },
        none={
            **(same.none if same else {}),
            **{each.uuid: each.lost for each in tries if each.compressor == "none"},
        },
        digest=digest,
    )


def _said(verdict: TaskVerdict) -> str:
    lacking = [
        f"{len(runs)} of {MIN_TRIES} tries with {name}"
        for name, runs in (("full", verdict.full), ("none", verdict.none))
        if len(runs) < MIN_TRIES
    ]
    lost = sorted({each for run in verdict.full.values() for each in run})
    wrong = [f"not kept with the whole history: {', '.join(lost)}"] if lost else []
    if not all(verdict.none.values()):
        wrong.append("all kept with nothing")
    return "qualified" if verdict.qualified else "not qualified: " + "; ".join([*lacking, *wrong])
