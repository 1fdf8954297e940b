"""From what a probe got in each condition to the verdict on it.

A probe counts if the full history passes and nothing fails: then an answer can be had, and only
from the history. If the kept tail passes by itself, no compression can lose the answer; that does
not disqualify the probe, but it is kept as its region.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, get_args

from compression_eval.fixtures.banks import Qualification, QualifyingRuns

Condition = Literal["full", "none", "tail"]
"""Names of the control compressions whose states a probe is put at."""

CONDITIONS: tuple[Condition, ...] = get_args(Condition)

_DIGITS = 3


@dataclass(frozen=True)
class Asked:
    """One probe put to the model once, and what came of it."""

    condition: Condition
    fixture: str
    probe: str
    epoch: int
    cut: int = 0
    digest: str = ""
    """Of the fixture, the probe and the cut as they were asked."""
    model: str = ""
    fact_share: float = 0.0
    """Share of the expected facts that the answer holds."""
    passed: bool = False
    failure: str = ""
    """Why nothing can be said; empty if the answer was judged."""
    nothing_removed: bool = False
    """Whether the control would have kept everything, so that nothing was asked."""


@dataclass(frozen=True)
class Outcome:
    """The verdict on one probe, or why there is none."""

    fixture: str
    probe: str
    qualification: Qualification | None
    failure: str = ""


def outcomes(
    asked: Sequence[Asked], *, epochs: int, judged_by: str, tail_tokens: int
) -> list[Outcome]:
    """Return an outcome for every probe, in the order in which they were asked.

    A probe that belongs to several cuts is judged at the last of them. Where the tail is the
    whole history, the answers with the whole history count for it.

    Args:
        asked: What came of every run of every condition.
        epochs: How many runs each condition is to have.
        judged_by: What decided that an answer passed, in words.
        tail_tokens: Budget of the kept tail.
    """
    grouped: dict[tuple[str, str], list[Asked]] = {}
    for item in asked:
        grouped.setdefault((item.fixture, item.probe), []).append(item)
    return [
        Outcome(fixture, probe, None, failure)
        if (failure := _failure(runs := _at_last_cut(items), epochs))
        else Outcome(fixture, probe, _qualification(runs, judged_by, tail_tokens))
        for (fixture, probe), items in grouped.items()
    ]


def _at_last_cut(items: Sequence[Asked]) -> dict[Condition, list[Asked]]:
    last = max(item.cut for item in items)
    found = [item for item in items if item.failure or item.cut == last]
    runs = {
        condition: [item for item in found if item.condition == condition]
        for condition in CONDITIONS
    }
    if runs["tail"] and all(item.nothing_removed for item in runs["tail"]):
        runs["tail"] = runs["full"]
    return runs


def _failure(runs: Mapping[Condition, Sequence[Asked]], epochs: int) -> str:
    for condition, items in runs.items():
        for item in items:
            if item.failure:
                return f"{condition}, epoch {item.epoch}: {item.failure}"
        if len(items) != epochs:
            return f"{condition}: {len(items)} of {epochs} runs came to an end"
    if len({item.digest for items in runs.values() for item in items}) > 1:
        return "the fixture or the probe was changed while it was put to the model"
    return ""


def _qualification(
    runs: Mapping[Condition, Sequence[Asked]], judged_by: str, tail_tokens: int
) -> Qualification:
    counted = {condition: _counted(items) for condition, items in runs.items()}
    first = runs["full"][0]
    return Qualification(
        qualified=counted["full"].passes and not counted["none"].passes,
        region="tail" if counted["tail"].passes else "history",
        full=counted["full"],
        none=counted["none"],
        tail=counted["tail"],
        model=first.model,
        judged_by=judged_by,
        tail_tokens=tail_tokens,
        cut=first.cut,
        digest=first.digest,
    )


def _counted(items: Sequence[Asked]) -> QualifyingRuns:
    return QualifyingRuns(
        fact_share=round(fmean(item.fact_share for item in items), _DIGITS),
        passed=sum(item.passed for item in items),
        runs=len(items),
    )
