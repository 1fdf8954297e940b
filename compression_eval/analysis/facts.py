"""The expected facts in logs: what became of each, and what a correct answer costs.

`rows_of_sample` follows the facts of one sample from the history to the answer. `FactTotals` counts
rows by stage, and by stage within a group (probe type, region, age, cycles); the command ``facts``
prints these counts and the report draws them. An answer is correct if it states every expected
fact: `ways_of_answering` gives the tokens of such answers, from the state alone and with fetching.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from inspect_ai.scorer import Score

from compression_eval.facts.life import (
    AGE_GROUPS,
    AnswerWord,
    Stage,
    StateFinding,
    age_group,
    follow_facts,
    row_words,
)
from compression_eval.fixtures.banks import ProbeType
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.record import Recorded, SampleRecord
from compression_eval.text.tables import Cell, Section, Table, as_text, counted

if TYPE_CHECKING:
    from pandas import DataFrame, Series

STAGES: Mapping[Stage, str] = {
    "used": "in the answer, and in what the compression wrote",
    "verbatim": "in the answer, and in the state only because its messages were kept as they were",
    "unused": "in the state, but not in the answer",
    "survived": "in the state; there is no answer",
    "answered_not_found": "answered though not found in the state",
    "never_fed": "lost: no summarising call was shown it",
    "superseded": "lost: the state has an earlier value of it instead",
    "distorted": "lost: its name is in the summary with another value",
    "dropped": "lost: a summarising call was shown it, and it is not in the state",
    "lost": "lost, by a strategy that calls no model",
    "answered": "in the answer; whether in the state is not known",
    "unanswered": "not in the answer; whether in the state is not known",
    "unknown": "neither state nor answer can be looked into",
    "not_in_history": "not in the history before the cut: a mistake of the probe bank",
    "compression_failed": "there is no state",
}
"""What became of a fact, for people."""

_IN_STATE = ["used", "verbatim", "unused", "survived"]
_NOT_IN_STATE = [
    *("answered_not_found", "never_fed", "superseded", "distorted", "dropped", "lost"),
]

_LISTS = ("state_quotes", "instead", "found")

FACT_COLUMNS = (
    *("fixture", "cut", "probe", "type", "fact", "epoch", "replicate", "stage", "region", "fed"),
    *("in_state", "in_answer", "in_state_read", "in_answer_read", "state_quotes", "instead"),
    *("age_messages", "age_share", "cycles", "found", "status", "state_id"),
)
"""What is told of a fact in one epoch; `frames.facts_frame` says what each column is."""


def rows_of_sample(
    record: SampleRecord, epoch: int, scores: Mapping[str, Score] | None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one sample, in the order of its probe's facts.

    Look-ups in the answer and readers' words are those in the scores of `fact_retention`; the words
    are of its first scoring in which a reader said anything. Stages are told again, so that names
    of older versions (``guessed`` for ``answered_not_found``) do not come up.
    """
    sample, names = Recorded(record, []), [fact.fact for fact in record.probe.expected_facts]
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
        yield {
            "fixture": record.fixture,
            "cut": record.cut,
            "probe": record.probe.id,
            "type": record.probe.type,
            "fact": finding.fact.fact,
            "epoch": epoch,
            "replicate": record.replicate,
            "stage": finding.stage,
            "region": finding.region,
            "fed": kept.fed if kept else None,
            "in_state": finding.in_state,
            "in_answer": finding.in_answer,
            "in_state_read": state.word if state else None,
            "in_answer_read": finding.graded,
            "state_quotes": list(state.quotes) if state else [],
            "instead": finding.instead,
            "age_messages": age.messages if age else None,
            "age_share": round(age.share, 3) if age else None,
            "cycles": kept.cycles if kept else None,
            "found": list(kept.found) if kept else [],
            "status": record.state.status,
            "state_id": record.state.state_id,
        }


# ----- counts


def _age(facts: "DataFrame") -> "Series[str]":
    return facts["age_share"].map(lambda share: age_group(_known(share)))


def _cycles(facts: "DataFrame") -> "Series[str]":
    return facts["cycles"].map(lambda n: "unknown" if _known(n) is None else str(int(n)))


_GROUPS: Mapping[str, tuple[str, "Callable[[DataFrame], Series[str]]", Sequence[str]]] = {
    "type": ("by probe type", lambda facts: facts["type"], get_args(ProbeType)),
    "region": (
        "by region of the state",
        lambda facts: facts["region"].replace("", "none"),
        ("none",),
    ),
    "age": ("by age (part of the history)", _age, AGE_GROUPS),
    "cycles": ("by cycles", _cycles, ()),
}
"""What facts are counted by, with titles and the order of the groups."""


def _known(value: float | None) -> float | None:
    """Return a cell, which is NaN where a value is not known."""
    return None if value is None or math.isnan(value) else value


@dataclass(frozen=True)
class Share:
    """Facts that are in the state, of those for which it is known."""

    in_state: int
    known: int

    @property
    def share(self) -> float:
        """0 to 1; NaN if it is known of none."""
        return self.in_state / self.known if self.known else math.nan


class FactTotals:
    """Counts of facts by what became of them.

    Args:
        facts: Rows of `facts_frame`.
    """

    def __init__(self, facts: "DataFrame") -> None:
        self._facts = facts
        found = Counter(facts["stage"])
        self.stages: dict[str, int] = {
            stage: found[stage] for stage in get_args(Stage) if stage in found
        }
        """Facts by stage, in one order."""
        read = facts["in_state_read"].notna() & (facts["stage"] != "compression_failed")
        self.read = int(read.sum())
        """Facts on whose state a reader gave its word; the others were looked up."""
        both = facts[read & facts["in_state"].notna()]
        self.compared = Counter(
            zip(both["in_state"].astype(bool), both["in_state_read"] != "absent", strict=True)
        )
        """Facts whose state was read and looked up, by whether look-up and reader found them."""

    @property
    def contradicted(self) -> float | None:
        """Share of the facts with a grader's word that their answer contradicts; None without."""
        words = self._facts["in_answer_read"].dropna()
        return float((words == "contradicted").mean()) if len(words) else None

    def passed(self) -> dict[str, Share]:
        """Return the facts that the look-up found after each compression of a chain."""
        cells = self._facts.get("found", ())
        lives = [cell for cell in cells if isinstance(cell, list) and cell]
        longest = max(map(len, lives), default=0)
        after = {
            n: [life[n - 1] for life in lives if len(life) >= n] for n in range(1, longest + 1)
        }
        return {str(n): Share(sum(found), len(found)) for n, found in after.items()}

    @property
    def agreement(self) -> float | None:
        """Share of `compared` on which look-up and reader say the same; None if there are none."""
        same = self.compared[True, True] + self.compared[False, False]
        return same / self.compared.total() if self.compared else None

    def counts(self, name: str) -> "DataFrame":
        """Return the facts by stage and group: of ``type``, ``region``, ``age`` or ``cycles``."""
        from pandas import crosstab

        _, grouped, order = _GROUPS[name]
        groups = grouped(self._facts)
        present = set(groups)
        others = sorted(present.difference(order), key=lambda group: (len(group), group))
        columns = [*(group for group in order if group in present), *others]
        counts = crosstab(self._facts["stage"], groups)
        return counts.reindex(index=list(STAGES), columns=columns, fill_value=0)

    def shares(self, name: str) -> dict[str, Share]:
        """Return the facts that are in the state by group, where there is a state to look into.

        A fact that is not said before the cut is a mistake of the bank and is left out.
        """
        counts = self.counts(name)
        sums = zip(
            counts, counts.loc[_IN_STATE].sum(), counts.loc[_NOT_IN_STATE].sum(), strict=True
        )
        return {
            str(group): Share(int(held), int(held + lost))
            for group, held, lost in sums
            if held + lost
        }

    def table(self, name: str) -> Section:
        """Return the counts with stages as lines and groups as columns."""
        counts = self.counts(name).loc[list(self.stages)]
        lines = [
            (stage, str(number), *(str(count or "-") for count in counts.loc[stage]))
            for stage, number in self.stages.items()
        ]
        lines.append(("all", str(len(self._facts)), *map(str, counts.sum())))
        heads = ("stage", "facts", *map(str, counts))
        return Section(f"{_GROUPS[name][0]}:", [Table(heads, lines)])


def meanings(stages: Iterable[str]) -> Table:
    """Return what stages mean."""
    present = set(stages)
    said = [(stage, meaning) for stage, meaning in STAGES.items() if stage in present]
    return Table(("stage", "of the fact"), said, texts=(1,))


# ----- output of the command


def rows_as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a head line; what is not known is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, ("log", "compressor", *FACT_COLUMNS), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, **{k: "; ".join(map(str, row[k])) for k in _LISTS}})
    return out.getvalue()


def totals(rows: Sequence[Mapping[str, Any]], arms: Mapping[str, str]) -> str:
    """Return the totals of some rows for a terminal; `arms` names the arm of each log."""
    from pandas import DataFrame

    facts = DataFrame(rows)
    every = FactTotals(facts)
    states = facts.drop_duplicates(["log", "state_id"], keep="last")["status"]
    failed = Counter(states[states != "ok"])
    lines = [f"{counted(len(facts), 'fact')} in {counted(len(states), 'state')}"]
    if failed:
        kinds = ", ".join(f"{status} {count}" for status, count in sorted(failed.items()))
        lines[0] += f", of which {failed.total()} failed ({kinds})"
    if every.agreement is not None:
        compared = every.compared
        same = compared[True, True] + compared[False, False]
        lines.append(
            f"look-up and reader agree on the state for {same} of "
            f"{counted(compared.total(), 'fact')} ({every.agreement:.0%}); found by look-up only "
            f"{compared[True, False]}, by the reader only {compared[False, True]}"
        )
    sections = [Section("", [lines])]
    if len(set(arms.values())) > 1:
        by_arm = facts["log"].map(arms)
        # Arms, whose names are long, are lines.
        counts = [
            (arm, Counter(facts.loc[by_arm == arm, "stage"]))
            for arm in dict.fromkeys(arms.values())
        ]
        cells = [(arm, *(str(own[stage] or "-") for stage in every.stages)) for arm, own in counts]
        heads = ("arm", *(stage.replace("_", " ") for stage in every.stages))
        sections.append(Section("by arm:", [Table(heads, cells)]))
    names = [name for name in _GROUPS if name != "cycles" or _cycles(facts).nunique() > 1]
    sections += [every.table(name) for name in names]
    sections.append(Section("", [meanings(every.stages)]))
    return as_text(sections).removesuffix("\n")


# ----- tokens of a correct answer


ALONE, FETCHING = "state alone", "with fetching"

SPENDING_NOTE = (
    "Tokens of all requests of an answer, input and output, as the provider tells; correct are "
    "answers that state every expected fact and no superseded or forbidden value as current; such "
    "values are only looked for where a language model graded. "
    "Tokens per correct answer = mean tokens / share correct, over conversations; answers that "
    "failed are left out, and so is what the compression took."
)

_KEYS = ["arm", "log", "fixture", "cut", "epoch", "probe_id"]

_MEASURED = [
    *(KNOWLEDGE, "fact_violations", "answer_all_tokens"),
    *("refetch_tokens", "refetch_calls", "refetch_correct", "refetch_knowledge"),
]


@dataclass(frozen=True)
class Spent:
    """The tokens and results of one way of answering; means over conversations."""

    answers: int
    tokens: float
    """Per answer."""
    correct: float
    """Share, 0 to 1."""
    knowledge: float | None
    """None if no answer was graded."""
    per_correct: float | None
    """Tokens per correct answer; None if none is correct."""
    calls: float | None = None
    """Tool calls per answer; None where there were no tools."""


def spending(
    arms: "Mapping[str, tuple[DataFrame, DataFrame]]",
) -> dict[str, dict[str, Spent]]:
    """Return the tokens of each arm's answers, by how they were given; empty if no arm fetched.

    Args:
        arms: By name, rows of `samples_frame`, and of `facts_frame` about the same samples.
    """
    spent = {name: ways_of_answering(*frames) for name, frames in arms.items()}
    return spent if any(FETCHING in ways for ways in spent.values()) else {}


def ways_of_answering(samples: "DataFrame", facts: "DataFrame") -> dict[str, Spent]:
    """Return the tokens of one arm's answers, by how they were given.

    Where a language model graded, its word decides, and facts without one are left out; elsewhere
    the look-up decides.
    """
    own = samples[[*_KEYS, *_MEASURED, "recall_by"]]
    known = facts.assign(probe_id=facts["probe"])[[*_KEYS, "in_answer", "in_answer_read"]]
    known = known.merge(own[[*_KEYS, "recall_by"]], on=_KEYS)
    by_model, word = known["recall_by"] == "grader", known["in_answer_read"]
    known["stated"] = (word == "stated").where(by_model, known["in_answer"].eq(True))
    known["judged"] = word.notna().where(by_model, known["in_answer"].notna())
    known = known[known["judged"] | ~by_model]
    every = known.groupby(_KEYS).agg({"stated": "all", "judged": "any"}).reset_index()
    rows = own.merge(every, on=_KEYS, how="left")
    flawless = rows["stated"].eq(True) & ~(rows["fact_violations"] > 0)
    right = flawless.astype(float).where(rows["judged"].eq(True))  # a failed answer is not wrong
    ways = {
        ALONE: rows.assign(tokens=rows["answer_all_tokens"], right=right, calls=math.nan),
        FETCHING: rows.assign(
            tokens=rows["refetch_tokens"],
            right=rows["refetch_correct"],
            calls=rows["refetch_calls"],
            **{KNOWLEDGE: rows["refetch_knowledge"]},
        ),
    }
    found = {}
    for way, answers in ways.items():
        answered = answers[answers["tokens"].notna() & answers["right"].notna()]
        if len(answered):
            of_fixture = answered.groupby("fixture")[["tokens", "right", KNOWLEDGE, "calls"]].mean()
            tokens, correct, graded, calls = map(float, of_fixture.mean())
            per_correct = tokens / correct if correct else None
            means = (tokens, correct, _known(graded), per_correct, _known(calls))
            found[way] = Spent(len(answered), *means)
    return found


def spending_table(arms: Mapping[str, Mapping[str, Spent]]) -> Table | None:
    """Return the tokens of each arm, a row for each way of answering; None without any arm."""
    if not arms:
        return None

    def shown(value: float | None, digits: str) -> str:
        return "–" if value is None else format(value, digits)

    heads = ["Arm", "Answered", "Answers", "Knowledge", "Correct", "Tokens per answer"]
    rows: list[list[str | Cell]] = [
        [
            arm,
            way,
            str(spent.answers),
            shown(spent.knowledge, ".2f"),
            f"{spent.correct:.0%}",
            f"{spent.tokens:,.0f}",
            shown(spent.per_correct, ",.0f"),
            shown(spent.calls, ".1f"),
        ]
        for arm, ways in arms.items()
        for way, spent in ways.items()
    ]
    return Table([*heads, "Tokens per correct answer", "Calls"], rows, texts=(1,))
