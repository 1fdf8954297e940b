"""The columns of a sample's row in a frame, and how each is read from the log.

`Seen` is a sample with what the columns read: its record, its scores, the log's settings. Below it
are the readers, from the record's fields to the scores. Cells with several values (facts, criteria,
gradings) are JSON, which `frames` unfolds into frames of their own.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from inspect_ai.log import EvalSample, read_eval_log_sample
from inspect_ai.model import ModelUsage
from inspect_ai.scorer import Score

from compression_eval.analysis.arms import decisive
from compression_eval.analysis.facts import rows_of_sample
from compression_eval.fixtures.digests import digest
from compression_eval.grading.failures import NO_KNOWLEDGE
from compression_eval.grading.rubric import KNOWLEDGE, OVERALL, gradings, knowledge, structure
from compression_eval.inspect_models import input_tokens
from compression_eval.record import Recorded, SampleRecord, recorded_in

Value = str | int | float | bool | None

FACTS, CRITERIA, GRADINGS = "facts_json", "criteria_json", "gradings_json"
"""Columns that hold, as JSON, several things of one sample; `frames` unfolds them."""

SETUP = ("criteria", "grader_context", "language", "rubric_digest")
"""Settings of a grading, by their names in a score's metadata."""

_RUBRIC = "six_dimensions"

SCORES: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions)
"""Values of a grading, 0 to 5."""
_DECIDES = {"recall": "grader", "survival": "reader"}
"""The language model whose word a share of facts is, if one was asked."""

PANEL = "panel"
"""What the graders came to together, in the place of a grader's name."""


@dataclass(frozen=True)
class Seen:
    """A sample with the parts that columns read."""

    sample: EvalSample
    """It may lack its events, which are most of a log."""
    path: str = ""
    """The log that it is in."""

    @cached_property
    def recorded(self) -> Recorded | None:
        """The sample's record with its messages; None for a sample without a state."""
        record = recorded_in(self.sample)
        if record is None and self.sample.scores and self.path:
            # Inspect recovered it from a killed run, so only its events contain the record.
            return recorded_in(read_eval_log_sample(self.path, self.sample.id, self.sample.epoch))
        return record

    @property
    def record(self) -> SampleRecord | None:
        """The sample's record; None for a sample without a state."""
        return self.recorded.record if self.recorded else None

    @cached_property
    def gradings(self) -> list[Score]:
        """The rubric's scores: the first, and those appended later."""
        return gradings(self.sample.scores)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the grading."""
        return (self.gradings[0].metadata or {}) if self.gradings else {}

    def score(self, scorer: str, key: str) -> float | None:
        """Return a value of a scorer; None if it is missing or not a number."""
        return number((self.sample.scores or {}).get(scorer), key)

    @cached_property
    def failure(self) -> str:
        """Why the sample has no score; empty if it has one, whatever ended the sample then."""
        if self.score(_RUBRIC, OVERALL) is not None:
            return NO_KNOWLEDGE if self.score(_RUBRIC, KNOWLEDGE) is None else ""
        if self.sample.error is not None:
            return f"error: {self.sample.error.message.splitlines()[0][:200]}"
        if self.sample.limit is not None:
            return f"limit: {self.sample.limit.type}"
        if not self.gradings:
            return "not scored"
        return self.gradings[0].reason or "no score"

    @property
    def dollars(self) -> float | None:
        """Cost of the sample's model calls; None unless the run knew all prices."""
        costs = [usage.total_cost for usage in self.sample.model_usage.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def usage(self, role: str) -> ModelUsage | None:
        """Return the tokens of a role; those of the model under test are its one answer's.

        What the roles leave over of the sample's total would not do: a compression or grading that
        is left to the model under test has no role.
        """
        if role != "answer":
            return self.sample.role_usage.get(role)
        output = self.recorded.output if self.recorded else self.sample.output
        return output.usage


def number(score: Score | None, key: str) -> float | None:
    """Return one value of a score; None if it is missing or was not graded.

    Logs from before knowledge was a key have the dimensions that it is made of.
    """
    values = score.value if score and isinstance(score.value, dict) else {}
    value = values.get(key)
    if key == KNOWLEDGE and key not in values:
        known = {name: number(score, name) for name in structure().dimensions}
        mean = knowledge({name: value for name, value in known.items() if value is not None})
        value = round(mean, 3)
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
        pinned = {key: grader.get(key) for key in ("parameters", "config")}
        pinned_settings = {
            key: decisive(value) if isinstance(value, Mapping) else value
            for key, value in pinned.items()
        }
        pinned_settings = {key: value for key, value in pinned_settings.items() if value}
        settings = f" {json.dumps(pinned_settings, sort_keys=True)}" if pinned_settings else ""
        named.append(f"{grader.get('model')}{settings}")
    return ", ".join(named) or None


Read = Callable[[Seen], Value]


def _of_record(read: Callable[[SampleRecord], Value]) -> Read:
    return lambda seen: None if seen.record is None else read(seen.record)


def _described(key: str) -> Read:
    return lambda seen: cast(Value, (seen.sample.metadata or {}).get(key))


def _scored(scorer: str, key: str) -> Read:
    return lambda seen: seen.score(scorer, key)


def _setting(key: str) -> Read:
    return lambda seen: cast(Value, seen.settings.get(key))


def _digest(key: str) -> Read:
    return _of_record(lambda record: record.digests.get(key))


def _tokens(role: str, field: str) -> Read:
    return lambda seen: cast(Value, getattr(seen.usage(role), field, None))


def _answer_tokens(seen: Seen) -> Value:
    usage = seen.usage("answer")
    return None if usage is None else input_tokens(usage) + usage.output_tokens


def _of_cycles(field: str) -> Read:
    """Add up what the compressions of a state cost; `frames.joined` keeps it on one sample."""
    return _of_record(lambda record: sum(getattr(cycle, field) for cycle in record.state.cycles))


def _criteria_count(seen: Seen, *, ungraded: bool = False) -> Value:
    """Count the criteria of the first grading; None if nothing was graded."""
    results = seen.settings.get("criterionResults") or []
    without = [result for result in results if result.get("score") is None]
    return len(without if ungraded else results) if results else None


def _fact_share(seen: Seen, name: str) -> Value:
    """Return a share of facts by the word of whoever decides; None if that one failed.

    Older logs have the look-up's share, and a language model's under a key of its own.
    """
    key = f"fact_{name}"
    old = _fact_values(seen).keys() >= {f"{key}_read"} and _fact_share_by(seen, name) != "look-up"
    return seen.score("fact_retention", f"{key}_read" if old else key)


def _fact_share_by(seen: Seen, name: str) -> Value:
    """Return whose word a share of facts is; None where facts were not scored."""
    values = _fact_values(seen)
    if not values:
        return None
    metadata = (seen.sample.scores or {})["fact_retention"].metadata or {}
    if told := metadata.get(f"{name}_by"):
        return cast(Value, told)
    if f"fact_{name}_read" not in values:
        return "look-up"
    # Whoever was asked has decided, although it may have failed on this sample.
    models = [metadata.get("state_reader")]
    if name == "recall":
        models = [grader.get("model") for grader in seen.settings.get("graders") or ()]
    asked = any(model and not str(model).startswith("embedded/") for model in models)
    return _DECIDES[name] if asked else "look-up"


def _fact_values(seen: Seen) -> Mapping[str, Any]:
    score = (seen.sample.scores or {}).get("fact_retention")
    return score.value if score and isinstance(score.value, dict) else {}


def _probe_digest(record: SampleRecord) -> Value:
    # A verdict on a probe does not change the question.
    return digest(record.probe.model_copy(update={"qualification": None}))


def _removed(record: SampleRecord) -> Value:
    state = record.state
    if state.status != "ok" or not state.original_tokens:
        return None
    return 1 - state.state_tokens / state.original_tokens


SAMPLE_COLUMNS: dict[str, Read] = {
    "sample": lambda seen: str(seen.sample.id),
    "sample_uuid": lambda seen: seen.sample.uuid,
    "epoch": lambda seen: seen.sample.epoch,
    **{
        name: _described(name)
        for name in (
            *("fixture", "cut", "cycles", "probe_id", "probe_type", "task_type", "language"),
            *("length", "qualified", "region"),
        )
    },
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
    **{name: _scored(_RUBRIC, name) for name in SCORES},
    "fact_recall": lambda seen: _fact_share(seen, "recall"),
    "fact_survival": lambda seen: _fact_share(seen, "survival"),
    "recall_by": lambda seen: _fact_share_by(seen, "recall"),
    "survival_by": lambda seen: _fact_share_by(seen, "survival"),
    **{name: _scored("fact_retention", name) for name in ("fact_violations", "fact_agreement")},
    "abstained": _setting("abstained"),
    "criteria_asked": _criteria_count,
    "criteria_ungraded": lambda seen: _criteria_count(seen, ungraded=True),
    "gradings": lambda seen: len(seen.gradings),
    "token_counter": _of_record(lambda record: record.state.token_counter),
    "tokens_original": _of_record(lambda record: record.state.original_tokens),
    "tokens_state": _of_record(
        lambda record: record.state.state_tokens if record.state.status == "ok" else None
    ),
    "tokens_removed": _of_record(_removed),
    "compress_calls": _of_cycles("model_calls"),
    **{
        f"compress_{name}": _of_cycles(name)
        for name in ("input_tokens", "output_tokens", "seconds")
    },
    **{
        f"{role}_{name}_tokens": _tokens(role, field)
        for role in ("answer", "grader")
        for name, field in (
            ("input", "input_tokens"),
            ("output", "output_tokens"),
            ("cache_read", "input_tokens_cache_read"),
        )
    },
    "answer_all_tokens": _answer_tokens,
    "refetch_tokens": _scored("refetch", "fetch_tokens"),
    "refetch_calls": _scored("refetch", "fetch_calls"),
    "refetch_recall": _scored("refetch", "recall_after"),
    "refetch_correct": _scored("refetch", "correct_after"),
    "refetch_knowledge": _scored("refetch", "knowledge_after"),
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

_NUMBER_NAMES = ("fact_", "refetch_", "tokens_", "compress_", "criteria_")

NUMBERS: tuple[str, ...] = (
    *(*SCORES, "dollars"),
    *(name for name in SAMPLE_COLUMNS if name.startswith(_NUMBER_NAMES)),
    *(name for name in SAMPLE_COLUMNS if name.endswith(("_tokens", "_seconds"))),
)
"""Columns of numbers that may be missing: floats in a frame, NaN where they are."""


def _facts_cell(seen: Seen) -> Value:
    """Return what became of every fact; None for a sample without a record."""
    if seen.record is None:
        return None
    return json.dumps(list(rows_of_sample(seen.record, seen.sample.epoch, seen.sample.scores)))


def _criteria_cell(seen: Seen) -> Value:
    """Return every criterion of every grading: of the panel as a whole, and of each grader."""
    rows: list[dict[str, Any]] = []
    for place, score in enumerate(seen.gradings):
        metadata = score.metadata or {}
        results_by_grader = [(PANEL, "graded", metadata.get("criterionResults"))]
        results_by_grader += [
            (grader.get("model"), "score", grader.get("criterionResults"))
            for grader in metadata.get("graders") or []
        ]
        rows.extend(
            {
                "grading": place,
                "criterion": result.get("criterionId"),
                "grader": grader,
                "score": result.get("score"),
                "graded": result.get(graded),
                "reasoning": result.get("reasoning"),
            }
            for grader, graded, results in results_by_grader
            for result in results or []
        )
    return json.dumps(rows, ensure_ascii=False)


def _gradings_cell(seen: Seen) -> Value:
    """Return the scores and settings of every grading."""
    rows = [
        {
            "grading": place,
            "graded_by": graded_by(score),
            **{name: (score.metadata or {}).get(name) for name in SETUP},
            **{key: number(score, key) for key in SCORES},
        }
        for place, score in enumerate(seen.gradings)
    ]
    return json.dumps(rows, ensure_ascii=False)


FOLDED: dict[str, Read] = {
    FACTS: _facts_cell,
    CRITERIA: _criteria_cell,
    GRADINGS: _gradings_cell,
}
"""Columns that are unfolded after reading, by name."""
