"""What a sample's row in a frame holds, and where in the log each value comes from."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from inspect_ai.analysis import Column, SampleColumn
from inspect_ai.log import EvalSample, read_eval_log_sample
from inspect_ai.model import ModelUsage
from inspect_ai.scorer import Score

from compression_eval.analysis.arms import decisive
from compression_eval.fixtures.digests import digest
from compression_eval.grading.fact_retention import READ_KEYS
from compression_eval.grading.rubric import KNOWLEDGE, knowledge, structure
from compression_eval.grading.six_dimensions import NO_KNOWLEDGE, OVERALL
from compression_eval.grading.six_dimensions_report import SIX_DIMENSIONS
from compression_eval.record import Recorded, SampleRecord, recorded_in

Cell = str | int | float | bool | None

_PINNED = ("parameters", "config")
"""What of a grader decides its scores, beside the model."""

Regradings = Mapping[tuple[str, str, int], Score]
"""Scores of the rubric that take the place of those in logs, by path, sample id and epoch."""

_RUBRIC = "six_dimensions"


@dataclass(frozen=True)
class Seen:
    """A sample with the parts of it that columns are made of."""

    sample: EvalSample
    """Perhaps without its events, which are most of a log."""
    path: str = ""
    """The log that it is in."""
    regradings: Regradings | None = None
    """What takes the place of the rubric's scores in the log; None to take those."""

    @cached_property
    def recorded(self) -> Recorded | None:
        """What the log holds of it; None for a sample that did not get as far."""
        found = recorded_in(self.sample)
        if found is None and self.sample.scores and self.path:
            # Inspect recovered it from a killed run: only its events tell of it.
            whole = read_eval_log_sample(self.path, self.sample.id, self.sample.epoch)
            found = recorded_in(whole)
        return found

    @property
    def record(self) -> SampleRecord | None:
        """What the run recorded; None for a sample that did not get as far."""
        return self.recorded.record if self.recorded else None

    @cached_property
    def gradings(self) -> list[Score]:
        """The rubric's scores, the first one and those that were appended later."""
        found = {
            int(match[1] or 0): score
            for name, score in (self.sample.scores or {}).items()
            if (match := SIX_DIMENSIONS.fullmatch(name))
        }
        kept = [found[number] for number in sorted(found)]
        if self.regradings is None:
            return kept
        again = self.regradings.get((self.path, str(self.sample.id), self.sample.epoch))
        # What was not graded again has no grade; the log may say why.
        return [again] if again else [score for score in kept[:1] if score.reason]

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """What the grading says about itself."""
        return (self.gradings[0].metadata or {}) if self.gradings else {}

    def score(self, scorer: str, key: str) -> float | None:
        """Return a value of a scorer; None if it is not there or not a number."""
        score = (self.sample.scores or {}).get(scorer)
        if self.regradings is not None and scorer == _RUBRIC:
            score = self.gradings[0] if self.gradings else None
        return number(score, key)

    def described(self, key: str) -> Cell:
        """Return a value of the sample's metadata."""
        return cast(Cell, (self.sample.metadata or {}).get(key))

    @cached_property
    def failure(self) -> str:
        """Why the sample has no score; empty if it has one."""
        if self.sample.error is not None:
            return f"error: {self.sample.error.message.splitlines()[0][:200]}"
        if self.sample.limit is not None:
            return f"limit: {self.sample.limit.type}"
        if not self.gradings:
            return "not scored"
        if self.score(_RUBRIC, OVERALL) is None:
            return self.gradings[0].reason or "no score"
        if self.score(_RUBRIC, KNOWLEDGE) is None:
            return NO_KNOWLEDGE
        return ""

    @property
    def dollars(self) -> float | None:
        """What the sample's model calls cost; None unless the run knew the price of all of them."""
        costs = [usage.total_cost for usage in self.sample.model_usage.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def usage(self, role: str) -> ModelUsage | None:
        """Return the tokens of a role; those of the model under test are its one answer's.

        What the roles leave over of the sample's total would not do: a compression or grading that
        is left to the model under test has no role.
        """
        if role != "answerer":
            return self.sample.role_usage.get(role)
        output = self.recorded.output if self.recorded else self.sample.output
        return output.usage or ModelUsage()


def number(score: Score | None, key: str) -> float | None:
    """Return one value of a score; None if it is not there or was not graded.

    Logs from before knowledge was a key have the dimensions that it is made of.
    """
    values = score.value if score and isinstance(score.value, dict) else {}
    value = values.get(key)
    if key == KNOWLEDGE and key not in values:
        known = {name: number(score, name) for name in structure().dimensions}
        found = knowledge({name: value for name, value in known.items() if value is not None})
        value = round(found, 3)
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    return float(value)


def graded_by(score: Score) -> str | None:
    """Return the models that made a grading, each with its parameters where the log has them.

    None where nothing was graded, because something failed before.
    """
    graders = (score.metadata or {}).get("graders")
    named = []
    for grader in graders if isinstance(graders, list) else []:
        pinned = {key: grader.get(key) for key in _PINNED}
        given = {
            key: decisive(value) if isinstance(value, Mapping) else value
            for key, value in pinned.items()
        }
        given = {key: value for key, value in given.items() if value}
        settings = f" {json.dumps(given, sort_keys=True)}" if given else ""
        named.append(f"{grader.get('model')}{settings}")
    return ", ".join(named) or None


def _of_record(read: Callable[[SampleRecord], Cell]) -> Callable[[Seen], Cell]:
    return lambda seen: None if seen.record is None else read(seen.record)


def _described(key: str) -> Callable[[Seen], Cell]:
    return lambda seen: seen.described(key)


def _scored(scorer: str, key: str) -> Callable[[Seen], Cell]:
    return lambda seen: seen.score(scorer, key)


def _setting(key: str) -> Callable[[Seen], Cell]:
    return lambda seen: cast(Cell, seen.settings.get(key))


def _criteria(seen: Seen, *, ungraded: bool = False) -> Cell:
    """Count the criteria of the first grading; None where nothing was graded."""
    results = seen.settings.get("criterionResults") or []
    without = [result for result in results if result.get("score") is None]
    return len(without if ungraded else results) if results else None


def _tokens(role: str, field: str) -> Callable[[Seen], Cell]:
    def read(seen: Seen) -> Cell:
        usage = seen.usage(role)
        return cast(Cell, getattr(usage, field)) if usage is not None else None

    return read


def _of_cycles(field: str) -> Callable[[Seen], Cell]:
    """Add up what the compressions of a state cost; `frames.joined` keeps it on one sample."""

    def read(record: SampleRecord) -> Cell:
        return cast(Cell, sum(getattr(cycle, field) for cycle in record.state.cycles))

    return _of_record(read)


def _probe_digest(record: SampleRecord) -> Cell:
    # A verdict on a probe changes nothing of what is asked.
    return digest(record.probe.model_copy(update={"qualification": None}))


def _digest(key: str) -> Callable[[Seen], Cell]:
    return _of_record(lambda record: record.digests.get(key))


def _removed(record: SampleRecord) -> Cell:
    state = record.state
    if state.status != "ok" or not state.original_tokens:
        return None
    return 1 - state.state_tokens / state.original_tokens


SAMPLE_COLUMNS: dict[str, Callable[[Seen], Cell]] = {
    "sample": lambda seen: str(seen.sample.id),
    "sample_uuid": lambda seen: seen.sample.uuid,
    "epoch": lambda seen: seen.sample.epoch,
    "fixture": _described("fixture"),
    "cut": _described("cut"),
    "cycles": _described("cycles"),
    "probe_id": _described("probe_id"),
    "probe_type": _described("probe_type"),
    "task_type": _described("task_type"),
    "language": _described("language"),
    "length": _described("length"),
    "qualified": _described("qualified"),
    "region": _described("region"),
    "question": _of_record(lambda record: record.probe.question),
    "answer": _of_record(lambda record: record.answer.text if record.answer else None),
    "answer_cut_off": _of_record(lambda record: bool(record.answer and record.answer.cut_off)),
    "replicate": _of_record(lambda record: record.replicate),
    "state_id": _of_record(lambda record: record.state.state_id),
    "state_status": _of_record(lambda record: record.state.status),
    "suspect": _of_record(lambda record: "; ".join(record.state.suspect)),
    "computed_here": _of_record(lambda record: record.state.computed_here),
    "failure": lambda seen: seen.failure,
    "scored": lambda seen: not seen.failure,
    KNOWLEDGE: _scored("six_dimensions", KNOWLEDGE),
    OVERALL: _scored("six_dimensions", OVERALL),
    **{name: _scored("six_dimensions", name) for name in structure().dimensions},
    "fact_recall": _scored("fact_retention", "fact_recall"),
    "fact_survival": _scored("fact_retention", "fact_survival"),
    "fact_violations": _scored("fact_retention", "fact_violations"),
    **{name: _scored("fact_retention", name) for name in READ_KEYS},
    "abstained": _setting("abstained"),
    "criteria_asked": _criteria,
    "criteria_ungraded": lambda seen: _criteria(seen, ungraded=True),
    "gradings": lambda seen: len(seen.gradings),
    "token_counter": _of_record(lambda record: record.state.token_counter),
    "tokens_original": _of_record(lambda record: record.state.original_tokens),
    "tokens_state": _of_record(
        lambda record: record.state.state_tokens if record.state.status == "ok" else None
    ),
    "tokens_removed": _of_record(_removed),
    "compress_calls": _of_cycles("model_calls"),
    "compress_input_tokens": _of_cycles("input_tokens"),
    "compress_output_tokens": _of_cycles("output_tokens"),
    "compress_seconds": _of_cycles("seconds"),
    "answer_input_tokens": _tokens("answerer", "input_tokens"),
    "answer_output_tokens": _tokens("answerer", "output_tokens"),
    "answer_cache_read_tokens": _tokens("answerer", "input_tokens_cache_read"),
    "grader_input_tokens": _tokens("grader", "input_tokens"),
    "grader_output_tokens": _tokens("grader", "output_tokens"),
    "grader_cache_read_tokens": _tokens("grader", "input_tokens_cache_read"),
    "dollars": lambda seen: seen.dollars,
    "total_seconds": lambda seen: seen.sample.total_time,
    "self_graded": _setting("self_graded"),
    "graded_by": lambda seen: graded_by(seen.gradings[0]) if seen.gradings else None,
    "criteria": _setting("criteria"),
    "grader_context": _setting("grader_context"),
    "rubric_language": _setting("language"),
    "rubric_digest": _setting("rubric_digest"),
    "fixture_digest": _digest("fixture"),
    "bank_digest": _digest("bank"),
    "probe_digest": _of_record(_probe_digest),
    "question_digest": _digest("question_preamble"),
    "prompts_digest": _digest("compressor_prompts"),
}
"""Every column that comes from a sample, by name."""

NUMBERS: tuple[str, ...] = (
    KNOWLEDGE,
    OVERALL,
    *structure().dimensions,
    *(
        name
        for name in SAMPLE_COLUMNS
        if name.startswith(("fact_", "tokens_", "compress_", "criteria_"))
    ),
    *(name for name in SAMPLE_COLUMNS if name.endswith(("_tokens", "_seconds"))),
    "dollars",
)
"""Columns of numbers that may be missing: floats in a frame, NaN where they are."""


def inspect_columns(
    columns: Mapping[str, Callable[[Seen], Cell]], path: str, regradings: Regradings | None = None
) -> list[Column]:
    """Return columns for Inspect's `samples_df` of a log; each sample is looked into once."""
    last: list[Seen] = []

    def seen(sample: EvalSample) -> Seen:
        if not last or last[0].sample is not sample:
            last[:] = [Seen(sample, path, regradings)]
        return last[0]

    def column(name: str, read: Callable[[Seen], Cell]) -> Column:
        def from_sample(sample: EvalSample) -> Cell:
            return read(seen(sample))

        return SampleColumn(name, path=from_sample, full=True)

    return [column(name, read) for name, read in columns.items()]
