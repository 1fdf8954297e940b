"""Scrub, and audit, fixtures with the banks that belong to them.

Everything is read twice: a name that one file gives away is replaced in all of them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio

from compression_eval.conversations.corpus import Row, Shard, Work, bank_of, fixtures_in
from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.scrubber import (
    NotScrubbedError,
    Scrubbed,
    audit,
    paraphrase_first_message,
    scrub,
    scrub_bank,
)
from compression_eval.conversations.scrubbing.settings import PARAPHRASE, ScrubSettings
from compression_eval.conversations.scrubbing.texts import Report, TextPasses
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary
from compression_eval.conversations.sources import Input
from compression_eval.engine import Shared
from compression_eval.errors import DataError
from compression_eval.fixtures.banks import ProbeBank, bank_faults
from compression_eval.fixtures.checking import bank_findings
from compression_eval.fixtures.finding_files import BANK_SUFFIX
from compression_eval.fixtures.loading import FixtureSource, load_bank, refuse
from compression_eval.fixtures.models import Fixture, fixture_faults
from compression_eval.fixtures.parquet_files import row_of
from compression_eval.fixtures.writing import fixture_text

_MAX_FINDINGS = 20


@dataclass(frozen=True)
class Done:
    """A scrubbed fixture and its bank, as text; the fixture is None if it cannot be scrubbed."""

    report: Report
    notes: Sequence[str]
    stem: str = ""
    fixture: str | None = None
    bank: str | None = None


@dataclass(frozen=True)
class AllScrubbed:
    """What became of the fixtures that were scrubbed."""

    reports: Sequence[tuple[str, Report]]
    """What was replaced in each, by where it is."""
    refused: Sequence[str]
    """Where those are that were not written, since something is still found there."""

    @property
    def failed(self) -> str:
        """What is said if some were not written."""
        if not self.refused:
            return ""
        told = f"{len(self.refused)} of {len(self.reports)} not written"
        return f"{told}: something is still found there: {', '.join(self.refused)}"


@dataclass(frozen=True)
class Scrubbing:
    """How a corpus is scrubbed."""

    settings: ScrubSettings
    pseudonyms: Pseudonyms
    model: str | None = None
    """For a paraphrase."""

    def run(self, work: Work, say: Callable[[str], None]) -> AllScrubbed:
        """Scrub the fixtures of a corpus with their banks.

        Args:
            work: The corpus.
            say: Prints a note.

        Raises:
            DataError: As `Work.stage`; or two fixtures have one name when they are scrubbed.
        """
        reports: list[tuple[str, Report]] = []
        refused: list[str] = []
        written: dict[str, str] = {}
        with work.opened():
            for shard in work.stage("scrub", partial(_scrub, self, _taught(self, work))):
                take = work.taker(shard, "scrub")
                for origin, name, done in shard.results("scrub"):
                    reports.append((origin, done.report))
                    for line in done.notes:
                        say(line)
                    if name is None:
                        refused.append(origin)
                        continue
                    if work.keeps and name in written:
                        raise DataError(
                            f"{origin}: its scrubbed name is that of {written[name]}; rename one"
                        )
                    take(name, origin)
                    written[name] = origin
            scrubbed = AllScrubbed(reports, refused)
            work.close("scrub", scrubbed.failed)
        return scrubbed

    def audit(self, work: Work) -> tuple[int, list[str]]:
        """Return how many fixtures and banks were audited, and what was found."""
        found: list[str] = []
        count = 0
        for shard in work.stage("audit", partial(_audit, self, _taught(self, work))):
            for lines in shard.results("audit"):
                count += 1
                found += lines
        return count, found

    def passes(self, taught: Shared | None = None) -> TextPasses:
        """Return passes that know what all conversations taught."""
        passes = TextPasses(self.settings, self.pseudonyms)
        if taught:
            passes.vocabulary = taught.get()
        return passes


def _taught(scrubbing: Scrubbing, work: Work) -> Shared:
    shards = work.stage("learn", partial(_learn, scrubbing))
    learnt = (each for shard in shards for each in shard.results("learn"))
    return work.engine.share(Vocabulary.of(learnt))


def _learn(scrubbing: Scrubbing, shard: Shard) -> Iterator[Vocabulary]:
    passes = scrubbing.passes()
    for file in shard.items:
        for _, held in _held(file):
            passes.learn_from(held)
    yield passes.vocabulary


def _audit(scrubbing: Scrubbing, taught: Shared, shard: Shard) -> Iterator[list[str]]:
    passes = scrubbing.passes(taught)
    for file in shard.items:
        for place, held in _held(file):
            found = audit(held, scrubbing.settings, shared=passes)
            yield [f"{place}: {finding}" for finding in found]


def _held(file: Input) -> Iterator[tuple[str, Fixture | ProbeBank]]:
    """Yield the fixtures and banks of a file, and where they are."""
    if file.path.name.endswith(BANK_SUFFIX):
        yield file.place, load_bank(file.path)
        return
    for source in fixtures_in([file]):
        yield source.origin, source.read_fixture()
        if found := bank_of(source):
            yield found.origin, found.bank


def _scrub(
    scrubbing: Scrubbing, taught: Shared, shard: Shard
) -> Iterator[tuple[str, str | None, Done] | Row]:
    """Yield of each fixture where it was, its name, and all else; and its row."""
    worker = _Scrubber(scrubbing, scrubbing.passes(taught))
    for source in fixtures_in(shard.items):
        done, fixture, bank = worker.scrubbed(source)
        name = None
        if done.fixture is not None and fixture is not None:
            name = fixture.name
            yield Row(row_of(fixture, done.fixture, bank, done.bank, file=done.stem or "fixture"))
        yield source.origin, name, replace(done, fixture=None, bank=None)


class _Scrubber:
    def __init__(self, scrubbing: Scrubbing, passes: TextPasses) -> None:
        self._settings, self._pseudonyms = scrubbing.settings, scrubbing.pseudonyms
        self._model, self._shared = scrubbing.model, passes

    def scrubbed(self, source: FixtureSource) -> tuple[Done, Fixture | None, ProbeBank | None]:
        """Return what is written of a fixture, and the fixture and its bank themselves."""
        notes: list[str] = []
        try:
            scrubbed, bank = self._scrubbed_pair(source, notes)
        except NotScrubbedError as error:
            return Done(Report(), [f"{source.origin}: {error}"]), None, None
        made = [made for made in (scrubbed.fixture, bank) if made is not None]
        if findings := [each for one in made for each in audit(one, self._settings, scrubbed)]:
            shown = [f"{source.origin}: still found: {each}" for each in findings[:_MAX_FINDINGS]]
            if len(findings) > _MAX_FINDINGS:
                shown.append(f"{source.origin}: and {len(findings) - _MAX_FINDINGS} more")
            return Done(scrubbed.report, notes + shown), scrubbed.fixture, bank
        stem = re.sub(r"[^\w.,()@+~=-]", "-", scrubbed.scrub_text(source.stem)).lstrip(".")
        text, bank_text = fixture_text(scrubbed.fixture), fixture_text(bank) if bank else None
        done = Done(scrubbed.report, notes, stem, text, bank_text)
        return done, scrubbed.fixture, bank

    def _scrubbed_pair(
        self, source: FixtureSource, notes: list[str]
    ) -> tuple[Scrubbed, ProbeBank | None]:
        """Scrub a fixture and its bank; notes where facts of the bank no longer hold."""
        fixture = source.read_fixture()
        scrubbed = scrub(fixture, self._settings, self._pseudonyms, self._shared)
        if PARAPHRASE in self._settings.passes:
            rewrite = partial(paraphrase_first_message, scrubbed, self._pseudonyms, self._model)
            scrubbed = anyio.run(rewrite)
        refuse(f"{source.origin}: after scrubbing", fixture_faults(scrubbed.fixture))
        found = bank_of(source)
        if found is None:
            return scrubbed, None
        before, place = found.bank, found.origin
        refuse(place, bank_faults(before, fixture))
        bank = scrub_bank(before, scrubbed)
        refuse(f"{place}: after scrubbing", bank_faults(bank, scrubbed.fixture))
        known = {str(each) for each in bank_findings(before, fixture, place, shipped=False)}
        for finding in bank_findings(bank, scrubbed.fixture, place, shipped=False):
            if str(finding) not in known:
                notes.append(f"after scrubbing: {finding}")
        return scrubbed, bank
