"""``compression-eval scrub`` and ``compression-eval audit``."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from compression_eval.conversations.corpus import (
    Corpus,
    Work,
    Write,
    fixture_files,
    say_done_before,
    shard_options,
)
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.settings import (
    DEFAULT_PROFILE,
    LOADED,
    PARAPHRASE,
    ScrubSettings,
    profiles,
    read_names,
)
from compression_eval.conversations.scrubbing.texts import Report
from compression_eval.conversations.scrubbing.working import AllScrubbed, Scrubbing
from compression_eval.conversations.sources import Input
from compression_eval.engine import Engine, jobs_option
from compression_eval.errors import DataError
from compression_eval.fixtures.finding_files import BANK_SUFFIX
from compression_eval.fixtures.writing import write_whole
from compression_eval.terminal import CleanCommand, Output, check_output, examples

_PATH = click.Path(path_type=Path)
_PASS_OPTIONS = (
    click.option(
        "--profile",
        type=click.Choice(list(profiles())),
        default=DEFAULT_PROFILE,
        show_default=True,
        help="Set of passes.",
    ),
    click.option("--skip", multiple=True, metavar="PASS", help="Leave a pass out. Repeatable."),
    click.option("--only", multiple=True, metavar="PASS", help="Run these alone. Repeatable."),
    click.option(
        "--names", type=_PATH, help="File with names that no rule can know, one to a line."
    ),
    click.option("--remote-owners", is_flag=True, help="Owners of git remotes are handles, too."),
)


def _with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose passes and names, and their settings."""

    @wraps(function)
    def command(
        names: Path | None,
        skip: Sequence[str],
        only: Sequence[str],
        profile: str,
        remote_owners: bool,
        paraphrase: bool = False,
        **others: Any,
    ) -> None:
        settings = ScrubSettings.of(
            profile,
            skip=skip,
            only=only,
            add=(PARAPHRASE,) if paraphrase else (),
            listed=read_names(names) if names else (),
            remote_owners=remote_owners,
        )
        _ = settings.scrubber  # a missing package shows before anything is read
        function(settings=settings, **others)

    for option in reversed(_PASS_OPTIONS):
        command = option(command)
    return command


@click.command(
    "scrub",
    cls=CleanCommand,
    epilog=examples(
        "scrub imported/ --out fixtures/",
        "scrub a.json b.json --out public/ --profile publish --names names.txt --key-file key",
        "scrub a.json --out out/ --skip hosts --skip addresses --report report.json",
    ),
)
@click.argument("inputs", nargs=-1, required=True, metavar="IN...")
@click.option(
    "--out",
    required=True,
    help="Folder to write to; with --engine or --shard-mb it may be an address.",
)
@_with_settings
@click.option("--key", envvar="COMPRESSION_EVAL_SCRUB_KEY", help="Key of the stand-ins.")
@click.option("--key-file", type=_PATH, help="File with that key.")
@click.option("--paraphrase", is_flag=True, help="A model rewrites the first user message.")
@click.option("--model", help="Model for --paraphrase; by default the one of Inspect's settings.")
@click.option("--report", type=Output(parents=True), help="Write the report as JSON, too.")
@jobs_option
@shard_options
@click.option("--force", is_flag=True, help="With a corpus: make anew what is there already.")
def scrub_command(
    settings: ScrubSettings,
    inputs: tuple[str, ...],
    out: str,
    key: str | None,
    key_file: Path | None,
    model: str | None,
    report: Path | None,
    engine: Engine,
    shard_bytes: int | None,
    force: bool,
) -> None:
    """Scrub fixtures, and the banks that lie beside them, into a folder.

    IN is a name, a file, a folder or a pattern. Every result is looked at once more before it is
    written; one in which anything is still found is not written and named at the end, and the
    command exits with 1.
    The report on what was replaced is for a person to read: rules find much, not everything.
    """
    pseudonyms = Pseudonyms.of_file(key_file) if key_file else Pseudonyms((key or "").encode())
    scrubbing = Scrubbing(settings, pseudonyms, model)
    work: Work
    if shard_bytes:
        if PARAPHRASE in settings.passes:
            raise DataError("--paraphrase: not with --engine or --shard-mb")
        made_by = {"command": "scrub", **settings.described(pseudonyms)}
        files = fixture_files(inputs)
        work = Corpus(out, made_by, files, engine, shard_bytes, force=force)
        if work.complete:
            told = f"{out}: this was scrubbed before; --force scrubs it anew"
            say_done_before(told, report)
            return
    else:
        if force:
            raise DataError("--force: only with --engine or --shard-mb; else files are overwritten")
        check_output(Path(out), folder=True, parents=True)
        files = fixture_files(inputs)
        work = Work(files, engine, LOADED, output=_files_in(Path(out), files))
    _conclude(scrubbing.run(work, partial(click.echo, err=True)), report)


@contextmanager
def _files_in(folder: Path, inputs: Sequence[Input]) -> Iterator[Write]:
    """Open a folder for fixtures and their banks."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = {file.path.resolve() for file in inputs}
    written: dict[Path, str] = {}

    def write(row: dict[str, Any], place: str) -> None:
        # The stem of the file to write is that of the input, scrubbed as well.
        target = folder / f"{row['file']}.json"
        if target in written:
            raise DataError(f"{place}: {target} was just written for {written[target]}; rename one")
        if target.resolve() in taken:
            raise DataError(f"--out: {target} is an input; choose another folder")
        said = f"wrote {target}"
        if row["probes"] is not None:  # first: a fixture that is there has its bank
            bank_path = target.with_name(target.stem + BANK_SUFFIX)
            write_whole(bank_path, row["probes"])
            said += f" and {bank_path}"
        write_whole(target, row["fixture"])
        written[target] = place
        click.echo(said)

    yield write


def _conclude(done: AllScrubbed, report: Path | None) -> None:
    """Say what was replaced, and what was not written."""
    total = Report()
    for _, one in done.reports:
        total.add(one)
    click.echo("\n".join(("", *total.table())))
    if report is not None:
        data = [{"file": file, "replaced": one.as_data()} for file, one in done.reports]
        text = json.dumps({"files": data, "total": total.as_data()}, indent=1, ensure_ascii=False)
        report.parent.mkdir(parents=True, exist_ok=True)
        write_whole(report, text + "\n")
    if done.failed:
        raise DataError(done.failed)


@click.command(
    "audit",
    cls=CleanCommand,
    epilog=examples("audit fixtures/", "audit a.json --profile publish --names names.txt"),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@_with_settings
@jobs_option
@shard_options
def audit_command(
    settings: ScrubSettings,
    paths: tuple[str, ...],
    engine: Engine,
    shard_bytes: int | None,
) -> None:
    """Look for anything that scrubbing would still change; exits with 1 if there is something.

    PATH is a name, a file, a folder or a pattern; banks that lie beside fixtures are read too.
    Says the field and the rule, and shows values only masked.
    """
    files: list[Input] = []
    for path in paths:
        if path.endswith(BANK_SUFFIX) and Path(path).is_file():
            files.append(Input(path, named=True))
        else:
            files += fixture_files([path])
    work = Work(files, engine, LOADED, shard_bytes)
    with work.opened():
        _conclude_audit(*Scrubbing(settings, Pseudonyms()).audit(work))


def _conclude_audit(audited: int, findings: Sequence[str]) -> None:
    for finding in findings:
        click.echo(finding)
    click.echo(f"{audited} audited: {len(findings)} findings")
    if findings:
        raise click.exceptions.Exit(1)
