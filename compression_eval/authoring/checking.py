"""Check a bank beyond what `fixtures.bank_checks` finds: what makes a probe a poor measure."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import anyio

from compression_eval.authoring.checking_alternatives import alternative_findings
from compression_eval.authoring.checking_coverage import (
    Coverage,
    coverage,
    coverage_findings,
    region_findings,
)
from compression_eval.authoring.checking_redaction import redaction_findings
from compression_eval.authoring.checking_scrubber import ScrubbedCopy, scrubber_findings
from compression_eval.authoring.checking_types import type_findings
from compression_eval.authoring.history import TAIL_TOKENS, History, histories
from compression_eval.fixtures.bank_checks import bank_findings
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.checking import is_shipped, unknown_fields
from compression_eval.fixtures.cuts import resolve_cut
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.errors import DataError, shorten
from compression_eval.fixtures.findings import Finding
from compression_eval.fixtures.loading import FixtureWithBank
from compression_eval.fixtures.verdicts import valid_qualification, verdict


@dataclass(frozen=True)
class BankReport:
    """What a check of one bank found."""

    findings: list[Finding]
    coverage: Coverage
    left_out: str = ""
    """Why the scrubber could not be asked; empty if it was."""


def check_bank(pair: FixtureWithBank, *, tail_tokens: int = TAIL_TOKENS) -> BankReport:
    """Return what is wrong with a bank, and what it covers.

    A probe without a cut of its own is looked at where the conversation ends.

    Args:
        pair: Loaded, and so structurally sound.
        tail_tokens: Budget of the tail that is taken to be kept verbatim.
    """
    fixture, bank = pair.fixture, pair.bank
    language = bank.language or fixture.language
    shipped = is_shipped(pair.fixture_path)
    findings = list(bank_findings(bank, fixture, pair.bank_path, shipped=shipped))
    findings.extend(unknown_fields(bank, pair.bank_path))
    placed = _placed(pair, tail_tokens)
    fixture_digest = digest(fixture)
    copy, left_out = _scrubbed(pair)
    rows = []
    for position, (probe, history) in enumerate(placed):
        # A probe without a cut of its own may have been put at any; its verdict says at which.
        cut = probe.cut or (probe.qualification.cut if probe.qualification else history.cut)
        valid = valid_qualification(probe, fixture_digest, cut)
        rows.append((probe, history, verdict(valid)))
        where = f"{pair.bank_path}: probes[{position}] ({shorten(probe.id)})"
        for finding in (
            *region_findings(probe, history),
            *alternative_findings(probe, history, language),
            *redaction_findings(probe, history),
            *(scrubber_findings(probe, history, copy) if copy else ()),
            *type_findings(probe, language),
            *_verdict_findings(probe, stale=valid is None),
        ):
            findings.append(Finding(finding.severity, where + finding.where, finding.text))
    covered = coverage(rows)
    for finding in coverage_findings(covered):
        findings.append(Finding(finding.severity, f"{pair.bank_path}: probes", finding.text))
    return BankReport(findings, covered, left_out)


def _scrubbed(pair: FixtureWithBank) -> tuple[ScrubbedCopy | None, str]:
    """Return a scrubbed copy, or why there is none: its rules are an optional package."""
    try:
        return ScrubbedCopy(pair.fixture), ""
    except DataError as error:
        return None, f"{pair.fixture_path}: facts were not held against the scrubber: {error}"


def _placed(pair: FixtureWithBank, tail_tokens: int) -> list[tuple[Probe, History]]:
    """Return each probe with the history before its cut."""
    end = resolve_cut(pair.fixture, "end")
    by_cut: dict[int, list[Probe]] = defaultdict(list)
    for probe in pair.bank.probes:
        by_cut[probe.cut or end].append(probe)
    cuts = sorted(by_cut)
    found = anyio.run(histories, pair.fixture, cuts, tail_tokens)
    at = dict(zip(cuts, found, strict=True))
    return [(probe, at[probe.cut or end]) for probe in pair.bank.probes]


def _verdict_findings(probe: Probe, *, stale: bool) -> Iterator[Finding]:
    found = probe.qualification
    if found is None:
        return
    if stale:
        text = "the verdict is out of date: fixture, probe or cut have changed; qualify it again"
        yield Finding("warning", ".qualification", text)
    elif not found.full.passes:
        text = f"not qualified: the full history passes {found.full.passed} of {found.full.runs}"
        yield Finding("warning", ".qualification", text)
    elif not found.qualified:
        text = f"not qualified: nothing at all passes {found.none.passed} of {found.none.runs}"
        yield Finding("warning", ".qualification", text)
