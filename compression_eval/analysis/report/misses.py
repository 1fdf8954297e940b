"""Probes that came out under the line, each with a reason in one line."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.statistics.intervals import Item
from compression_eval.grading.rubric import KNOWLEDGE

if TYPE_CHECKING:
    from pandas import DataFrame

_LOST = ("never_fed", "superseded", "distorted", "dropped", "lost", "unused", "unanswered")
"""Stages at which a fact did not get into the answer."""

_LONGEST_FACT = 60
_LONGEST_REASON = 200
_FACTS_NAMED = 3


@dataclass(frozen=True)
class Miss:
    """One probe under the line in one arm."""

    unit: str
    probe: str
    score: float
    """Mean over epochs of knowledge."""
    lost: list[str]
    """Facts that did not get into the answer, the most frequent first, with the stage."""
    criterion: str
    """The worst criterion of the epoch nearest to the mean, and what the grader said of it."""
    reason: str


def misses(
    samples: "DataFrame", criteria: "DataFrame", facts: "DataFrame", line: float = MISS
) -> list[Miss]:
    """Return the misses of one arm, the worst first.

    Args:
        samples: Rows of the arm.
        criteria: Rows of the arm.
        facts: Rows of the arm.
        line: Scores under this are misses.
    """
    means = samples.groupby(["unit", "sample"])[KNOWLEDGE].mean()
    missed = means[means < line]
    if missed.empty:
        return []
    scores = {cast(Item, key): float(score) for key, score in missed.items()}
    epochs = _typical_epochs(samples, scores)
    worst = _worst_criteria(criteria, set(epochs.values()))
    lost = _lost_facts(facts)
    cells = samples[["unit", "sample", "probe_id"]].itertuples(index=False)
    names = {(str(unit), str(sample)): str(probe) for unit, sample, probe in cells}
    found = []
    for key, score in scores.items():
        unit, probe = key[0], names[key]
        criterion, reason = worst.get(epochs[key], ("", ""))
        found.append(Miss(unit, probe, score, lost.get((unit, probe), []), criterion, reason))
    return sorted(found, key=lambda miss: (miss.score, miss.unit, miss.probe))


def _typical_epochs(samples: "DataFrame", means: dict[Item, float]) -> dict[Item, str]:
    """Return the sample, by its uuid, that comes nearest to the mean of each probe."""
    scored = samples[samples[KNOWLEDGE].notna()]
    nearest: dict[Item, tuple[float, str]] = {}
    cells = scored[["unit", "sample", "sample_uuid", KNOWLEDGE]].itertuples(index=False)
    for unit, sample, uuid, value in cells:
        key = (str(unit), str(sample))
        if key in means:
            distance = abs(float(value) - means[key])
            nearest[key] = min(nearest.get(key, (distance, str(uuid))), (distance, str(uuid)))
    return {key: uuid for key, (_, uuid) in nearest.items()}


def _worst_criteria(criteria: "DataFrame", uuids: set[str]) -> dict[str, tuple[str, str]]:
    rows = criteria[
        (criteria["grader"] == "panel")
        & (criteria["grading"] == 0)
        & criteria["score"].notna()
        & criteria["sample_uuid"].isin(uuids)
    ]
    rows = rows.assign(score=rows["score"].astype(float)).sort_values("score", kind="stable")
    worst = rows.drop_duplicates("sample_uuid")
    cells = worst[["sample_uuid", "criterion", "score", "reasoning"]].itertuples(index=False)
    return {
        str(uuid): (f"{criterion} {score:g}", _one_line(reason, _LONGEST_REASON))
        for uuid, criterion, score, reason in cells
    }


def _lost_facts(facts: "DataFrame") -> dict[tuple[str, str], list[str]]:
    """Return, per unit and probe, the facts that were lost, with the stage."""
    counts: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    rows = facts[facts["stage"].isin(_LOST)]
    cells = rows[["fixture", "cut", "probe", "fact", "stage"]].itertuples(index=False)
    for fixture, cut, probe, fact, stage in cells:
        counter = counts.setdefault((f"{fixture}@{cut}", str(probe)), Counter())
        counter[_one_line(fact, _LONGEST_FACT), str(stage)] += 1
    named = {}
    for key, counter in counts.items():
        common = [f"{fact} ({stage})" for (fact, stage), _ in counter.most_common(_FACTS_NAMED)]
        more = len(counter) - len(common)
        named[key] = common + ([f"{more} more"] if more else [])
    return named


def _one_line(text: object, longest: int) -> str:
    short = str(text or "")[: longest * 4]
    line = " ".join(short.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
