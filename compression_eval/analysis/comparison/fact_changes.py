"""Facts gained and lost between two sides, by name, with the stage at which they are now."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compression_eval.analysis.comparison.sides import Side

LARGE = 0.5
"""Part of the runs in which a fact must have come or gone to be named."""

Key = tuple[str, int, str, str]
"""Fixture, cut, probe and fact."""


@dataclass(frozen=True)
class FactSeen:
    """What became of one fact on one side, over its runs that did not fail."""

    runs: int
    answers: int
    """Runs in which it can be told whether the answer holds it."""
    in_answer: int
    states: int
    """Runs in which it can be told whether the state holds it."""
    in_state: int
    stage: str
    """The most frequent one."""

    def share(self, where: str) -> float | None:
        """Return the share of the runs that have it in the answer or the state."""
        have, of = (
            (self.in_answer, self.answers) if where == "answer" else (self.in_state, self.states)
        )
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
    """Where it came or went; ``state`` if only the state changed, and answers did not."""
    base: FactSeen
    new: FactSeen


def fact_changes(base: Side, new: Side) -> list[FactChange]:
    """Return the facts that came or went in at least half of the runs.

    A reader's word decides whether a fact is there, else the look-up, as for the stage.
    Compared are facts of the same name of the same probe, in runs whose compression did not fail.
    Losses come before gains, and each in the order of fixtures and probes.
    """
    first, second = _seen(base), _seen(new)
    changes = [
        change
        for key in first.keys() & second.keys()
        if (change := _change(key, first[key], second[key])) is not None
    ]
    return sorted(changes, key=lambda c: (c.kind != "lost", c.fixture, c.cut, c.probe, c.fact))


def read_on_one_side(base: Side, new: Side) -> str:
    """Return which side alone a reader read the states or answers of; empty if it is as the other.

    A reader and a look-up do not find the same facts, so what changed may be the way of looking.
    """
    for column in ("in_state_read", "in_answer_read"):
        read = [side.label for side in (base, new) if side.facts[column].notna().any()]
        if len(read) == 1:
            return read[0]
    return ""


def _seen(side: Side) -> dict[Key, FactSeen]:
    facts = side.facts
    ended = facts[facts["status"] == "ok"]
    rows: dict[Key, list[tuple[bool | None, bool | None, str]]] = defaultdict(list)
    columns = ["fixture", "cut", "probe", "fact", "stage"]
    looked_up = ["in_answer", "in_state", "in_answer_read", "in_state_read"]
    for *names, stage, in_answer, in_state, answer_word, state_word in ended[
        columns + looked_up
    ].itertuples(index=False):
        fixture, cut, probe, fact = names
        # A reader's word decides where there is one, as it does for the stage.
        answered = answer_word == "stated" if _is_word(answer_word) else _known(in_answer)
        held = state_word != "absent" if _is_word(state_word) else _known(in_state)
        rows[fixture, int(cut), probe, fact].append((answered, held, stage))
    return {key: _summed(own) for key, own in rows.items()}


def _is_word(cell: Any) -> bool:
    return isinstance(cell, str)


def _known(cell: Any) -> bool | None:
    # In a column of both, pandas keeps what is not known as None or as NaN.
    return None if cell is None or cell != cell else bool(cell)  # noqa: PLR0124


def _summed(rows: Sequence[tuple[bool | None, bool | None, str]]) -> FactSeen:
    answers = [in_answer for in_answer, _, _ in rows if in_answer is not None]
    states = [in_state for _, in_state, _ in rows if in_state is not None]
    stage = Counter(stage for _, _, stage in rows).most_common(1)[0][0]
    return FactSeen(len(rows), len(answers), sum(answers), len(states), sum(states), stage)


def _change(key: Key, base: FactSeen, new: FactSeen) -> FactChange | None:
    places: tuple[Literal["answer", "state"], ...] = ("answer", "state")
    for where in places:
        before, after = base.share(where), new.share(where)
        if before is None or after is None or abs(after - before) < LARGE:
            continue
        return FactChange(*key, "gained" if after > before else "lost", where, base, new)
    return None
