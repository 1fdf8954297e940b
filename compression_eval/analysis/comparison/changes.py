"""What changed between two sides besides the means: facts that came or went, and misses.

`fact_changes` counts for each fact in how many runs a side answers it, or where no answer changed
has it in the state, and lists what changed in half of the runs. `flips` lists the probes that are a
miss on one side only, and `worst_criteria` the grader's reason.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from compression_eval.analysis.comparison.sides import Arm
from compression_eval.grading.rubric import KNOWLEDGE

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MIN_CHANGED = 0.5
"""Minimum share of the runs in which a listed fact came or went."""

MISS = 3.0
"""A mean of knowledge under this is a miss."""

MAX_REASON = 200

_FACT = ["fixture", "cut", "probe", "fact"]
_PROBE = ["unit", "probe_id"]


@dataclass(frozen=True)
class FactSeen:
    """One fact on one side, over its runs that did not fail."""

    runs: int
    answers: int
    """Runs in which it is known whether the answer contains it."""
    in_answer: int
    states: int
    """Runs in which it is known whether the state contains it."""
    in_state: int
    stage: str
    """The most frequent one."""

    def share(self, where: str) -> float | None:
        """Return the share of the runs that have it in the answer or the state."""
        answer = (self.in_answer, self.answers)
        have, of = answer if where == "answer" else (self.in_state, self.states)
        return have / of if of else None


@dataclass(frozen=True)
class FactChange:
    """A fact that came or went."""

    fixture: str
    cut: int
    probe: str
    fact: str
    kind: Literal["gained", "lost"]
    where: Literal["answer", "state"]
    """Where it came or went; ``state`` if only the state changed, not the answers."""
    base: FactSeen
    new: FactSeen


def fact_changes(base: Arm, new: Arm) -> list[FactChange]:
    """Return the facts that came or went in at least half of the runs, losses first.

    A reader's word decides whether a fact is there, else the look-up, as for the stage.
    Compared are facts of the same name of the same probe, in runs whose compression did not fail.
    """
    first, second = _facts_seen(base), _facts_seen(new)
    places: tuple[Literal["answer", "state"], ...] = ("answer", "state")
    changes = []
    for key in first.keys() & second.keys():
        for where in places:
            before, after = first[key].share(where), second[key].share(where)
            if before is not None and after is not None and abs(after - before) >= MIN_CHANGED:
                kind: Literal["gained", "lost"] = "gained" if after > before else "lost"
                fixture, cut, probe, fact = key
                seen = first[key], second[key]
                changes.append(FactChange(fixture, cut, probe, fact, kind, where, *seen))
                break
    return sorted(changes, key=lambda c: (c.kind != "lost", c.fixture, c.cut, c.probe, c.fact))


def _facts_seen(side: Arm) -> dict[Any, FactSeen]:
    """Return each fact by fixture, cut, probe and fact."""
    ended = side.facts[side.facts["status"] == "ok"]
    answer, state = ended["in_answer_read"], ended["in_state_read"]
    told = ended.assign(
        in_answer=ended["in_answer"].where(answer.isna(), answer == "stated"),
        in_state=ended["in_state"].where(state.isna(), state != "absent"),
    )
    seen = {}
    key: Any
    for key, rows in told.groupby(_FACT, sort=False):
        fixture, cut, probe, fact = key
        answers, states = rows["in_answer"].dropna(), rows["in_state"].dropna()
        counts = (len(answers), int(answers.sum()), len(states), int(states.sum()))
        stage = Counter(rows["stage"]).most_common(1)[0][0]
        seen[fixture, int(cut), probe, fact] = FactSeen(len(rows), *counts, stage)
    return seen


def read_on_one_side(base: Arm, new: Arm) -> str:
    """Return which side alone a reader read the states or answers of; empty if it is as the other.

    A reader and a look-up do not find the same facts, so what changed may be the way of looking.
    """
    for column in ("in_state_read", "in_answer_read"):
        read = [side.label for side in (base, new) if side.facts[column].notna().any()]
        if len(read) == 1:
            return read[0]
    return ""


@dataclass(frozen=True)
class Flip:
    """A probe that is a miss on one side only."""

    unit: str
    """The fixture at its cut."""
    probe: str
    base: float
    """Mean over epochs of knowledge."""
    new: float
    reason: str
    """The grader's reason for the worst criterion where it is a miss; one line."""

    @property
    def missed_now(self) -> bool:
        """Whether the new side misses it."""
        return self.new < MISS


def flips(base: Arm, new: Arm) -> list[Flip]:
    """Return the probes that flipped, those that are missed now first."""
    first, second = _probe_means(base.samples), _probe_means(new.samples)
    shared = first.index.intersection(second.index)
    crossed = [key for key in shared if (first[key] < MISS) != (second[key] < MISS)]
    reasons = [_worst_reasons(side) if crossed else {} for side in (base, new)]
    changed = []
    for unit, probe in crossed:
        old, later = float(first[unit, probe]), float(second[unit, probe])
        reason = reasons[later < MISS].get((unit, probe), "")
        changed.append(Flip(unit, probe, old, later, reason))
    return sorted(changed, key=lambda flip: (not flip.missed_now, flip.unit, flip.probe))


def _probe_means(samples: "DataFrame") -> "Series[float]":
    return samples.groupby(_PROBE)[KNOWLEDGE].mean().dropna()


def _worst_reasons(side: Arm) -> dict[tuple[str, str], str]:
    """Return one line for each probe: the reason for its worst criterion's score."""
    worst = worst_criteria(side.criteria, _PROBE)
    cells = worst[[*_PROBE, "criterion", "reasoning"]].itertuples(index=False, name=None)
    return {
        (unit, probe): f"{criterion}: {' '.join(str(reason or '').split())}"[:MAX_REASON]
        for unit, probe, criterion, reason in cells
    }


def worst_criteria(criteria: "DataFrame", keys: list[str]) -> "DataFrame":
    """Return the worst criterion for each value of the columns."""
    first = (criteria["grader"] == "panel") & (criteria["grading"] == 0)
    rows = criteria[first & criteria["score"].notna()]
    rows = rows.assign(score=rows["score"].astype(float)).sort_values("score", kind="stable")
    return rows.drop_duplicates(keys)
