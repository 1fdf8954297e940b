"""``compression-eval scrub`` and ``compression-eval audit``."""

import json
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from compression_eval.conversations.processes import Workers, jobs_option
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.settings import (
    DEFAULT_PROFILE,
    LOADED,
    PARAPHRASE,
    ScrubSettings,
    profiles,
    read_names,
)
from compression_eval.conversations.scrubbing.sharded import (
    AllScrubbed,
    audit_shards,
    scrub_shards,
)
from compression_eval.conversations.scrubbing.texts import Report
from compression_eval.conversations.scrubbing.working import ScrubWorker
from compression_eval.conversations.shards import Sharding, say_done_before, shard_options
from compression_eval.conversations.sources import Input
from compression_eval.errors import DataError
from compression_eval.fixtures.finding_files import BANK_SUFFIX, find_bank, find_fixtures
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
    "--out", required=True, help="Folder to write to; with --engine it may be an address."
)
@_with_settings
@click.option("--key", envvar="COMPRESSION_EVAL_SCRUB_KEY", help="Key of the stand-ins.")
@click.option("--key-file", type=_PATH, help="File with that key.")
@click.option("--paraphrase", is_flag=True, help="A model rewrites the first user message.")
@click.option("--model", help="Model for --paraphrase; by default the one of Inspect's settings.")
@click.option("--report", type=Output(parents=True), help="Write the report as JSON, too.")
@jobs_option
@shard_options
@click.option("--force", is_flag=True, help="With --engine: make anew what is there already.")
def scrub_command(
    settings: ScrubSettings,
    inputs: tuple[str, ...],
    out: str,
    key: str | None,
    key_file: Path | None,
    model: str | None,
    report: Path | None,
    jobs: int | None,
    sharding: Sharding | None,
    force: bool,
) -> None:
    """Scrub fixtures, and the banks that lie beside them, into a folder.

    IN is a name, a file, a folder or a pattern. Every result is looked at once more before it is
    written; one in which anything is still found is not written and named at the end, and the
    command exits with 1.
    The report on what was replaced is for a person to read: rules find much, not everything.
    """
    pseudonyms = Pseudonyms.of_file(key_file) if key_file else Pseudonyms((key or "").encode())
    if sharding:
        if PARAPHRASE in settings.passes:
            raise DataError("--paraphrase: not with --engine")
        scrubbed = scrub_shards(inputs, out, settings, pseudonyms, sharding, force=force)
        if scrubbed is None:
            told = f"{out}: this was scrubbed before; --force scrubs it anew"
            say_done_before(told, report)
        else:
            _conclude(scrubbed, report)
        return
    if force:
        raise DataError("--force: needs --engine; without it files are overwritten")
    folder = Path(out)
    check_output(folder, folder=True, parents=True)
    files = [Input(str(path), named=True) for path in find_fixtures(inputs)]
    folder.mkdir(parents=True, exist_ok=True)
    refused: list[str] = []
    written: dict[Path, Path] = {}
    data: list[tuple[str, Report]] = []
    make = partial(ScrubWorker, settings, pseudonyms, model)
    with Workers(make, files, jobs, 2, LOADED) as workers:
        for _, read in workers.each("learn", ScrubWorker.learn, files):
            list(read)  # a name that one file gives away is replaced in all of them
        workers.all(ScrubWorker.teach, workers.all(ScrubWorker.taught))
        for file, results in workers.each("scrub", ScrubWorker.scrub, files):
            path = file.path
            (done,) = results
            data.append((str(path), done.report))
            for line in done.notes:
                click.echo(line, err=True)
            if done.fixture is None:
                refused.append(str(path))
                continue
            # The stem of the file to write is that of the input, scrubbed as well.
            target = folder / f"{done.stem or 'fixture'}.json"
            if target in written:
                raise DataError(
                    f"{path}: {target} was just written for {written[target]}; rename one"
                )
            if target.resolve() in {file.path.resolve() for file in files}:
                raise DataError(f"--out: {target} is an input; choose another folder")
            said = f"wrote {target}"
            if done.bank is not None:  # first: a fixture that is there has its bank
                bank_path = target.with_name(target.stem + BANK_SUFFIX)
                write_whole(bank_path, done.bank)
                said += f" and {bank_path}"
            write_whole(target, done.fixture)
            written[target] = path
            click.echo(said)
    _conclude(AllScrubbed(data, refused), report)


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
    jobs: int | None,
    sharding: Sharding | None,
) -> None:
    """Look for anything that scrubbing would still change; exits with 1 if there is something.

    PATH is a name, a file, a folder or a pattern; banks that lie beside fixtures are read too.
    Says the field and the rule, and shows values only masked.
    """
    if sharding:
        _conclude_audit(*audit_shards(paths, settings, sharding))
        return
    found: list[Path] = []
    for path in paths:
        if path.endswith(BANK_SUFFIX) and Path(path).is_file():
            found.append(Path(path))
            continue
        fixtures = find_fixtures([path])
        banks = map(_bank_beside, fixtures)
        found += [*fixtures, *(bank for bank in banks if bank)]
    files = [Input(str(path), named=True) for path in found]
    lines: list[str] = []
    make = partial(ScrubWorker, settings, Pseudonyms())
    with Workers(make, files, jobs, 2, LOADED) as workers:
        for _, read in workers.each("learn", ScrubWorker.learn, files):
            list(read)
        workers.all(ScrubWorker.teach, workers.all(ScrubWorker.taught))
        for file, findings in workers.each("audit", ScrubWorker.audit, files):
            lines += (f"{file.path}: {finding}" for finding in findings)
    _conclude_audit(len(files), lines)


def _conclude_audit(audited: int, findings: Sequence[str]) -> None:
    for finding in findings:
        click.echo(finding)
    click.echo(f"{audited} audited: {len(findings)} findings")
    if findings:
        raise click.exceptions.Exit(1)


def _bank_beside(path: Path) -> Path | None:
    try:
        return find_bank(path, None)
    except DataError:
        return None
