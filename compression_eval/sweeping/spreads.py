"""Spreads and lengths of replies from the logs of earlier runs."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from compression_eval.analysis.statistics.power import (
    Graded,
    SpreadParts,
    Variances,
    spread_parts,
)
from compression_eval.grading.rubric import KNOWLEDGE, structure
from compression_eval.grading.six_dimensions import OVERALL
from compression_eval.sweeping.arms import CONTROLS
from compression_eval.sweeping.assumptions import Assumptions

if TYPE_CHECKING:
    from pandas import DataFrame

MEASURES: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions)
"""What a grader gives, 0 to 5; first what comparisons are decided by."""

_LEAST_FIXTURES = 3
"""From so many on the spread between conversations is taken from logs."""


def assumed_spreads(assumptions: Assumptions) -> dict[str, Variances]:
    """Return the shipped variances, the same for every measure."""
    return dict.fromkeys(MEASURES, assumptions.variances.variances())


def spreads_of(
    logs: Sequence[str], assumptions: Assumptions
) -> tuple[dict[str, Variances], Assumptions, list[str]]:
    """Return variances by measure and lengths of replies, as some logs have them.

    The variances are means over the arms in the logs, controls left out where there are others.

    Args:
        logs: Logs or folders with logs.
        assumptions: Taken where the logs do not say.

    Returns:
        The variances, the assumptions with what the logs say in their place, and what the logs do
        not say, in words.

    Raises:
        DataError: There are no logs, or one is no finished log of this eval.
    """
    from compression_eval.analysis import samples_frame

    samples = samples_frame(list(logs))
    arms = _arms(samples)
    found: dict[str, Variances] = {}
    notes: set[str] = set()
    for measure in MEASURES:
        parts = {name: _parts(rows, measure) for name, rows in arms.items()}
        known = {name: each for name, each in parts.items() if each.state is not None}
        if not known:
            found[measure] = assumptions.variances.variances()
            notes.add("no arm in the logs was compressed twice, so all variances are assumed")
            continue
        variances = Variances(
            state=_mean([each.state for each in known.values()], 0.0),
            probe=_mean([each.probe for each in known.values()], 0.0),
            # Where each state was answered from once, that spread is in the probes' already.
            answer=_mean([each.answer for each in known.values()], 0.0),
        )
        if all(each.answer is None for each in known.values()):
            notes.add("answers were not repeated: their spread cannot be told from compressions'")
        between = _between_fixtures({name: arms[name] for name in known}, measure, variances)
        if between is None:
            notes.add("too few arms or fixtures in the logs: the spread between conversations is "
                      "assumed")  # fmt: skip
        fixture = assumptions.variances.fixture if between is None else between
        found[measure] = Variances(variances.state, variances.probe, variances.answer, 0.0, fixture)
    listed = f"from {samples['log_path'].nunique()} logs"
    if samples["offline"].any():
        notes.add("some of the logs are the embedded model's, whose runs hardly differ")
    return found, _lengths(samples, assumptions, listed), sorted(notes)


def _arms(samples: "DataFrame") -> "dict[str, DataFrame]":
    """Return the rows of each arm and model; controls only if there is nothing else."""
    by_arm = {f"{arm}\n{model}": rows for (arm, model), rows in samples.groupby(["arm", "model"])}
    others = {
        name: rows for name, rows in by_arm.items() if rows["compressor"].iloc[0] not in CONTROLS
    }
    return others or by_arm


def _parts(rows: "DataFrame", measure: str) -> SpreadParts:
    known = rows[rows[measure].notna() & rows["replicate"].notna()]
    columns = ["unit", "sample", "log_path", "replicate", "epoch", measure]
    return spread_parts(
        Graded(str(unit), str(sample), f"{log} {replicate}", f"{log} {epoch}", float(value))
        for unit, sample, log, replicate, epoch, value in known[columns].itertuples(index=False)
    )


def _between_fixtures(
    arms: "dict[str, DataFrame]", measure: str, variances: Variances
) -> float | None:
    """Return the variance between conversations of the true difference of two arms.

    What the difference of two means would vary by without it is taken off. None where there are
    no two arms with enough fixtures in common.
    """
    found = []
    for first, second in combinations(arms.values(), 2):
        differences, noise = [], []
        pair = [_by_fixture(rows, measure) for rows in (first, second)]
        for fixture in pair[0].keys() & pair[1].keys():
            sides = [side[fixture] for side in pair]
            differences.append(sides[1][0] - sides[0][0])
            noise.append(sum(_noise(variances, probes, states) for _, probes, states in sides))
        if len(differences) >= _LEAST_FIXTURES:
            centre = sum(differences) / len(differences)
            squares = sum((each - centre) ** 2 for each in differences)
            spread = squares / (len(differences) - 1)
            found.append(max(0.0, spread - sum(noise) / len(noise)))
    return sum(found) / len(found) if found else None


def _by_fixture(rows: "DataFrame", measure: str) -> dict[str, tuple[float, int, int]]:
    """Return mean, probes and compressions of each fixture."""
    known = rows[rows[measure].notna()]
    result = {}
    for fixture, group in known.groupby("fixture"):
        states = group.drop_duplicates(["log_path", "unit", "replicate"])
        units = max(1, group["unit"].nunique())
        result[str(fixture)] = (
            float(group.groupby("sample")[measure].mean().mean()),
            int(group["sample"].nunique()),
            max(1, len(states) // units),
        )
    return result


def _noise(variances: Variances, probes: int, states: int) -> float:
    return (variances.state + (variances.probe + variances.answer) / probes) / states


def _lengths(samples: "DataFrame", assumptions: Assumptions, source: str) -> Assumptions:
    """Return the assumptions with the lengths of replies that samples have."""
    update: dict[str, object] = {"source": source}
    answered = samples["answer_output_tokens"].dropna()
    answered = answered[answered > 0]
    if len(answered):
        update["answer_tokens"] = float(answered.mean())
    graded = samples[samples["scored"] & (samples["grader_output_tokens"] > 0)]
    if len(graded):
        criteria = float(graded["criteria_asked"].mean())
        graders = graded["graders"].str.split(", ").map(len).mean()
        mean = float(graded["grader_output_tokens"].mean())
        update["grader_tokens_per_criterion"] = mean / criteria / float(graders)
    return assumptions.model_copy(update=update)


def _mean(values: Sequence[float | None], otherwise: float) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else otherwise
