"""Both sides of a comparison graded again, together, so that no change of a grader is in it."""

import random
import sys
from collections.abc import Collection, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from zipfile import BadZipFile

import anyio
import click
from inspect_ai.log import read_eval_log_sample_async
from inspect_ai.model import Model
from inspect_ai.scorer import Score
from inspect_ai.util import collect

from compression_eval.analysis.comparison.comparable import check_comparable
from compression_eval.analysis.comparison.sides import Regraded, Side, read_samples
from compression_eval.analysis.logs import Log
from compression_eval.analysis.sample_columns import Regradings, Seen
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.models import Language
from compression_eval.grading.grader import Grader
from compression_eval.grading.panel import FailedGraderNotice
from compression_eval.grading.request import GraderContext
from compression_eval.grading.rubric import CriteriaMode
from compression_eval.grading.sample import Sample
from compression_eval.grading.six_dimensions import grade_answer

if TYPE_CHECKING:
    from pandas import DataFrame

SEED = 0
"""Of the order in which answers are graded; the same two sides always have the same one."""

MADE_EQUAL = ("rubric", "criteria", "grader", "grader_context")
"""Conditions of a comparison that grading again fulfils."""

_AT_ONCE = 10
"""Answers in memory at the same time, if no number of connections is given."""


@dataclass(frozen=True)
class _Answer:
    side: int
    log: Log
    sample: str
    epoch: int
    language: Language | None
    """Of the rubric, as it was graded before; None for that of the conversation."""


@dataclass(frozen=True)
class _How:
    criteria: CriteriaMode
    grader_context: GraderContext


def regraded(
    base: Side, new: Side, models: Sequence[Model], allowed: Collection[str]
) -> tuple[Side, Side]:
    """Have some models grade the answers of both sides, blind and in random order.

    Criteria and what graders are shown are those of the base. The logs stay as they are. Says on
    stderr how many calls it takes before the first one, then how far it is.

    Args:
        base: One side.
        new: The other.
        models: Who grades; several are a panel.
        allowed: Conditions that need not hold; names of `comparable.CONDITIONS`.

    Returns:
        Both sides with the new grades in the place of all earlier ones.

    Raises:
        DataError: The sides cannot be compared, a log cannot be read, or nothing was graded.
    """
    check_comparable(base, new, {*allowed, *MADE_EQUAL})
    sides = (base, new)
    answers = [each for number, side in enumerate(sides) for each in _answers(number, side)]
    how = _How(
        criteria=cast(CriteriaMode, _setting(sides, "criteria", "by_type")),
        grader_context=cast(GraderContext, _setting(sides, "grader_context", "state")),
    )
    counts = [sum(each.side == number for each in answers) for number in range(len(sides))]
    names = ", ".join(map(str, models))
    click.echo(
        f"grading {len(answers)} answers again, {counts[0]} of base and {counts[1]} of new, by "
        f"{names}: {len(answers) * len(models)} calls, repeated ones not counted",
        err=True,
    )
    random.Random(SEED).shuffle(answers)  # noqa: S311 - no secret hangs on it
    with redirect_stdout(sys.stderr):  # where Inspect and its models greet
        scores = anyio.run(_graded, answers, models, how)
    found = []
    for number, side in enumerate(sides):
        new_scores: Regradings = {
            (each.log.path, each.sample, each.epoch): score
            for each, score in zip(answers, scores, strict=True)
            if each.side == number
        }
        found.append(_with(side, new_scores, [str(model) for model in models]))
    return found[0], found[1]


def _answers(number: int, side: Side) -> list[_Answer]:
    logs = {log.path: log for log in side.logs}
    names = ["log_path", "sample", "epoch", "rubric_language"]
    there = side.samples[_answered(side.samples)]
    return [
        _Answer(
            side=number,
            log=logs[path],
            sample=sample,
            epoch=epoch,
            language=cast(Language, language) if isinstance(language, str) else None,
        )
        for path, sample, epoch, language in there[names].itertuples(index=False)
    ]


def _answered(samples: "DataFrame") -> Any:
    """Return which samples have an answer to grade; the others keep the reason that they have."""
    without = ("error:", "compression_failed:", "answer_failed:", "asked_to_fetch:")
    return samples["answer"].notna() & ~samples["failure"].str.startswith(without)


def _setting(sides: Sequence[Side], column: str, default: str) -> str:
    for side in sides:
        values = side.samples[column].dropna()
        if len(values):
            return str(values.iloc[0])
    return default


async def _graded(answers: Sequence[_Answer], models: Sequence[Model], how: _How) -> list[Score]:
    """Grade answers, begun in the order in which they stand."""
    notice = FailedGraderNotice()
    connections = [model.config.max_connections or _AT_ONCE for model in models]
    limiter = anyio.CapacityLimiter(max(connections))
    with click.progressbar(length=len(answers), label="grading", file=sys.stderr) as bar:

        async def grade(each: _Answer) -> Score:
            async with limiter:
                sample = await _read(each)
                graders = [Grader(model, sample.answer.model) for model in models]
                score = await grade_answer(
                    sample,
                    graders,
                    criteria=how.criteria,
                    grader_context=how.grader_context,
                    language=each.language,
                    failed_graders=notice,
                )
            bar.update(1)
            return score

        return await collect(*(grade(each) for each in answers))


async def _read(each: _Answer) -> Sample:
    try:
        found = await read_eval_log_sample_async(
            each.log.path,
            each.sample,
            each.epoch,
            resolve_attachments=True,
            exclude_fields={"events"},
        )
    except (ValueError, OSError, KeyError, IndexError, BadZipFile) as error:
        raise DataError(f"{each.log.path}: {' '.join(str(error).split())[:200]}") from error
    recorded = Seen(found, each.log.path).recorded
    if recorded is None:
        raise DataError(f"{each.log.path}: {each.sample}: nothing is recorded of its answer")
    return Sample(recorded.record, recorded.context)


def _with(side: Side, scores: Regradings, graders: Sequence[str]) -> Side:
    failed = sum(score.reason is not None for score in scores.values())
    calls = sum((score.metadata or {}).get("attempts", 0) for score in scores.values())
    if scores and failed == len(scores):
        reasons = sorted({str(score.reason) for score in scores.values()})
        raise DataError(f"--regrade: {side.label}: every grading failed: {'; '.join(reasons)}")
    return replace(
        side,
        samples=read_samples(side.logs, side.arm, scores),
        regraded=Regraded(tuple(graders), len(scores), failed, calls),
    )
