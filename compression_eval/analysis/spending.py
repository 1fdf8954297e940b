"""Tokens per correct answer, from the state alone and with fetching.

An answer is correct if it states every expected fact, by the grader's word where there is one, else
by look-up, and gives no superseded or forbidden value as current. Its tokens are input and output
of all requests that led to it, as the provider tells: what the model was given of the state and the
question, and all that it fetched. What the compression itself took is not among them. Means are
over conversations, each counting the same.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.text.tables import Cell, Table

if TYPE_CHECKING:
    from pandas import DataFrame

ALONE, FETCHING = "state alone", "with fetching"

SPENDING_NOTE = (
    "Tokens of all requests of an answer, input and output, as the provider tells; correct are "
    "answers that state every expected fact and no superseded or forbidden value as current. "
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
    """What one way of answering takes and gives."""

    answers: int
    tokens: float
    """Mean per answer."""
    correct: float
    """Share, 0 to 1."""
    knowledge: float | None
    """None if no answer was graded."""
    per_correct: float | None
    """Tokens per correct answer; None if none is correct."""
    calls: float | None = None
    """Mean tool calls per answer; None where there were no tools."""


def spending(
    arms: "Mapping[str, tuple[DataFrame, DataFrame]]",
) -> dict[str, dict[str, Spent]]:
    """Return what the answers of each arm take, by how they were given; empty if no arm fetched.

    Args:
        arms: By name, rows of `samples_frame`, and of `facts_frame` about the same samples.
    """
    spent = {name: ways_of_answering(*frames) for name, frames in arms.items()}
    return spent if any(FETCHING in ways for ways in spent.values()) else {}


def ways_of_answering(samples: "DataFrame", facts: "DataFrame") -> dict[str, Spent]:
    """Return what the answers of one arm take, by how they were given."""
    read = facts["in_answer_read"]
    stated = facts["in_answer"].where(read.isna(), read == "stated")
    known = facts.assign(stated=stated.eq(True), judged=stated.notna(), probe_id=facts["probe"])
    by_probe = known.groupby(_KEYS)
    every = by_probe.agg({"stated": "all", "judged": "any"}).reset_index()
    rows = samples[[*_KEYS, *_MEASURED]].merge(every, on=_KEYS, how="left")
    flawless = rows["stated"].eq(True) & ~(rows["fact_violations"] > 0)
    right = flawless.astype(float).where(rows["judged"].eq(True))  # a failed answer is not wrong
    ways = {
        ALONE: rows.assign(tokens=rows["answer_all_tokens"], right=right),
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
            found[way] = _spent(answered)
    return found


def _spent(answers: "DataFrame") -> Spent:
    by_fixture = answers.groupby("fixture")

    def mean(column: str) -> float:
        return float(by_fixture[column].mean().mean()) if column in answers else math.nan

    tokens, correct = mean("tokens"), mean("right")
    knowledge, calls = (
        None if math.isnan(value) else value for value in map(mean, (KNOWLEDGE, "calls"))
    )
    per_correct = tokens / correct if correct else None
    return Spent(len(answers), tokens, correct, knowledge, per_correct, calls)


def _shown(value: float | None, digits: str) -> str:
    return "–" if value is None else format(value, digits)


def spending_table(arms: Mapping[str, Mapping[str, Spent]]) -> Table | None:
    """Return what each arm spends, a row for each way of answering; None without any arm."""
    if not arms:
        return None
    heads = ["Arm", "Answered", "Answers", "Knowledge", "Correct", "Tokens per answer"]
    rows: list[list[str | Cell]] = [
        [
            arm,
            way,
            str(spent.answers),
            _shown(spent.knowledge, ".2f"),
            f"{spent.correct:.0%}",
            f"{spent.tokens:,.0f}",
            _shown(spent.per_correct, ",.0f"),
            _shown(spent.calls, ".1f"),
        ]
        for arm, ways in arms.items()
        for way, spent in ways.items()
    ]
    return Table([*heads, "Tokens per correct answer", "Calls"], rows, texts=(1,))
