"""What became of the facts: by cycle, by age and by stage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from compression_eval.facts.life import AGE_GROUPS, Stage, age_group

if TYPE_CHECKING:
    from pandas import DataFrame

STAGES: Mapping[Stage, str] = {
    "used": "in the answer, and in what the compression wrote",
    "verbatim": "in the answer, and in the state only because its messages were kept as they were",
    "unused": "in the state, but not in the answer",
    "survived": "in the state; there is no answer",
    "answered_not_found": "answered though not found in the state",
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
    read: int = 0
    """Facts whose state a reader gave its word on; the others were looked up."""
    fact_agreement: float | None = None
    """Share of the facts that were both read and looked up on which the two say the same, 0 to 1;
    None where there are none."""


def survival(facts: "DataFrame") -> Survival:
    """Return what became of the facts of one arm; where there is no state, none of them is in it.

    Whether a state holds a fact is the reader's word where there is one, else what the look-up
    found, as in the stages.
    A fact that is nowhere before the cut is a mistake of the bank and says nothing of survival.
    """
    failed = facts["stage"] == "compression_failed"
    was_read = facts["in_state_read"].notna() & ~failed
    read, looked_up = facts["in_state_read"] != "absent", facts["in_state"]
    both = was_read & looked_up.notna()
    agreed = (read == looked_up)[both]
    facts = facts.assign(
        in_state=read.where(was_read, looked_up).where(~failed, False),
        cycles=facts["cycles"].astype(float).where(~failed, facts["cycles"].astype(float).max()),
    )
    followed = facts[(facts["stage"] != "not_in_history") & facts["in_state"].notna()]
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
        read=int(was_read.sum()),
        fact_agreement=float(agreed.mean()) if len(agreed) else None,
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
