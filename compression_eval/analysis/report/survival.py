"""What became of the facts: by cycle, by age and by stage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from compression_eval.grading.fact_explanation import AGE_GROUPS, age_group
from compression_eval.grading.facts import Stage

if TYPE_CHECKING:
    from pandas import DataFrame

_NO_FACTS = ("not_in_history", "compression_failed")
"""Stages that say nothing of survival: a mistake of the bank, and no state."""


STAGES: Mapping[Stage, str] = {
    "used": "in the answer, and in what the compression wrote",
    "verbatim": "in the answer, and in the state only because its messages were kept as they were",
    "unused": "in the state, but not in the answer",
    "survived": "in the state; there is no answer",
    "guessed": "not in the state, and yet in the answer",
    "never_fed": "lost: no summarising call was shown it",
    "superseded": "lost: the state gives an earlier value of it as current",
    "distorted": "lost: its name stands in the summary with another value",
    "dropped": "lost: a summarising call was shown it, and it is not in the state",
    "lost": "lost, by a strategy that calls no model",
    "answered": "in the answer; the state cannot be read",
    "unanswered": "not in the answer; the state cannot be read",
    "unknown": "the state cannot be read, and there is no answer",
    "not_in_history": "nowhere before the cut: a mistake of the probe bank",
    "compression_failed": "there is no state",
}
"""What became of a fact, for people."""


@dataclass(frozen=True)
class Share:
    """Facts that are in the state, of those that it is known of."""

    in_state: int
    known: int

    @property
    def share(self) -> float:
        """0 to 1; NaN if it is known of none."""
        return self.in_state / self.known if self.known else float("nan")


@dataclass(frozen=True)
class Survival:
    """One arm's facts, over all its probes and epochs."""

    by_cycle: dict[str, Share]
    """By the number of compressions that a fact has been through."""
    by_age: dict[str, Share]
    """By the quarter of the history that it was first said in."""
    stages: dict[str, int]
    """Facts by what became of them; stages that do not occur are left out."""


def survival(facts: "DataFrame") -> Survival:
    """Return what became of the facts of one arm."""
    followed = facts[~facts["stage"].isin(_NO_FACTS) & facts["in_state"].notna()]
    ages = [
        age_group(None if age != age else float(age))  # noqa: PLR0124  (NaN is not itself)
        for age in followed["age_share"].astype(float)
    ]
    cycles = ["unknown" if n != n else str(int(n)) for n in followed["cycles"].astype(float)]  # noqa: PLR0124
    counts = facts["stage"].value_counts()
    return Survival(
        by_cycle=_shares(followed, cycles, sorted(set(cycles), key=lambda name: (len(name), name))),
        by_age=_shares(followed, ages, AGE_GROUPS),
        stages={stage: int(counts[stage]) for stage in get_args(Stage) if stage in counts},
    )


def _shares(
    facts: "DataFrame", groups: list[str], order: "list[str] | tuple[str, ...]"
) -> dict[str, Share]:
    found = {}
    known = list(zip(groups, facts["in_state"], strict=True))
    for name in order:
        here = [bool(in_state) for group, in_state in known if group == name]
        if here:
            found[name] = Share(sum(here), len(here))
    return found
