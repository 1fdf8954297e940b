"""What is measured, on which scale, and the values of one side of it."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compression_eval.analysis.arms import ARGUMENT
from compression_eval.analysis.comparison.failures import failed_by_arm
from compression_eval.analysis.comparison.sides import Side, differences
from compression_eval.analysis.statistics.observations import ArmValues, Observation
from compression_eval.analysis.statistics.verdicts import DEFAULT_THRESHOLD
from compression_eval.compressors.artifacts import SUFFIX
from compression_eval.compressors.registry import COMPRESSORS
from compression_eval.grading.rubric import KNOWLEDGE, MAX_SCORE, structure
from compression_eval.grading.six_dimensions import OVERALL

if TYPE_CHECKING:
    from pandas import DataFrame

RECALL, SURVIVAL = "fact_recall", "fact_survival"

SHARES = frozenset({RECALL, SURVIVAL})
"""Measures from 0 to 1; the others go from 0 to 5."""

HEADLINE: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions, RECALL, SURVIVAL)
"""What is measured: first the measure that comparisons are decided by, then those beside it."""

IN_GROUPS: tuple[str, ...] = (KNOWLEDGE, RECALL, SURVIVAL)
"""Measures that are looked at in each group of a breakdown."""


def threshold_of(measure: str, threshold: float = DEFAULT_THRESHOLD) -> float:
    """Return the smallest difference that counts, in the unit of a measure.

    Args:
        measure: One of `HEADLINE`.
        threshold: The one for scores from 0 to 5; a share has the same part of its range.
    """
    return threshold / MAX_SCORE if measure in SHARES else threshold


def values(samples: "DataFrame", measure: str, *, failed_as_zero: bool = False) -> ArmValues:
    """Return a side's values of a measure.

    Args:
        samples: Rows of a side's samples.
        measure: One of `HEADLINE`.
        failed_as_zero: Give the samples that have no value because something of the arm failed a
            0. Those that were not graded, or not on the measure, have no value in any case.
    """
    rows = samples[["fixture", "unit", "sample", "log_path", "state", measure]]
    rows = rows.assign(failed=failed_by_arm(samples))
    found = []
    for fixture, unit, probe, log, state, value, failed in rows.itertuples(index=False):
        number = float(value)
        if math.isnan(number):
            if not (failed_as_zero and failed):
                continue
            number = 0.0
        found.append(Observation(str(fixture), str(unit), str(probe), f"{log} {state}", number))
    return ArmValues.of(found)


def mean_score(samples: "DataFrame", measure: str = KNOWLEDGE) -> float:
    """Return the point estimate that comparisons and reports give, for the rows of one arm.

    Answers are averaged within a state, states within a probe, probes within a conversation, and
    every conversation counts the same. Failed samples have no value and are left out.

    Args:
        samples: Rows of `samples_frame`.
        measure: One of its scores (0 to 5), ``fact_recall`` or ``fact_survival`` (0 to 1).

    Returns:
        The mean in the unit of the measure; NaN if no sample has a value.
    """
    return values(with_states(samples), measure).mean()


def with_states(samples: "DataFrame") -> "DataFrame":
    """Return samples with a column ``state``: which compression of its run each is about.

    A sample that ended in an error may have no record that says so; the others of its epoch do.
    """
    known = samples.dropna(subset=["replicate"]).drop_duplicates(["log_path", "epoch"])
    by_epoch = {
        (log, epoch): str(int(replicate))
        for log, epoch, replicate in known[["log_path", "epoch", "replicate"]].itertuples(
            index=False
        )
    }
    pairs = samples[["log_path", "epoch"]].itertuples(index=False)
    return samples.assign(
        state=[by_epoch.get((log, epoch), f"epoch {epoch}") for log, epoch in pairs]
    )


def exact_measures(base: Side, new: Side) -> frozenset[str]:
    """Return the measures on which both arms come out the same every time."""
    return _exact(base) & _exact(new)


def _exact(side: Side) -> frozenset[str]:
    compressor, compressed_by = side.settings["compressor"], side.settings["compressor model"]
    models = [compressed_by, side.model, *side.graders]
    embedded = all(_embedded(name) for each in models for name in each.split(", "))
    # Nothing but the compressor can vary then, and a user's own is taken by what it did.
    if embedded and _came_out_alike(side.samples):
        return frozenset(HEADLINE)
    return exact_of(compressor, compressed_by, side.model, side.graders)


def _came_out_alike(samples: "DataFrame") -> bool:
    """Return whether every conversation was compressed several times, always to the same scores.

    And without a model call: what the embedded model makes of another prompt is no finding.
    """
    if samples["failure"].astype(bool).any() or samples["compress_calls"].sum() > 0:
        return False
    runs = samples["log_path"].astype(str) + " " + samples["state"].astype(str)
    if runs.groupby(samples["unit"]).nunique().min() < 2:
        return False
    by_probe = samples.groupby(["unit", "sample"])[list(HEADLINE)]
    return not bool((by_probe.max() - by_probe.min()).to_numpy(na_value=0.0).any())


def exact_of(
    compressor: str, compressor_model: str, model: str, graders: Sequence[str]
) -> frozenset[str]:
    """Return the measures on which an arm comes out the same every time."""
    if not _same_every_time(compressor, compressor_model):
        return frozenset()
    if not _embedded(model):
        return frozenset({SURVIVAL})
    if not all(_embedded(name) for each in graders for name in each.split(", ")):
        return SHARES
    return frozenset(HEADLINE)


def same_answers(base: Side, new: Side) -> int:
    """Return how many answers both sides gave, if they are the same ones, byte for byte; else 0.

    Counted are the probes that both were asked. Each answer must come as often on both sides, by
    its share where one has more epochs. Where anything failed they are not the same.
    """
    first, second = (side.samples for side in (base, new))
    if not (first["scored"].all() and second["scored"].all()):
        return 0
    said = [
        {
            key: rows["answer"].astype(str).value_counts(normalize=True).to_dict()
            for key, rows in frame.groupby(["unit", "sample"])[["answer"]]
        }
        for frame in (first, second)
    ]
    shared = said[0].keys() & said[1].keys()
    if any(said[0][key] != said[1][key] for key in shared):
        return 0
    return sum(key in shared for key in zip(first["unit"], first["sample"], strict=True))


def stands_in(side: Side) -> bool:
    """Return whether the embedded model compressed in the place of a language model."""
    called = bool(side.samples["compress_calls"].sum() > 0)
    return called and _embedded(side.settings["compressor model"])


def no_language_model(side: Side) -> bool:
    """Return whether an arm is known to have been run without any language model."""
    return len(_exact(side)) == len(HEADLINE)


def compresses_the_same(side: Side) -> bool:
    """Return whether an arm's compressions of one history are all the same."""
    return _same_every_time(side.settings["compressor"], side.settings["compressor model"])


def _same_every_time(compressor: str, compressor_model: str) -> bool:
    name = compressor.removesuffix(SUFFIX)
    known = COMPRESSORS.get(name)
    # What is the user's own may do something else each time, whatever model it is given.
    if known is None or name == "command":
        return False
    return not known.calls_model or _embedded(compressor_model)


def unread_changes(base: Side, new: Side) -> tuple[list[str], bool]:
    """Return what differs between two arms that the embedded compressor never read.

    It works on the messages and the budget alone. Of a focus topic it takes note where a strategy
    hands it over as data, which `anchored` and `regenerative` do.

    Returns:
        The names, such as ``prompt``, and whether nothing else differs.
    """
    settings = (base.settings, new.settings)
    names = {each["compressor"] for each in settings}
    known = COMPRESSORS.get(next(iter(names)).removesuffix(SUFFIX))
    if len(names) > 1 or known is None or not known.calls_model:
        return [], False
    if not all(_embedded(each["compressor model"]) for each in settings):
        return [], False
    unread = {"prompt", "instructions"}
    if "summary_tokens" not in known.arguments.model_fields:
        unread.add("focus_topic")
    changed = [name.removeprefix(ARGUMENT) for name, _, _ in differences(base, new)]
    found = [name for name in changed if name in unread]
    only = len(found) == len(changed)
    shipped = [set(side.samples["prompts_digest"].dropna()) for side in (base, new)]
    if shipped[0] != shipped[1]:
        found.append("the strategies' own prompts")
    return found, only


def _embedded(model: str) -> bool:
    return model.startswith("embedded/")
