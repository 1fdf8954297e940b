"""Unknowns before a run: the lengths of replies, and the spread between runs.

They come from the logs of earlier runs, or from assumptions.yaml.
"""

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

import yaml
from inspect_ai.log import read_eval_log_sample_summaries
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.analysis.statistics.power import (
    Answer,
    SpreadParts,
    Variances,
    spread_parts,
)
from compression_eval.grading.rubric import KNOWLEDGE, OVERALL, structure
from compression_eval.sweeping.arms import CONTROLS

if TYPE_CHECKING:
    from pandas import DataFrame

MEASURES: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions)
"""Scores of a grader, 0 to 5; the first one decides comparisons."""

MIN_FIXTURES = 3
"""Minimum conversations to estimate the spread between them from logs."""


class Assumptions(BaseModel):
    """The shipped assumptions, or the values from logs in their place."""

    model_config = ConfigDict(extra="forbid")

    source: str
    """Source of the variances, for display."""
    variances: Variances
    answer_tokens: float = Field(gt=0)
    grader_tokens_per_criterion: float = Field(gt=0)
    grader_tokens_per_fact: float = Field(gt=0)
    reader_tokens_per_fact: float = Field(gt=0)
    refetch_calls: float = Field(ge=0)
    refetch_tokens_per_call: float = Field(gt=0)
    refetch_reply_tokens: float = Field(gt=0)
    cached_prefix_tokens: int = Field(ge=0)
    summary_tokens: int = Field(gt=0)
    state_tokens: int = Field(gt=0)


@cache
def shipped() -> Assumptions:
    """Return the assumptions that come with this project."""
    text = (files(__package__) / "assumptions.yaml").read_text(encoding="utf-8")
    return Assumptions.model_validate(yaml.safe_load(text))


def spreads_of(
    logs: Sequence[str], assumptions: Assumptions
) -> tuple[dict[str, Variances], Assumptions, list[str]]:
    """Return the variances by measure and the lengths of replies in the logs.

    The variances are means over the arms in the logs, without controls if there are other arms.

    Args:
        logs: Logs or folders with logs; if none, everything is assumed.
        assumptions: Used for what the logs do not show.

    Returns:
        The variances, the assumptions updated from the logs, and notes on what the logs do not
        show.
    """
    if not logs:
        return dict.fromkeys(MEASURES, assumptions.variances), assumptions, []
    from compression_eval.analysis import samples_frame

    samples = samples_frame(list(logs))
    arms = _arms(samples)
    variances: dict[str, Variances] = {}
    notes: set[str] = set()
    for measure in MEASURES:
        parts = {name: _parts(rows, measure) for name, rows in arms.items()}
        known = {name: each for name, each in parts.items() if each.state is not None}
        if not known:
            variances[measure] = assumptions.variances
            notes.add("no arm in the logs was compressed twice, so all variances are assumed")
            continue
        if all(each.answer is None for each in known.values()):
            notes.add("answers were not repeated: their spread cannot be told from compressions'")
        within = Variances(
            state=_mean([each.state for each in known.values()]),
            probe=_mean([each.probe for each in known.values()]),
            # With one answer per state, the probes' spread includes the answers'.
            answer=_mean([each.answer for each in known.values()]),
        )
        between = _between_fixtures({name: arms[name] for name in known}, measure, within)
        if between is None:
            notes.add(
                "too few arms or fixtures in the logs: the spread between conversations is assumed"
            )
            between = assumptions.variances.fixture
        variances[measure] = Variances(within.state, within.probe, within.answer, 0.0, between)
    if samples["offline"].any():
        notes.add("some of the logs are the embedded model's, whose runs hardly differ")
    return variances, _with_lengths(assumptions, samples), sorted(notes)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else 0.0


def _arms(samples: "DataFrame") -> "dict[str, DataFrame]":
    """Return the rows of each arm and model; controls only if there is nothing else."""
    by_arm = {f"{arm}\n{model}": rows for (arm, model), rows in samples.groupby(["arm", "model"])}
    others = {
        name: rows for name, rows in by_arm.items() if rows["compressor"].iloc[0] not in CONTROLS
    }
    return others or by_arm


def _parts(rows: "DataFrame", measure: str) -> SpreadParts:
    known = rows[rows[measure].notna() & rows["state_id"].notna()]
    columns = ["unit", "sample", "log_path", "state_id", measure]
    return spread_parts(
        Answer(str(unit), str(sample), f"{log} {state_id}", float(value))
        for unit, sample, log, state_id, value in known[columns].itertuples(index=False)
    )


def _between_fixtures(
    arms: "dict[str, DataFrame]", measure: str, within: Variances
) -> float | None:
    """Return the variance between conversations of the true difference of two arms.

    The variance within conversations is subtracted. None without two arms with enough common
    fixtures.
    """
    estimates = []
    for pair in combinations(arms.values(), 2):
        first, second = (_by_fixture(rows, measure, within) for rows in pair)
        shared = first.keys() & second.keys()
        if len(shared) >= MIN_FIXTURES:
            differences = [second[fixture][0] - first[fixture][0] for fixture in shared]
            centre = fmean(differences)
            squares = sum((each - centre) ** 2 for each in differences)
            noise = fmean(first[fixture][1] + second[fixture][1] for fixture in shared)
            estimates.append(max(0.0, squares / (len(differences) - 1) - noise))
    return fmean(estimates) if estimates else None


def _by_fixture(
    rows: "DataFrame", measure: str, within: Variances
) -> dict[str, tuple[float, float]]:
    """Return the mean of each fixture, and the variance of that mean."""
    result = {}
    for fixture, group in rows[rows[measure].notna()].groupby("fixture"):
        compressions = len(group.drop_duplicates(["log_path", "unit", "state_id"]))
        states = max(1, compressions // max(1, group["unit"].nunique()))
        probes = int(group["sample"].nunique())
        result[str(fixture)] = (
            float(group.groupby("sample")[measure].mean().mean()),
            (within.state + (within.probe + within.answer) / probes) / states,
        )
    return result


def _with_lengths(assumptions: Assumptions, samples: "DataFrame") -> Assumptions:
    """Return the assumptions with the lengths of the samples' replies."""
    paths = samples["log_path"].unique()
    update: dict[str, object] = {"source": f"from {len(paths)} logs"}
    answered = samples["answer_output_tokens"].dropna()
    answered = answered[answered > 0]
    if len(answered):
        update["answer_tokens"] = float(answered.mean())
    if len(fetched := samples["refetch_calls"].dropna()):
        update["refetch_calls"] = float(fetched.mean())
    facts: dict[tuple[str, str, int], int] = {}
    for path in paths:
        for each in read_eval_log_sample_summaries(path):
            score = (each.scores or {}).get("fact_retention")
            # If a sample also had its state read, the grader's tokens are not only the grading's.
            if not (score and (score.metadata or {}).get("state_reader_calls")):
                several = isinstance(each.target, list)
                facts[path, str(each.id), each.epoch] = len(each.target) if several else 1
    keys = list(zip(samples["log_path"], samples["sample"], samples["epoch"], strict=True))
    samples = samples.assign(facts=[facts.get(key, math.nan) for key in keys])
    graded = samples[samples["scored"] & (samples["grader_output_tokens"] > 0)]
    graded = graded[graded["facts"].notna()]
    if len(graded):
        graders = graded["graders"].str.split(", ").map(len).mean()
        reply = float(graded["grader_output_tokens"].mean()) / float(graders)
        on_facts = float(graded["facts"].mean()) * assumptions.grader_tokens_per_fact
        criteria = float(graded["criteria_asked"].mean())
        update["grader_tokens_per_criterion"] = max(reply - on_facts, 1.0) / criteria
    return assumptions.model_copy(update=update)
