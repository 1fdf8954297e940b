"""``compression-eval scrub`` and ``compression-eval audit``."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import anyio
import click

from compression_eval.conversations.processes import Workers, jobs_option
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.scrubber import (
    Scrubbed,
    audit,
    paraphrase_first_message,
    scrub,
    scrub_bank,
)
from compression_eval.conversations.scrubbing.settings import (
    DEFAULT_PROFILE,
    PARAPHRASE,
    ScrubSettings,
    profiles,
    read_names,
)
from compression_eval.conversations.scrubbing.texts import Report, TextPasses
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary
from compression_eval.conversations.sources import Input
from compression_eval.errors import DataError
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.checking import bank_findings
from compression_eval.fixtures.finding_files import BANK_SUFFIX, find_bank, find_fixtures
from compression_eval.fixtures.loading import load_bank, load_fixture, refuse
from compression_eval.fixtures.structure import bank_faults, fixture_faults
from compression_eval.fixtures.writing import fixture_text, write_whole
from compression_eval.terminal import CleanCommand, examples

_MAX_FINDINGS = 20
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
@click.option("--out", type=_PATH, required=True, help="Folder to write to.")
@_with_settings
@click.option("--key", envvar="COMPRESSION_EVAL_SCRUB_KEY", help="Key of the stand-ins.")
@click.option("--key-file", type=_PATH, help="File with that key.")
@click.option("--paraphrase", is_flag=True, help="A model rewrites the first user message.")
@click.option("--model", help="Model for --paraphrase; by default the one of Inspect's settings.")
@click.option("--report", type=_PATH, help="Write the report as JSON, too.")
@jobs_option
def scrub_command(
    settings: ScrubSettings,
    inputs: tuple[str, ...],
    out: Path,
    key: str | None,
    key_file: Path | None,
    model: str | None,
    report: Path | None,
    jobs: int | None,
) -> None:
    """Scrub fixtures, and the banks that lie beside them, into a folder.

    IN is a name, a file, a folder or a pattern. Every result is looked at once more before it is
    written; one in which anything is still found is not written, and the command exits with 1.
    The report on what was replaced is for a person to read: rules find much, not everything.
    """
    pseudonyms = Pseudonyms.of_file(key_file) if key_file else Pseudonyms((key or "").encode())
    files = [Input(str(path), named=True) for path in find_fixtures(inputs)]
    out.mkdir(parents=True, exist_ok=True)
    total = Report()
    refused = 0
    written: dict[Path, Path] = {}
    data: list[dict[str, Any]] = []
    with Workers(partial(_Worker, settings, pseudonyms, model), files, jobs, passes=2) as workers:
        for _, read in workers.each("learn", _Worker.learn, files):
            list(read)  # a name that one file gives away is replaced in all of them
        workers.all(_Worker.teach, workers.all(_Worker.taught))
        for file, results in workers.each("scrub", _Worker.scrub, files):
            path = file.path
            (done,) = results
            total.add(done.report)
            data.append({"file": str(path), "replaced": done.report.as_data()})
            for line in done.notes:
                click.echo(line, err=True)
            if done.fixture is None:
                refused += 1
                continue
            # The stem of the file to write is that of the input, scrubbed as well.
            target = out / f"{done.stem or 'fixture'}.json"
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
    click.echo("\n".join(("", *total.table())))
    if report is not None:
        text = json.dumps({"files": data, "total": total.as_data()}, indent=1, ensure_ascii=False)
        write_whole(report, text + "\n")
    if refused:
        raise DataError(f"{refused} of {len(files)} not written: something is still found there")


@click.command(
    "audit",
    cls=CleanCommand,
    epilog=examples("audit fixtures/", "audit a.json --profile publish --names names.txt"),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@_with_settings
@jobs_option
def audit_command(settings: ScrubSettings, paths: tuple[str, ...], jobs: int | None) -> None:
    """Look for anything that scrubbing would still change; exits with 1 if there is something.

    PATH is a name, a file, a folder or a pattern; banks that lie beside fixtures are read too.
    Says the field and the rule, and shows values only masked.
    """
    found: list[Path] = []
    for path in paths:
        if path.endswith(BANK_SUFFIX) and Path(path).is_file():
            found.append(Path(path))
            continue
        fixtures = find_fixtures([path])
        banks = map(_bank_beside, fixtures)
        found += [*fixtures, *(bank for bank in banks if bank)]
    files = [Input(str(path), named=True) for path in found]
    count = 0
    with Workers(partial(_Worker, settings, Pseudonyms()), files, jobs) as workers:
        for file, findings in workers.each("audit", _Worker.audit, files):
            for finding in findings:
                count += 1
                click.echo(f"{file.path}: {finding}")
    click.echo(f"{len(files)} audited: {count} findings")
    if count:
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _Done:
    """A scrubbed file and the bank beside it, as text; the fixture is None if it is refused."""

    report: Report
    notes: Sequence[str]
    stem: str = ""
    fixture: str | None = None
    bank: str | None = None


class _Worker:
    """Learns from files, scrubs and audits them."""

    def __init__(
        self, settings: ScrubSettings, pseudonyms: Pseudonyms, model: str | None = None
    ) -> None:
        self._settings, self._pseudonyms, self._model = settings, pseudonyms, model
        self._shared = TextPasses(settings, pseudonyms)

    def learn(self, file: Input) -> Iterator[None]:
        self._shared.learn_from(load_fixture(file.path))
        if bank_path := _bank_beside(file.path):
            self._shared.learn_from(load_bank(bank_path))
        yield

    def taught(self) -> Vocabulary:
        return self._shared.vocabulary

    def teach(self, taught: Sequence[Vocabulary]) -> None:
        self._shared.vocabulary = Vocabulary.of(taught)

    def scrub(self, file: Input) -> Iterator[_Done]:
        notes: list[str] = []
        scrubbed, bank = self._scrubbed_pair(file.path, notes)
        made = [made for made in (scrubbed.fixture, bank) if made is not None]
        if findings := [each for one in made for each in audit(one, self._settings, scrubbed)]:
            shown = [f"{file.path}: still found: {each}" for each in findings[:_MAX_FINDINGS]]
            if len(findings) > _MAX_FINDINGS:
                shown.append(f"{file.path}: and {len(findings) - _MAX_FINDINGS} more")
            yield _Done(scrubbed.report, notes + shown)
            return
        stem = re.sub(r"[^\w.,()@+~=-]", "-", scrubbed.scrub_text(file.path.stem)).lstrip(".")
        text = fixture_text(scrubbed.fixture)
        yield _Done(scrubbed.report, notes, stem, text, fixture_text(bank) if bank else None)

    def audit(self, file: Input) -> Iterator[str]:
        is_bank = file.path.name.endswith(BANK_SUFFIX)
        target = load_bank(file.path) if is_bank else load_fixture(file.path)
        yield from map(str, audit(target, self._settings))

    def _scrubbed_pair(self, path: Path, notes: list[str]) -> tuple[Scrubbed, ProbeBank | None]:
        """Scrub a file and the bank beside it; notes where facts of the bank no longer hold."""
        fixture = load_fixture(path)
        scrubbed = scrub(fixture, self._settings, self._pseudonyms, self._shared)
        if PARAPHRASE in self._settings.passes:
            rewrite = partial(paraphrase_first_message, scrubbed, self._pseudonyms, self._model)
            scrubbed = anyio.run(rewrite)
        refuse(f"{path}: after scrubbing", fixture_faults(scrubbed.fixture))
        bank_path = _bank_beside(path)
        if bank_path is None:
            return scrubbed, None
        before = load_bank(bank_path)
        refuse(str(bank_path), bank_faults(before, fixture))
        bank = scrub_bank(before, scrubbed)
        refuse(f"{bank_path}: after scrubbing", bank_faults(bank, scrubbed.fixture))
        known = {str(each) for each in bank_findings(before, fixture, bank_path, shipped=False)}
        for finding in bank_findings(bank, scrubbed.fixture, bank_path, shipped=False):
            if str(finding) not in known:
                notes.append(f"after scrubbing: {finding}")
        return scrubbed, bank


def _bank_beside(path: Path) -> Path | None:
    try:
        return find_bank(path, None)
    except DataError:
        return None
