"""One row per expected fact, epoch and probe of some logs: where each was lost."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Protocol

from compression_eval.analysis.logs import Log
from compression_eval.grading.facts import FactFinding, follow_facts
from compression_eval.grading.sample import Sample
from compression_eval.probing.record import SampleRecord


@dataclass(frozen=True)
class FactRow:
    """What became of one fact in one epoch."""

    log: str
    compressor: str
    fixture: str
    cut: int
    probe: str
    type: str
    fact: str
    epoch: int
    replicate: int
    """Which compression; epochs that share a state have the same."""
    stage: str
    region: str
    """Parts of the state that hold it, joined by ``+``; empty if none does."""
    fed: bool | None
    in_state: bool | None
    in_answer: bool | None
    instead: list[str]
    """Superseded values and variants that the state gives in its place."""
    age_messages: int | None
    """Messages from its first evidence to the cut."""
    age_share: float | None
    """The same as a share of the history, 0 to 1."""
    cycles: int | None
    """Compressions it has been through."""
    status: str
    """How the compression ended."""
    state_id: str


def fact_rows(logs: Sequence[Log]) -> list[FactRow]:
    """Return the rows of some logs, in the order of logs, samples and facts.

    Raises:
        DataError: A log cannot be read.
    """
    return [
        row
        for log in logs
        for sample, record in log.records()
        for row in rows_of_record(log, sample.epoch, record)
    ]


def rows_as_csv(rows: Sequence[FactRow]) -> str:
    """Return rows as CSV with a head line; what is not known is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(FactRow)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**asdict(row), "instead": "; ".join(row.instead)})
    return out.getvalue()


def rows_as_json(rows: Sequence[FactRow]) -> str:
    """Return rows as a JSON array of objects; what is not known is null."""
    return json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=1) + "\n"


class Named(Protocol):
    """What a row says of its log."""

    @property
    def name(self) -> str:
        """The file's name without folder and suffix."""

    @property
    def compressor(self) -> str:
        """Name of the strategy."""


def rows_of_record(log: Named, epoch: int, record: SampleRecord) -> Iterator[FactRow]:
    """Yield the rows of one sample, in the order of its probe's facts."""
    sample = Sample(record, [])
    failed = sample.compression_failure is not None
    findings = follow_facts(
        record.probe, sample.facts, sample.answer_text, record.language, failed=failed
    )
    for finding in findings:
        yield _row(log, epoch, record, finding)


def _row(log: Named, epoch: int, record: SampleRecord, finding: FactFinding) -> FactRow:
    kept, age = finding.record, finding.age(record.cut)
    return FactRow(
        log=log.name,
        compressor=log.compressor,
        fixture=record.fixture,
        cut=record.cut,
        probe=record.probe.id,
        type=record.probe.type,
        fact=finding.fact.fact,
        epoch=epoch,
        replicate=record.replicate,
        stage=finding.stage,
        region=finding.region,
        fed=kept.fed if kept else None,
        in_state=finding.in_state,
        in_answer=finding.in_answer,
        instead=finding.instead,
        age_messages=age.messages if age else None,
        age_share=round(age.share, 3) if age else None,
        cycles=kept.cycles if kept else None,
        status=record.state.status,
        state_id=record.state.state_id,
    )
