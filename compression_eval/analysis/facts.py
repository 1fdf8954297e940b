"""What became of every expected fact in logs: rows, exports and totals."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import get_args

from inspect_ai.scorer import Score

from compression_eval.facts.life import (
    AGE_GROUPS,
    AnswerWord,
    FactWords,
    Stage,
    StateWord,
    age_group,
    follow_facts,
)
from compression_eval.fixtures.banks import Probe, ProbeType
from compression_eval.fixtures.writing import versioned_json
from compression_eval.grading.rubric import value_markers
from compression_eval.grading.scored_sample import ScoredSample
from compression_eval.record import SampleRecord
from compression_eval.text.tables import Section, Table, as_text, table_lines


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


def words_in(scores: Mapping[str, Score] | None, probe: Probe) -> list[FactWords]:
    """Return the readers' words on a probe's facts, from its scores in the log.

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
        by_fact = {row["fact"]: FactWords.in_row(row) for row in rows}
        if any(words != FactWords() for words in by_fact.values()):
            return [by_fact.get(fact.fact, FactWords()) for fact in probe.expected_facts]
    return []


def rows_of_record(
    record: SampleRecord, epoch: int, words: Sequence[FactWords] = ()
) -> Iterator[FactRow]:
    """Yield the rows of one sample, in the order of its probe's facts; `log` is left empty."""
    sample = ScoredSample(record, [])
    failed = sample.compression_failure is not None
    findings = follow_facts(
        record.probe,
        sample.state.facts,
        sample.answer_text,
        value_markers(record.language),
        failed=failed,
        words=words,
    )
    for finding in findings:
        kept, age, state = finding.record, finding.age(record.cut), finding.words.state
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
            in_answer_read=finding.words.answer,
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
    """Return the rows themselves as a table, the columns that tell most."""
    heads = (
        *("fixture", "probe", "fact", "epoch", "stage", "region", "read"),
        *("ago", "cycles", "instead"),
    )
    lines = [
        (
            *(row.fixture, row.probe, row.fact, str(row.epoch), row.stage, row.region),
            row.in_state_read or "",
            "" if row.age_messages is None else f"{row.age_messages} ({row.age_share:.0%})",
            "" if row.cycles is None else str(row.cycles),
            ", ".join(row.instead),
        )
        for row in rows
    ]
    return "\n".join(table_lines(Table(heads, lines, names=len(heads)), whole=True))


def totals(rows: Sequence[FactRow], arms: Mapping[str, str]) -> str:
    """Return the totals of some rows for a terminal, against type, region, age, cycles and arm."""
    sections = [Section("", [[_states(rows), *_agreement(rows)]])]
    if len(set(arms.values())) > 1:
        sections.append(_by_arm(rows, arms))
    sections += [
        _crossed("by probe type", rows, lambda row: row.type, get_args(ProbeType)),
        _crossed("by region of the state", rows, lambda row: row.region or "none", ("none",)),
        _crossed(
            "by age (part of the history)", rows, lambda row: age_group(row.age_share), AGE_GROUPS
        ),
        _crossed("by cycles", rows, lambda row: str(row.cycles) if row.cycles else "unknown", ()),
    ]
    return as_text(sections).removesuffix("\n")


def _states(rows: Sequence[FactRow]) -> str:
    states = {(row.log, row.state_id): row.status for row in rows}
    failed = Counter(status for status in states.values() if status != "ok")
    text = f"{_counted(len(rows), 'fact')} in {_counted(len(states), 'state')}"
    if failed:
        kinds = ", ".join(f"{status} {count}" for status, count in sorted(failed.items()))
        text += f", of which {failed.total()} failed ({kinds})"
    return text


def _agreement(rows: Sequence[FactRow]) -> list[str]:
    """Return how often look-up and reader agree on states that were read."""
    both = [row for row in rows if row.in_state is not None and row.in_state_read is not None]
    if not both:
        return []
    same = sum(row.in_state == (row.in_state_read != "absent") for row in both)
    only = Counter(row.in_state for row in both if row.in_state == (row.in_state_read == "absent"))
    return [
        f"look-up and reader agree on the state for {same} of {_counted(len(both), 'fact')} "
        f"({same / len(both):.0%}); found by look-up only {only[True]}, by the reader only "
        f"{only[False]}"
    ]


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


def _by_arm(rows: Sequence[FactRow], arms: Mapping[str, str]) -> Section:
    """Return a table of counts with the arms, whose names are long, as lines."""
    counts = Counter((arms[row.log], row.stage) for row in rows)
    stages = [stage for stage in get_args(Stage) if any(counts[arm, stage] for arm, _ in counts)]
    lines = [
        (arm, *(str(counts[arm, stage] or "-") for stage in stages))
        for arm in dict.fromkeys(arms.values())
    ]
    heads = ("arm", *(stage.replace("_", " ") for stage in stages))
    return Section("by arm:", [Table(heads, lines)])
