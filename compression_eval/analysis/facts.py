"""What became of every expected fact in logs: rows, exports and totals."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import get_args

from inspect_ai.scorer import Score

from compression_eval.facts.life import (
    AGE_GROUPS,
    AnswerWord,
    Stage,
    StateFinding,
    StateWord,
    age_group,
    follow_facts,
    row_words,
)
from compression_eval.fixtures.banks import ProbeType
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.scored_sample import ScoredSample
from compression_eval.record import SampleRecord
from compression_eval.text.tables import Section, Table, as_text, table_lines

STAGES: Mapping[Stage, str] = {
    "used": "in the answer, and in what the compression wrote",
    "verbatim": "in the answer, and in the state only because its messages were kept as they were",
    "unused": "in the state, but not in the answer",
    "survived": "in the state; there is no answer",
    "answered_not_found": "answered though not found in the state",
    "never_fed": "lost: no summarising call was shown it",
    "superseded": "lost: the state has an earlier value of it instead",
    "distorted": "lost: its name stands in the summary with another value",
    "dropped": "lost: a summarising call was shown it, and it is not in the state",
    "lost": "lost, by a strategy that calls no model",
    "answered": "in the answer; whether in the state is not known",
    "unanswered": "not in the answer; whether in the state is not known",
    "unknown": "neither state nor answer can be looked into",
    "not_in_history": "nowhere before the cut: a mistake of the probe bank",
    "compression_failed": "there is no state",
}
"""What became of a fact, for people."""

_COLUMNS = {
    "region": "parts of the state that hold it",
    "read": "what the reader says of the state",
    "ago": "messages from its first evidence to the cut (of the history)",
    "cycles": "compressions it has been through",
    "instead": "superseded values and variants that the state gives in its place",
}
"""Columns of a listing that do not speak for themselves."""


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
    """What the reader says of the state; None if it was not read or gave no word. `in_state`
    and `in_answer` are what look-ups found."""
    in_answer_read: AnswerWord | None
    """The grader's word on the answer."""
    state_quotes: list[str]
    """Passages of the state that support the reader's word."""
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


def rows_of_sample(
    record: SampleRecord, epoch: int, scores: Mapping[str, Score] | None
) -> Iterator[FactRow]:
    """Yield the rows of one sample, in the order of its probe's facts.

    Look-ups in the answer and readers' words are those in the scores of `fact_retention`; the words
    are of its first scoring in which a reader said anything. Stages are told anew, so that names of
    older versions (``guessed`` for ``answered_not_found``) do not come up.

    Args:
        record: What the sample's store holds.
        epoch: The sample's.
        scores: Of the sample, by scorer.
    """
    sample, names = ScoredSample(record, []), [fact.fact for fact in record.probe.expected_facts]
    words: list[tuple[StateFinding | None, AnswerWord | None]] = []
    looked_up: list[bool | None] = []
    for name, score in (scores or {}).items():
        found = (score.metadata or {}).get("facts")
        if not name.startswith("fact_retention") or not isinstance(found, list):
            continue
        by_fact = {row["fact"]: row for row in found}
        own = [row_words(by_fact.get(name, {})) for name in names]
        if not words and any(each != (None, None) for each in own):
            words = own
        answers = [by_fact.get(name, {}).get("in_answer") for name in names]
        if not looked_up and None not in answers:
            looked_up = answers
    findings = follow_facts(
        record.probe,
        sample.state.facts,
        sample.answer_text,
        failed=sample.compression_failure is not None,
        read=[read for read, _ in words],
        graded=[graded for _, graded in words],
    )
    if looked_up and sample.answer_text is not None:
        pairs = zip(findings, looked_up, strict=True)
        findings = [replace(finding, in_answer=found) for finding, found in pairs]
    for finding in findings:
        kept, age, state = finding.record, finding.age(record.cut), finding.read
        yield FactRow(
            log="",
            compressor="",
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
            in_state_read=state.word if state else None,
            in_answer_read=finding.graded,
            state_quotes=list(state.quotes) if state else [],
            instead=finding.instead,
            age_messages=age.messages if age else None,
            age_share=round(age.share, 3) if age else None,
            cycles=kept.cycles if kept else None,
            status=record.state.status,
            state_id=record.state.state_id,
        )


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


def listing(rows: Sequence[FactRow]) -> str:
    """Return the rows themselves as a table, the columns that tell most, and what these mean."""
    heads = ("fixture", "probe", "fact", "epoch", "stage", *_COLUMNS)
    lines = [
        (
            *(row.fixture, row.probe, row.fact, str(row.epoch), row.stage, row.region),
            row.in_state_read or "",
            "" if row.age_messages is None else f"{row.age_messages} ({row.age_share:.0%})",
            "" if row.cycles is None else str(row.cycles),
            ", ".join(row.instead),
        )
        for row in sorted(rows, key=lambda row: (row.log, row.fixture, row.probe))
    ]
    columns = [column for column in zip(heads, *lines, strict=True) if any(column[1:])]
    heads, *lines = zip(*columns, strict=True)
    legend = [(name, meaning) for name, meaning in _COLUMNS.items() if name in heads]
    return "\n".join(
        [
            *table_lines(Table(heads, lines, names=len(heads)), whole=True),
            "",
            *table_lines(Table(("column", "of the fact"), legend, texts=(1,)), longest=80),
        ]
    )


def totals(rows: Sequence[FactRow], arms: Mapping[str, str]) -> str:
    """Return the totals of some rows for a terminal, against type, region, age, cycles and arm."""
    states = {(row.log, row.state_id): row.status for row in rows}
    failed = Counter(status for status in states.values() if status != "ok")
    lines = [f"{_counted(len(rows), 'fact')} in {_counted(len(states), 'state')}"]
    if failed:
        kinds = ", ".join(f"{status} {count}" for status, count in sorted(failed.items()))
        lines[0] += f", of which {failed.total()} failed ({kinds})"
    # How often look-up and reader agree on states that were read.
    both = [row for row in rows if row.in_state is not None and row.in_state_read is not None]
    if both:
        same = sum(row.in_state == (row.in_state_read != "absent") for row in both)
        only = Counter(
            row.in_state for row in both if row.in_state == (row.in_state_read == "absent")
        )
        lines.append(
            f"look-up and reader agree on the state for {same} of {_counted(len(both), 'fact')} "
            f"({same / len(both):.0%}); found by look-up only {only[True]}, by the reader only "
            f"{only[False]}"
        )
    sections = [Section("", [lines])]
    if len(set(arms.values())) > 1:
        counts = Counter((arms[row.log], row.stage) for row in rows)
        stages = [s for s in get_args(Stage) if any(counts[arm, s] for arm, _ in counts)]
        cells = [
            (arm, *(str(counts[arm, stage] or "-") for stage in stages))
            for arm in dict.fromkeys(arms.values())
        ]
        # Arms, whose names are long, are lines.
        heads = ("arm", *(stage.replace("_", " ") for stage in stages))
        sections.append(Section("by arm:", [Table(heads, cells)]))
    sections += [
        _crossed("by probe type", rows, lambda row: row.type, get_args(ProbeType)),
        _crossed("by region of the state", rows, lambda row: row.region or "none", ("none",)),
        _crossed(
            "by age (part of the history)", rows, lambda row: age_group(row.age_share), AGE_GROUPS
        ),
    ]
    if len({row.cycles for row in rows}) > 1:
        cycles = _crossed("by cycles", rows, lambda row: str(row.cycles or "unknown"), ())
        sections.append(cycles)
    present = {row.stage for row in rows}
    said = [(stage, meaning) for stage, meaning in STAGES.items() if stage in present]
    sections.append(Section("", [Table(("stage", "of the fact"), said, texts=(1,))]))
    return as_text(sections).removesuffix("\n")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _crossed(
    title: str, rows: Sequence[FactRow], of: Callable[[FactRow], str], order: Sequence[str]
) -> Section:
    """Return a table of counts: stages as lines, the values of one property as columns."""
    counts = Counter((row.stage, of(row)) for row in rows)
    present = {column for _, column in counts}
    columns = [name for name in order if name in present] + sorted(present - set(order))
    lines = []
    for stage in get_args(Stage):
        cells = [counts[stage, column] for column in columns]
        if any(cells):
            lines.append((stage, str(sum(cells)), *(str(cell or "-") for cell in cells)))
    sums = [sum(counts[stage, column] for stage in get_args(Stage)) for column in columns]
    lines.append(("all", str(sum(sums)), *map(str, sums)))
    return Section(f"{title}:", [Table(("stage", "facts", *columns), lines)])
