"""``compression-eval scrub`` and ``compression-eval audit``.

Everything is read twice: first to learn, then to replace or to audit, since a name that one file
gives away is replaced in all of them. Every result is audited before it is written.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import anyio
import click

from compression_eval.conversations.corpus import (
    Corpus,
    Row,
    Shard,
    Shared,
    Work,
    Write,
    bank_of,
    fixture_files,
    fixtures_in,
    say_done_before,
    shard_options,
)
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.scrubber import (
    audit,
    paraphrase_first_message,
    scrub,
    scrub_bank,
)
from compression_eval.conversations.scrubbing.texts import (
    DEFAULT_PROFILE,
    PARAPHRASE,
    PROFILES,
    Report,
    ScrubSettings,
    TextPasses,
    read_names,
)
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary
from compression_eval.conversations.sources import Input
from compression_eval.engine import Engine, jobs_option
from compression_eval.errors import DataError, NotScrubbedError
from compression_eval.fixtures.banks import ProbeBank, bank_faults
from compression_eval.fixtures.checking import bank_findings
from compression_eval.fixtures.finding_files import BANK_SUFFIX
from compression_eval.fixtures.loading import FixtureSource, load_bank, refuse
from compression_eval.fixtures.models import Fixture, fixture_faults
from compression_eval.fixtures.parquet_files import row_of
from compression_eval.fixtures.writing import fixture_text, write_whole
from compression_eval.terminal import CleanCommand, Output, check_output, examples

_PATH = click.Path(path_type=Path)
_MAX_FINDINGS = 20


def _with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose passes and names, and their settings."""

    @click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        default=DEFAULT_PROFILE,
        show_default=True,
        help="Set of passes.",
    )
    @click.option("--skip", multiple=True, metavar="PASS", help="Skip a pass. Repeatable.")
    @click.option("--names", type=_PATH, help="File with names to replace, one per line.")
    @wraps(function)
    def command(
        names: Path | None,
        skip: Sequence[str],
        profile: str,
        paraphrase: bool = False,
        **others: Any,
    ) -> None:
        add = (PARAPHRASE,) if paraphrase else ()
        listed = read_names(names) if names else ()
        settings = ScrubSettings.of(profile, skip=skip, add=add, listed=listed)
        settings.load()  # a missing package shows before anything is read
        function(settings=settings, **others)

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
    help="Output folder. With --engine or --shard-mb it may be an address.",
)
@_with_settings
@click.option(
    "--key", envvar="COMPRESSION_EVAL_SCRUB_KEY", help="Key from which stand-ins are made."
)
@click.option("--key-file", type=_PATH, help="File with that key.")
@click.option("--paraphrase", is_flag=True, help="A model rewrites the first user message.")
@click.option("--model", help="Model for --paraphrase. Default: Inspect's setting.")
@click.option("--report", type=Output(parents=True), help="Also write the report as JSON.")
@jobs_option
@shard_options
@click.option("--force", is_flag=True, help="With a corpus: replace existing output.")
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
    """Replace secrets and personal values in fixtures.

    IN is a name, a file, a folder or a pattern. Each result is audited before it is written. If
    anything is found, it is not written and is named at the end, and the exit code is 1. Read
    the report on what was replaced: rules do not find everything.
    """
    pseudonyms = Pseudonyms.of_file(key_file) if key_file else Pseudonyms((key or "").encode())
    work: Work
    if shard_bytes:
        if PARAPHRASE in settings.passes:
            raise DataError("--paraphrase: not with --engine or --shard-mb")
        made_by = {"command": "scrub", **settings.described(pseudonyms)}
        files = fixture_files(inputs)
        work = Corpus(out, made_by, files, engine, shard_bytes, force=force)
        if work.complete:
            say_done_before(f"{out}: this was scrubbed before; --force scrubs it again", report)
            return
    else:
        if force:
            raise DataError("--force: only with --engine or --shard-mb; else files are overwritten")
        check_output(Path(out), folder=True, parents=True)
        files = fixture_files(inputs)
        work = Work(files, engine, output=_files_in(Path(out), files))
    done = _run(work, _Scrubber(settings, pseudonyms, model))
    total = Report()
    for one in done:
        total.add(one.report)
    click.echo("\n".join(("", *total.table())))
    if report is not None:
        data = [{"file": one.origin, "replaced": one.report.as_data()} for one in done]
        text = json.dumps({"files": data, "total": total.as_data()}, indent=1, ensure_ascii=False)
        report.parent.mkdir(parents=True, exist_ok=True)
        write_whole(report, text + "\n")
    if failed := _failed(done):
        raise DataError(failed)


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
    """Report what scrubbing would still change in fixtures; exits with 1 if it finds any.

    PATH is a name, a file, a folder or a pattern. Banks next to fixtures are read too. The
    output names the field and the rule, and masks values.
    """
    files: list[Input] = []
    for path in paths:
        if path.endswith(BANK_SUFFIX) and Path(path).is_file():
            files.append(Input(path, named=True))
        else:
            files += fixture_files([path])
    scrubber = _Scrubber(settings, Pseudonyms())
    work = Work(files, engine, shard_bytes=shard_bytes)
    audited, found = 0, 0
    with work.opened():
        for shard in work.stage("audit", partial(scrubber.audit, scrubber.taught(work))):
            for lines in shard.results("audit"):
                audited, found = audited + 1, found + len(lines)
                for line in lines:
                    click.echo(line)
    click.echo(f"{audited} audited: {found} findings")
    if found:
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class Done:
    """What became of a fixture; the fixture itself is in a row, with its bank."""

    origin: str
    report: Report
    notes: Sequence[str]
    name: str | None = None
    """Of the scrubbed fixture; None if it is not written, since something is still found there."""


def _failed(done: Sequence[Done]) -> str:
    """Return the error if some fixtures were not written; nothing if all were."""
    refused = [one.origin for one in done if one.name is None]
    told = f"{len(refused)} of {len(done)} not written: something is still found there"
    return f"{told}: {', '.join(refused)}" if refused else ""


def _run(work: Work, scrubber: "_Scrubber") -> list[Done]:
    """Scrub fixtures with their banks; returns what became of each.

    Raises:
        DataError: As `Work.stage`; or two fixtures have one name when they are scrubbed.
    """
    everything: list[Done] = []
    written: dict[str, str] = {}
    with work.opened():
        for shard in work.stage("scrub", partial(scrubber.scrub, scrubber.taught(work))):
            take = work.taker(shard, "scrub")
            for done in shard.results("scrub"):
                everything.append(done)
                for line in done.notes:
                    click.echo(line, err=True)
                if done.name is None:
                    continue
                if work.keeps and done.name in written:
                    told = f"its scrubbed name is that of {written[done.name]}; rename one"
                    raise DataError(f"{done.origin}: {told}")
                take(done.name, done.origin)
                written[done.name] = done.origin
        work.close("scrub", _failed(everything))
    return everything


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


@dataclass(frozen=True)
class _Scrubber:
    """What workers do with a shard of the fixtures, in every stage."""

    settings: ScrubSettings
    pseudonyms: Pseudonyms
    model: str | None = None
    """For a paraphrase."""

    def taught(self, work: Work) -> Shared:
        """Return what all fixtures teach."""
        shards = work.stage("learn", self.learn)
        learnt = (each for shard in shards for each in shard.results("learn"))
        return work.share(Vocabulary.of(learnt))

    def learn(self, shard: Shard) -> Iterator[Vocabulary]:
        """Yield what a shard teaches."""
        passes = TextPasses(self.settings, self.pseudonyms)
        for _, target in _targets(shard):
            passes.learn_from(target)
        yield passes.vocabulary

    def audit(self, taught: Shared, shard: Shard) -> Iterator[list[str]]:
        """Yield what is found in each fixture and bank."""
        passes = self._passes(taught)
        for place, target in _targets(shard):
            found = audit(target, self.settings, shared=passes)
            yield [f"{place}: {finding}" for finding in found]

    def scrub(self, taught: Shared, shard: Shard) -> Iterator[Done | Row]:
        """Yield each fixture and its bank as a row, if they are clean, and what became of it."""
        passes = self._passes(taught)
        for source in fixtures_in(shard.items):
            try:
                yield from self._scrubbed(passes, source)
            except NotScrubbedError as error:
                yield Done(source.origin, Report(), [f"{source.origin}: {error}"])

    def _passes(self, taught: Shared) -> TextPasses:
        passes = TextPasses(self.settings, self.pseudonyms)
        passes.vocabulary = taught.get()
        return passes

    def _scrubbed(self, passes: TextPasses, source: FixtureSource) -> Iterator[Done | Row]:
        settings, fixture, origin = self.settings, source.read_fixture(), source.origin
        scrubbed = scrub(fixture, settings, self.pseudonyms, passes)
        if PARAPHRASE in settings.passes:
            rewrite = partial(paraphrase_first_message, scrubbed, self.pseudonyms, self.model)
            scrubbed = anyio.run(rewrite)
        refuse(f"{origin}: after scrubbing", fixture_faults(scrubbed.fixture))
        bank, notes = None, list[str]()
        if found := bank_of(source):
            refuse(found.origin, bank_faults(found.bank, fixture))
            bank = scrub_bank(found.bank, scrubbed)
            refuse(f"{found.origin}: after scrubbing", bank_faults(bank, scrubbed.fixture))
            # Facts that no longer contain are told.
            before, after = (
                [*map(str, bank_findings(each, of, found.origin, shipped=False))]
                for each, of in ((found.bank, fixture), (bank, scrubbed.fixture))
            )
            notes += [f"after scrubbing: {finding}" for finding in after if finding not in before]
        made = [each for each in (scrubbed.fixture, bank) if each is not None]
        if findings := [each for one in made for each in audit(one, settings, scrubbed)]:
            notes += [f"{origin}: still found: {each}" for each in findings[:_MAX_FINDINGS]]
            if len(findings) > _MAX_FINDINGS:
                notes.append(f"{origin}: and {len(findings) - _MAX_FINDINGS} more")
            yield Done(origin, scrubbed.report, notes)
            return
        stem = re.sub(r"[^\w.,()@+~=-]", "-", scrubbed.scrub_text(source.stem)).lstrip(".")
        text, bank_text = fixture_text(scrubbed.fixture), fixture_text(bank) if bank else None
        yield Row(row_of(scrubbed.fixture, text, bank, bank_text, file=stem or "fixture"))
        yield Done(origin, scrubbed.report, notes, scrubbed.fixture.name)


def _targets(shard: Shard) -> Iterator[tuple[str, Fixture | ProbeBank]]:
    """Yield the fixtures and banks of a shard, and where they are."""
    for file in shard.items:
        if file.path.name.endswith(BANK_SUFFIX):
            yield file.place, load_bank(file.path)
            continue
        for source in fixtures_in([file]):
            yield source.origin, source.read_fixture()
            if found := bank_of(source):
                yield found.origin, found.bank
