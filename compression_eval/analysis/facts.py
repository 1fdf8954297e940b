"""One row per expected fact, epoch and probe of some logs: where each was lost."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Protocol

from inspect_ai.scorer import Score

from compression_eval.analysis.logs import Log
from compression_eval.facts.life import AnswerWord, FactFinding, FactWords, StateWord, follow_facts
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.rubric import value_markers
from compression_eval.grading.sample import Sample
from compression_eval.record import SampleRecord


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
    in_state_read: StateWord | None
    """What the reader says of the state; None where it was not read or gave no word. `in_state`
    and `in_answer` are what look-ups found."""
    in_answer_read: AnswerWord | None
    """What the grader says of the answer."""
    state_quotes: list[str]
    """Passages of the state that the reader's word rests on."""
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
        for row in rows_of_record(log, sample.epoch, record, words_in(sample.scores, record.probe))
    ]


def rows_as_csv(rows: Sequence[FactRow]) -> str:
    """Return rows as CSV with a head line; what is not known is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(FactRow)], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        several = {name: "; ".join(getattr(row, name)) for name in ("state_quotes", "instead")}
        writer.writerow(asdict(row) | several)
    return out.getvalue()


def rows_as_json(rows: Sequence[FactRow]) -> str:
    """Return rows as objects in a JSON array named ``facts``; what is not known is null."""
    return versioned_json({"facts": [asdict(row) for row in rows]})


class Named(Protocol):
    """What a row says of its log."""

    @property
    def name(self) -> str:
        """The file's name without folder and suffix."""

    @property
    def compressor(self) -> str:
        """Name of the strategy."""


def words_in(scores: Mapping[str, Score] | None, probe: Probe) -> list[FactWords]:
    """Return what readers said of a probe's facts, as the log of its scores has it.

    It is that of the first scoring by `fact_retention` in which a reader said anything. Stages are
    not taken from there but told anew, so that names of older versions (``guessed`` for
    ``answered_not_found``) do not come up.

    Args:
        scores: Of one sample, by scorer.
        probe: The question with its expected facts.

    Returns:
        One for each fact, in the probe's order; empty where nothing was read.
    """
    for name, score in (scores or {}).items():
        rows = (score.metadata or {}).get("facts")
        if not name.startswith("fact_retention") or not isinstance(rows, list):
            continue
        said = {row["fact"]: FactWords.in_row(row) for row in rows}
        if any(words != FactWords() for words in said.values()):
            return [said.get(fact.fact, FactWords()) for fact in probe.expected_facts]
    return []


def rows_of_record(
    log: Named, epoch: int, record: SampleRecord, words: Sequence[FactWords] = ()
) -> Iterator[FactRow]:
    """Yield the rows of one sample, in the order of its probe's facts.

    Args:
        log: Where the sample is.
        epoch: Its epoch, from 1.
        record: What its store holds.
        words: What readers said of each fact, as `words_in` returns it.
    """
    sample = Sample(record, [])
    failed = sample.compression_failure is not None
    findings = follow_facts(
        record.probe,
        sample.facts,
        sample.answer_text,
        value_markers(record.language),
        failed=failed,
        words=words,
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
        in_state_read=finding.words.state.word if finding.words.state else None,
        in_answer_read=finding.words.answer,
        state_quotes=list(finding.words.state.quotes) if finding.words.state else [],
        instead=finding.instead,
        age_messages=age.messages if age else None,
        age_share=round(age.share, 3) if age else None,
        cycles=kept.cycles if kept else None,
        status=record.state.status,
        state_id=record.state.state_id,
    )
