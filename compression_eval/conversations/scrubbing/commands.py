"""``compression-eval scrub`` and ``compression-eval audit``."""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import click

from compression_eval.conversations.scrubbing.pseudonyms import DEFAULT_KEY, Pseudonyms
from compression_eval.conversations.scrubbing.report import Report
from compression_eval.conversations.scrubbing.scrubber import (
    AuditFinding,
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
from compression_eval.conversations.scrubbing.texts import TextPasses
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.checking import bank_findings
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.finding_files import BANK_SUFFIX, find_bank, find_fixtures
from compression_eval.fixtures.loading import load_bank, load_fixture
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.structure import bank_faults, fixture_faults
from compression_eval.fixtures.writing import fixture_text, write_whole
from compression_eval.terminal import CleanCommand, examples

_SHOWN_FINDINGS = 20
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _pass_options(function: _Function) -> _Function:
    """Add the options that choose passes and names."""
    options = (
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
            "--names",
            type=click.Path(path_type=Path),
            help="File with names that no rule can know, one to a line.",
        ),
        click.option(
            "--remote-owners", is_flag=True, help="Owners of git remotes are handles, too."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


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
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write to.")
@_pass_options
@click.option("--key", envvar="COMPRESSION_EVAL_SCRUB_KEY", help="Key of the stand-ins.")
@click.option("--key-file", type=click.Path(path_type=Path), help="File with that key.")
@click.option("--paraphrase", is_flag=True, help="A model rewrites the first user message.")
@click.option("--model", help="Model for --paraphrase; by default the one of Inspect's settings.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the report as JSON, too.")
def scrub_command(
    inputs: tuple[str, ...],
    out: Path,
    profile: str,
    skip: tuple[str, ...],
    only: tuple[str, ...],
    names: Path | None,
    remote_owners: bool,
    key: str | None,
    key_file: Path | None,
    paraphrase: bool,
    model: str | None,
    report: Path | None,
) -> None:
    """Scrub fixtures, and the banks that lie beside them, into a folder.

    IN is a name, a file, a folder or a pattern. Every result is looked at once more before it is
    written; one in which anything is still found is not written, and the command exits with 1.
    The report on what was replaced is for a person to read: rules find much, not everything.
    """
    settings = _settings(profile, skip, only, names, remote_owners, paraphrase=paraphrase)
    pseudonyms = Pseudonyms(_key(key, key_file))
    files = find_fixtures(inputs)
    out.mkdir(parents=True, exist_ok=True)
    total = Report()
    refused = 0
    written: dict[Path, Path] = {}
    data: list[dict[str, Any]] = []
    shared = _learnt(files, settings, pseudonyms)
    for number, path in enumerate(files, 1):
        click.echo(f"{number}/{len(files)} {path}", err=True)
        scrubbed, bank = _scrubbed_pair(path, settings, pseudonyms, model, shared)
        total.add(scrubbed.report)
        data.append({"file": str(path), "replaced": scrubbed.report.as_data()})
        if findings := _refusals(scrubbed, bank):
            refused += 1
            _show(path, findings)
            continue
        target = out / f"{_file_name(path, scrubbed)}.json"
        _refuse_target(target, path, files, written)
        _write(target, scrubbed, bank)
        written[target] = path
        click.echo(f"wrote {target}" + (f" and {_bank_path(target)}" if bank else ""))
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
@_pass_options
def audit_command(
    paths: tuple[str, ...],
    profile: str,
    skip: tuple[str, ...],
    only: tuple[str, ...],
    names: Path | None,
    remote_owners: bool,
) -> None:
    """Look for anything that scrubbing would still change; exits with 1 if there is something.

    PATH is a name, a file, a folder or a pattern; banks that lie beside fixtures are read too.
    Says the field and the rule, and shows values only masked.
    """
    settings = _settings(profile, skip, only, names, remote_owners)
    files = [file for path in paths for file in _to_audit(path)]
    count = 0
    for number, path in enumerate(files, 1):
        if len(files) > 1:
            click.echo(f"{number}/{len(files)} {path}", err=True)
        is_bank = path.name.endswith(BANK_SUFFIX)
        target: Fixture | ProbeBank = load_bank(path) if is_bank else load_fixture(path)
        for finding in audit(target, settings):
            count += 1
            click.echo(f"{path}: {finding}")
    click.echo(f"{len(files)} audited: {count} findings")
    if count:
        raise click.exceptions.Exit(1)


def _settings(
    profile: str,
    skip: Sequence[str],
    only: Sequence[str],
    names: Path | None,
    remote_owners: bool,
    *,
    paraphrase: bool = False,
) -> ScrubSettings:
    settings = ScrubSettings.of(
        profile,
        skip=skip,
        only=only,
        add=(PARAPHRASE,) if paraphrase else (),
        listed=read_names(names) if names else (),
        remote_owners=remote_owners,
    )
    _ = settings.scrubber  # a missing package shows before anything is read
    return settings


def _key(key: str | None, key_file: Path | None) -> bytes:
    if key_file is None:
        return key.encode() if key else DEFAULT_KEY
    found = key_file.read_bytes().strip()
    if not found:
        raise DataError(f"{key_file}: the key is empty")
    return found


def _learnt(files: Sequence[Path], settings: ScrubSettings, pseudonyms: Pseudonyms) -> TextPasses:
    """Read everything once: a name that one file gives away is replaced in all of them."""
    shared = TextPasses(settings, pseudonyms)
    for path in files:
        shared.learn_from(load_fixture(path))
        if bank_path := _bank_beside(path):
            shared.learn_from(load_bank(bank_path))
    return shared


def _scrubbed_pair(
    path: Path,
    settings: ScrubSettings,
    pseudonyms: Pseudonyms,
    model: str | None,
    shared: TextPasses,
) -> tuple[Scrubbed, ProbeBank | None]:
    """Scrub a file and the bank beside it; says where facts of the bank no longer hold."""
    fixture = load_fixture(path)
    scrubbed = scrub(fixture, settings, pseudonyms, shared)
    if PARAPHRASE in settings.passes:
        scrubbed = anyio.run(partial(paraphrase_first_message, scrubbed, pseudonyms, model))
    faults = [f"{path}: after scrubbing: {fault}" for fault in fixture_faults(scrubbed.fixture)]
    bank_path = _bank_beside(path)
    if bank_path is None or faults:
        _raise(faults)
        return scrubbed, None
    before = load_bank(bank_path)
    _raise([f"{bank_path}: {fault}" for fault in bank_faults(before, fixture)])
    bank = scrub_bank(before, scrubbed)
    _raise([f"{bank_path}: after scrubbing: {f}" for f in bank_faults(bank, scrubbed.fixture)])
    known = {str(finding) for finding in bank_findings(before, fixture, bank_path, shipped=False)}
    for finding in bank_findings(bank, scrubbed.fixture, bank_path, shipped=False):
        if str(finding) not in known:
            click.echo(f"after scrubbing: {finding}", err=True)
    return scrubbed, bank


def _raise(faults: list[str]) -> None:
    if faults:
        raise DataError("\n".join(faults))


def _refusals(scrubbed: Scrubbed, bank: ProbeBank | None) -> list[AuditFinding]:
    """Return what is still found in what was made; it is written only if there is nothing."""
    findings = audit(scrubbed.fixture, scrubbed.settings, scrubbed)
    return findings + (audit(bank, scrubbed.settings, scrubbed) if bank else [])


def _show(path: Path, findings: list[AuditFinding]) -> None:
    for finding in findings[:_SHOWN_FINDINGS]:
        click.echo(f"{path}: still found: {finding}", err=True)
    if len(findings) > _SHOWN_FINDINGS:
        click.echo(f"{path}: and {len(findings) - _SHOWN_FINDINGS} more", err=True)


def _file_name(path: Path, scrubbed: Scrubbed) -> str:
    """Return the stem of the file to write: that of the input, scrubbed as well."""
    return re.sub(r"[^\w.,()@+~=-]", "-", scrubbed.scrub_text(path.stem)).lstrip(".") or "fixture"


def _refuse_target(
    target: Path, path: Path, files: Sequence[Path], written: dict[Path, Path]
) -> None:
    if target in written:
        raise DataError(f"{path}: {target} was just written for {written[target]}; rename one")
    if target.resolve() in {file.resolve() for file in files}:
        raise DataError(f"--out: {target} is an input; choose another folder")


def _write(target: Path, scrubbed: Scrubbed, bank: ProbeBank | None) -> None:
    """Write both files, the bank first: a fixture that is there has its bank."""
    if bank is not None:
        write_whole(_bank_path(target), fixture_text(bank))
    write_whole(target, fixture_text(scrubbed.fixture))


def _bank_path(target: Path) -> Path:
    return target.with_name(target.stem + BANK_SUFFIX)


def _bank_beside(path: Path) -> Path | None:
    try:
        return find_bank(path, None)
    except DataError:
        return None


def _to_audit(path: str) -> list[Path]:
    if path.endswith(BANK_SUFFIX) and Path(path).is_file():
        return [Path(path)]
    fixtures = find_fixtures([path])
    banks = (_bank_beside(fixture) for fixture in fixtures)
    return [*fixtures, *(bank for bank in banks if bank is not None)]
