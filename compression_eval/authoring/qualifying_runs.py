"""Put the probes to a model through the task itself, with a control for a compressor.

Each condition is a run of the ordinary task, so states, questions and look-ups are those of every
other run, and the log can be opened in the viewer. The logs lie in a folder of their own: what
qualifies a probe must not be what is then scored.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.scorer import Score

from compression_eval.authoring.qualifying import Asked, Condition
from compression_eval.authoring.qualifying_progress import progress
from compression_eval.fixtures.cuts import CutArgument
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.loading import FixtureWithBank
from compression_eval.fixtures.verdicts import verdict_digest
from compression_eval.grading.sample import Sample
from compression_eval.probing.record import ProbeRecord

TASK = "compression_eval/compression"
EMBEDDED = "embedded/lexical"
FACTS = "facts: every expected one, and no superseded or forbidden value"

_RUBRIC_KEYS = ("accuracy", "completeness")
"""Both must reach the threshold: an answer that gives one fact of three can be wholly accurate."""


@dataclass(frozen=True)
class QualifySettings:
    """How probes are put to a model and judged."""

    model: str = EMBEDDED
    grader: str | None = None
    """Who judges by the rubric; None to look the facts up."""
    threshold: float = 4.0
    """Least score for accuracy and for completeness, 0 to 5; with a grader only."""
    epochs: int = 3
    tail_tokens: int = 2_000
    cut: CutArgument | None = None
    """Where history ends; the task's own default if None."""
    log_dir: str = "logs/qualify"
    model_base_url: str | None = None
    temperature: float | None = None
    max_connections: int | None = None

    @property
    def judged_by(self) -> str:
        """What decides that an answer passes, in words."""
        if self.grader is None:
            return FACTS
        return f"rubric: {' and '.join(_RUBRIC_KEYS)} of {self.threshold:g}, by {self.grader}"


def task_arguments(
    condition: Condition, pairs: Sequence[FixtureWithBank], settings: QualifySettings
) -> list[dict[str, Any]]:
    """Return the arguments of the tasks that put some fixtures into a condition.

    Banks that lie in one folder, beside or for all fixtures, go into one task.

    Args:
        condition: The control.
        pairs: The fixtures with their banks.
        settings: The cut and the tail's budget.
    """
    folders: dict[Path, list[FixtureWithBank]] = {}
    for pair in pairs:
        named = f"{pair.fixture_path.stem}.probes.json" == pair.bank_path.name
        place = pair.bank_path.resolve()
        folders.setdefault(place.parent if named else place, []).append(pair)
    arguments: dict[str, Any] = {"compressor": condition, "grader_context": "none"}
    if condition == "tail":
        # A short conversation is hardly longer than its tail, and that is no failure here.
        arguments |= {"compressor_args": {"tail_tokens": settings.tail_tokens}, "min_removed": 0.0}
    if settings.cut is not None:
        arguments["cut"] = settings.cut
    return [
        {
            **arguments,
            "fixtures": [str(pair.fixture_path.resolve()) for pair in group],
            "probes": str(banks),
        }
        for banks, group in folders.items()
    ]


def ask(
    condition: Condition, arguments: dict[str, Any], settings: QualifySettings, samples: int
) -> EvalLog:
    """Run one task and return its log, whatever became of it.

    Args:
        condition: Names the run where its progress is shown.
        arguments: Of the task.
        settings: Who answers and who judges.
        samples: How many samples it has, all epochs counted.

    Raises:
        DataError: The run could not be started: a model, a key or a folder is wrong.
    """
    options: dict[str, Any] = {
        name: value
        for name in ("model_base_url", "temperature", "max_connections")
        if (value := getattr(settings, name)) is not None
    }
    # Inspect greets on stdout, where the verdicts are to stand alone.
    with progress(condition, samples), redirect_stdout(sys.stderr):
        try:
            (log,) = inspect_eval(
                TASK,
                task_args=arguments,
                model=settings.model,
                model_roles={"grader": settings.grader or EMBEDDED},
                epochs=settings.epochs,
                log_dir=settings.log_dir,
                log_samples=True,
                fail_on_error=False,
                tags=["qualify"],
                display="none",
                **options,
            )
        except Exception as error:  # a provider raises whatever it likes over a name or a key
            raise DataError(
                f"{condition}: the run could not start: {_one_line(str(error))}"
            ) from error
    return log


def answers(log: EvalLog, condition: Condition, settings: QualifySettings) -> Iterator[Asked]:
    """Yield what came of every sample of a run.

    Args:
        log: With its samples.
        condition: What the run was.
        settings: How the answers are judged.
    """
    for sample in log.samples or []:
        metadata = sample.metadata
        failed = Asked(condition, str(metadata["fixture"]), str(metadata["probe_id"]), sample.epoch)
        found = sample.store_as(ProbeRecord).sample
        if sample.error is not None or found is None:
            message = sample.error.message if sample.error else "nothing was recorded"
            yield replace(failed, failure=_one_line(message))
            continue
        record = Sample(found, [])
        known = replace(
            failed,
            cut=found.cut,
            digest=verdict_digest(found.digests["fixture"], found.probe, found.cut),
            model=record.answer.model,
        )
        yield _judged(known, sample, record, settings)


def _judged(known: Asked, sample: EvalSample, record: Sample, settings: QualifySettings) -> Asked:
    if known.condition == "tail" and record.state.status in ("not_applied", "not_smaller"):
        return replace(known, nothing_removed=True)
    failure = record.compression_failure or record.answer_failure
    if failure:
        return replace(known, failure=failure)
    facts = _values(sample, "fact_retention")
    share = facts.get("fact_recall", math.nan)
    if math.isnan(share):
        return replace(known, failure="the facts were not looked up")
    if settings.grader is None:
        violations = facts.get("fact_violations", math.nan)
        clean = math.isnan(violations) or violations == 0
        return replace(known, fact_share=share, passed=share == 1 and clean)
    grades = _values(sample, "six_dimensions")
    scores = [grades.get(key, math.nan) for key in _RUBRIC_KEYS]
    if any(math.isnan(score) for score in scores):
        score = (sample.scores or {}).get("six_dimensions")
        reason = score.reason if score and score.reason else "the grader gave no score"
        return replace(known, failure=reason)
    return replace(known, fact_share=share, passed=min(scores) >= settings.threshold)


def _values(sample: EvalSample, scorer: str) -> dict[str, float]:
    score: Score | None = (sample.scores or {}).get(scorer)
    if score is None or not isinstance(score.value, dict):
        return {}
    return {
        key: float(value) for key, value in score.value.items() if isinstance(value, int | float)
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200] or "unknown error"
