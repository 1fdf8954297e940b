"""Scrub, and audit, fixtures with the banks that belong to them: what any process does of it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.scrubber import (
    AuditFinding,
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
from compression_eval.conversations.shards import bank_of, fixtures_in
from compression_eval.conversations.sources import Input
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.checking import bank_findings
from compression_eval.fixtures.finding_files import BANK_SUFFIX
from compression_eval.fixtures.loading import FixtureSource, load_bank, refuse
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.structure import bank_faults, fixture_faults
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


class ScrubWorker:
    """Learns from files, scrubs and audits them."""

    def __init__(
        self, settings: ScrubSettings, pseudonyms: Pseudonyms, model: str | None = None
    ) -> None:
        self._settings, self._pseudonyms, self._model = settings, pseudonyms, model
        self._shared = TextPasses(settings, pseudonyms)

    def learn(self, file: Input) -> Iterator[None]:
        """Learn from all that a file holds; yields nothing of use."""
        if file.path.name.endswith(BANK_SUFFIX):
            self._shared.learn_from(load_bank(file.path))
        else:
            for source in fixtures_in([file]):
                self._shared.learn_from(source.read_fixture())
                if found := bank_of(source):
                    self._shared.learn_from(found.bank)
        yield

    def taught(self) -> Vocabulary:
        """Return what this worker learnt."""
        return self._shared.vocabulary

    def teach(self, taught: Sequence[Vocabulary]) -> None:
        """Take what all workers learnt."""
        self._shared.vocabulary = Vocabulary.of(taught)

    def scrub(self, file: Input) -> Iterator[Done]:
        """Yield what a file holds, scrubbed."""
        for source in fixtures_in([file]):
            yield self.scrubbed(source)[0]

    def audit(self, file: Input) -> Iterator[str]:
        """Yield what is found in a fixture or a bank that has a file of its own."""
        if file.path.name.endswith(BANK_SUFFIX):
            yield from map(str, self.audited(load_bank(file.path)))
            return
        for source in fixtures_in([file]):
            yield from map(str, self.audited(source.read_fixture()))

    def audited(self, target: Fixture | ProbeBank) -> list[AuditFinding]:
        """Return what is still found in a fixture or a bank."""
        return audit(target, self._settings, shared=self._shared)

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
