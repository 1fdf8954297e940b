"""Grade both sides of a comparison again, together, to exclude a change of the grader."""

import random
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import anyio
import click
from inspect_ai.log import read_eval_log_sample_async
from inspect_ai.model import Model, ModelConfig
from inspect_ai.scorer import Score
from inspect_ai.util import collect

from compression_eval.analysis.arms import with_settings
from compression_eval.analysis.columns import Regradings, Seen
from compression_eval.analysis.comparison.controls import Controls
from compression_eval.analysis.comparison.sides import (
    Regraded,
    Side,
    check_comparable,
    read_samples,
)
from compression_eval.analysis.logs import reading
from compression_eval.errors import DataError
from compression_eval.fixtures.models import Language
from compression_eval.grading.panel import Grader, PanelWarnings
from compression_eval.grading.scored_sample import ScoredSample
from compression_eval.grading.scorers import grade_answer

SEED = 0
"""Seed of the order of grading; the same two sides always have the same order."""

MADE_EQUAL = ("rubric", "criteria", "grader", "grader_context")
"""Conditions of a comparison that regrading fulfils."""

MAX_AT_ONCE = 10
"""Answers in memory at the same time, if no number of connections is given."""

_WITHOUT_ANSWER = ("error:", "compression_failed:", "answer_failed:", "asked_to_fetch:")
"""Failures of samples that have nothing to grade begin so; they keep their reason."""


@dataclass(frozen=True)
class _Answer:
    side: Side
    path: str
    sample: str
    epoch: int
    language: Language | None
    """Of the rubric, as it was graded before; None for that of the conversation."""


def regraded(
    base: Side, new: Side, models: Sequence[Model], allowed: Collection[str]
) -> tuple[Side, Side]:
    """Have the models grade the answers of both sides and their controls, blind, in random order.

    Criteria and what graders are shown are those of the base. The logs stay as they are. Says on
    stderr how many calls it takes before the first one, then how far it is.

    Returns:
        Both sides with the new grades in the place of all earlier ones.

    Raises:
        DataError: The sides cannot be compared, a log cannot be read, or nothing was graded.
    """
    check_comparable(base, new, {*allowed, *MADE_EQUAL})
    beside = [each.controls for each in (base, new) if each.controls]
    controls = [side for each in beside for side in (each.floor, each.ceiling)]
    sides = list({id(side): side for side in (base, new, *controls)}.values())
    answers = [each for side in sides for each in _answers(side)]
    counts = (f"{sum(each.side is side for each in answers)} of {side.label}" for side in sides)
    click.echo(
        f"grading {len(answers)} answers again, {', '.join(counts)}, by "
        f"{', '.join(map(str, models))}: {len(answers) * len(models)} calls, repeated ones not "
        "counted",
        err=True,
    )
    random.Random(SEED).shuffle(answers)  # noqa: S311 - not for security
    how = {
        "criteria": _setting((base, new), "criteria", "by_type"),
        "grader_context": _setting((base, new), "grader_context", "state"),
    }
    with redirect_stdout(sys.stderr):  # where Inspect and its models greet
        scores = anyio.run(partial(_graded, answers, models, **how))
    pairs = list(zip(answers, scores, strict=True))
    again = {
        id(side): _with(
            side, {(a.path, a.sample, a.epoch): s for a, s in pairs if a.side is side}, models
        )
        for side in sides
    }

    def regraded_side(side: Side) -> Side:
        if (own := side.controls) is None:
            return again[id(side)]
        controls = Controls(again[id(own.floor)], again[id(own.ceiling)])
        return replace(again[id(side)], controls=controls)

    return regraded_side(base), regraded_side(new)


def _answers(side: Side) -> Iterator[_Answer]:
    there = side.samples["answer"].notna() & ~side.samples["failure"].str.startswith(
        _WITHOUT_ANSWER
    )
    names = ["log_path", "sample", "epoch", "rubric_language"]
    for path, sample, epoch, language in side.samples.loc[there, names].itertuples(index=False):
        known = cast(Language, language) if isinstance(language, str) else None
        yield _Answer(side, path, sample, epoch, known)


def _setting(sides: Sequence[Side], column: str, default: str) -> str:
    for side in sides:
        values = side.samples[column].dropna()
        if len(values):
            return str(values.iloc[0])
    return default


async def _graded(answers: Sequence[_Answer], models: Sequence[Model], **how: Any) -> list[Score]:
    """Grade answers, started in order."""
    warnings = PanelWarnings()
    connections = [model.config.max_connections or MAX_AT_ONCE for model in models]
    limiter = anyio.CapacityLimiter(max(connections))
    with click.progressbar(length=len(answers), label="grading", file=sys.stderr) as bar:

        async def grade(each: _Answer) -> Score:
            async with limiter:
                sample = await _read(each)
                graders = [Grader(model, sample.answer.model) for model in models]
                score = await grade_answer(
                    sample, graders, language=each.language, warnings=warnings, **how
                )
            bar.update(1)
            return score

        return await collect(*(grade(each) for each in answers))


async def _read(each: _Answer) -> ScoredSample:
    with reading(each.path):
        sample = await read_eval_log_sample_async(
            each.path,
            each.sample,
            each.epoch,
            resolve_attachments=True,
            exclude_fields={"events"},
        )
    recorded = Seen(sample, each.path).recorded
    if recorded is None:
        raise DataError(f"{each.path}: {each.sample}: nothing is recorded of its answer")
    return ScoredSample(recorded.record, recorded.context)


def _with(side: Side, scores: Regradings, graders: Sequence[Model]) -> Side:
    failed = sum(score.reason is not None for score in scores.values())
    calls = sum((score.metadata or {}).get("attempts", 0) for score in scores.values())
    if scores and failed == len(scores):
        reasons = sorted({str(score.reason) for score in scores.values()})
        raise DataError(f"--regrade: {side.label}: every grading failed: {'; '.join(reasons)}")
    return replace(
        side,
        samples=read_samples(side.logs, side.arm, scores),
        regraded=Regraded(tuple(map(_named, graders)), len(scores), failed, calls),
    )


def _named(model: Model) -> str:
    """Return a model with its settings, arguments and address as arms name it."""
    settings = {"config": model.config, "args": model.model_args, "base_url": model.api.base_url}
    return with_settings(ModelConfig(model=str(model), **settings))
