"""What changed between two sides beside the means: facts that came or went, and misses."""

from collections import Counter, defaultdict
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

# ----- facts


@dataclass(frozen=True)
class FactSeen:
    """One fact on one side, over its runs that did not fail."""

    runs: int
    answers: int
    """Runs in which it is known whether the answer holds it."""
    in_answer: int
    states: int
    """Runs in which it is known whether the state holds it."""
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


_Key = tuple[str, int, str, str]
"""Fixture, cut, probe and fact."""


def fact_changes(base: Arm, new: Arm) -> list[FactChange]:
    """Return the facts that came or went in at least half of the runs.

    A reader's word decides whether a fact is there, else the look-up, as for the stage.
    Compared are facts of the same name of the same probe, in runs whose compression did not fail.
    Losses come before gains, and each in the order of fixtures and probes.
    """
    first, second = _facts_seen(base), _facts_seen(new)
    places: tuple[Literal["answer", "state"], ...] = ("answer", "state")
    changes = []
    for key in first.keys() & second.keys():
        for where in places:
            before, after = first[key].share(where), second[key].share(where)
            if before is not None and after is not None and abs(after - before) >= MIN_CHANGED:
                kind: Literal["gained", "lost"] = "gained" if after > before else "lost"
                changes.append(FactChange(*key, kind, where, first[key], second[key]))
                break
    return sorted(changes, key=lambda c: (c.kind != "lost", c.fixture, c.cut, c.probe, c.fact))


def _facts_seen(side: Arm) -> dict[_Key, FactSeen]:
    rows: dict[_Key, list[tuple[bool | None, bool | None, str]]] = defaultdict(list)
    columns = ["fixture", "cut", "probe", "fact", "stage"]
    columns += ["in_answer", "in_state", "in_answer_read", "in_state_read"]
    ended = side.facts.loc[side.facts["status"] == "ok", columns]
    for *key, stage, in_answer, in_state, answer_word, state_word in ended.itertuples(
        index=False, name=None
    ):
        fixture, cut, probe, fact = key
        # A reader's word decides where there is one, as it does for the stage.
        answered = answer_word == "stated" if isinstance(answer_word, str) else _known(in_answer)
        held = state_word != "absent" if isinstance(state_word, str) else _known(in_state)
        rows[fixture, int(cut), probe, fact].append((answered, held, stage))
    by_fact = {}
    for name, seen in rows.items():
        answers = [answered for answered, _, _ in seen if answered is not None]
        states = [held for _, held, _ in seen if held is not None]
        stage = Counter(stage for _, _, stage in seen).most_common(1)[0][0]
        by_fact[name] = FactSeen(
            len(seen), len(answers), sum(answers), len(states), sum(states), stage
        )
    return by_fact


def _known(cell: Any) -> bool | None:
    # In a mixed column, pandas keeps missing values as None or NaN.
    return None if cell is None or cell != cell else bool(cell)  # noqa: PLR0124


def read_on_one_side(base: Arm, new: Arm) -> str:
    """Return which side alone a reader read the states or answers of; empty if it is as the other.

    A reader and a look-up do not find the same facts, so what changed may be the way of looking.
    """
    for column in ("in_state_read", "in_answer_read"):
        read = [side.label for side in (base, new) if side.facts[column].notna().any()]
        if len(read) == 1:
            return read[0]
    return ""


# ----- misses


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
    reasons = (_worst_reasons(base), _worst_reasons(new)) if crossed else ({}, {})
    changed = []
    for unit, probe in crossed:
        old, later = float(first[unit, probe]), float(second[unit, probe])
        reason = reasons[later < MISS].get((unit, probe), "")
        changed.append(Flip(unit, probe, old, later, reason))
    return sorted(changed, key=lambda flip: (not flip.missed_now, flip.unit, flip.probe))


def _probe_means(samples: "DataFrame") -> "Series[float]":
    return samples[samples[KNOWLEDGE].notna()].groupby(["unit", "probe_id"])[KNOWLEDGE].mean()


def _worst_reasons(side: Arm) -> dict[tuple[str, str], str]:
    """Return one line for each probe: the reason for its worst criterion's score."""
    worst = worst_criteria(side.criteria, ["unit", "probe_id"])
    cells = worst[["unit", "probe_id", "criterion", "reasoning"]].itertuples(index=False, name=None)
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
