"""The scorer that follows each expected fact: by look-ups, and by a reader of the state."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import anyio
from inspect_ai.scorer import Metric, Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from compression_eval.facts.life import (
    AnswerWord,
    FactWords,
    follow_facts,
)
from compression_eval.facts.stale import violations, wrong_values
from compression_eval.fixtures.errors import DataError
from compression_eval.grading.fact_explanation import explain
from compression_eval.grading.markdown import escaped
from compression_eval.grading.metrics import over_conversations
from compression_eval.grading.panel import graders_for
from compression_eval.grading.rubric import value_markers
from compression_eval.grading.sample import Sample, nothing_recorded, read_sample
from compression_eval.grading.six_dimensions_report import answer_words
from compression_eval.grading.state_reader import SharedReadings, StateFacts, StateReading
from compression_eval.grading.verdicts import by_verdict
from compression_eval.record import AskedProbe

READ_KEYS = ("fact_recall_read", "fact_survival_read", "fact_agreement")
"""Keys whose values rest on the words of a language model; NaN where none was asked."""

KEYS = ("fact_recall", "fact_survival", "fact_violations", *READ_KEYS)
"""Keys of the score, on every sample that has one."""


def fact_retention_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key: mean over conversations, its error, and means by verdict."""
    return {
        # Most banks name few wrong values, and means over no probe at all would stand there as NaN.
        key: [
            over_conversations(),
            *([by_verdict()] if key in ("fact_recall", "fact_survival") else []),
        ]
        for key in KEYS
    }


@scorer(metrics=fact_retention_metrics())
def fact_retention(state_facts: StateFacts | None = None) -> Scorer:
    """Look the expected facts up in the state and in the answer, and have the state read.

    ``fact_recall`` is the share of the probe's facts that the answer holds, ``fact_survival`` the
    share that the state holds (both 0 to 1), ``fact_violations`` the number of superseded or
    forbidden values that the answer gives as current. What cannot be known is NaN: recall and
    violations without an answer, survival in a state that cannot be read, violations where the
    probe names no such value. A failed compression leaves the sample unscored.

    Beside them stand the words of language models: ``fact_survival_read`` is the share of the facts
    that a reader says the state holds, stated or derivable; ``fact_recall_read`` the share that the
    grader says the answer states; ``fact_agreement`` the share of which look-up and reader say the
    same of the state. They leave out facts without a word and are NaN without any. A reader that
    fails changes no other score; its failure is in the metadata.

    Args:
        state_facts: ``reader`` has the first model of the role ``grader`` read each state, in one
            call for all its probes; ``match`` looks up only. By default ``reader`` where that is
            a language model.

    Raises:
        DataError: The argument is none of these.
    """
    if state_facts not in (None, *get_args(StateFacts)):
        allowed = ", ".join(get_args(StateFacts))
        raise DataError(f"state_facts: {state_facts!r} is not one of {allowed}")
    readings = SharedReadings()

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
        failure = sample.compression_failure
        read = await _read(sample, state_facts, readings)
        findings = follow_facts(
            sample.probe,
            sample.facts,
            sample.answer_text,
            value_markers(sample.record.language),
            failed=failure is not None,
            words=_words(
                sample,
                read.reading if read else None,
                answer_words(state.scores, sample.probe),
            ),
        )
        # An answer may be as long as a looping model makes it.
        wrong = await anyio.to_thread.run_sync(_violations, sample)
        explanation = explain(findings, wrong, sample.record.cut, read.note if read else "")
        metadata = {
            "facts": [finding.row(sample.record.cut) for finding in findings],
            "violations": wrong,
            **(read.metadata(sample) if read else {}),
        }
        if failure:
            return Score.unscored(reason=failure, explanation=explanation, metadata=metadata)
        return Score(
            value={
                "fact_recall": _share([finding.in_answer for finding in findings]),
                "fact_survival": _share([finding.in_state for finding in findings]),
                "fact_violations": math.nan if wrong is None else float(len(wrong)),
                "fact_recall_read": _share_of_known([f.in_answer_read for f in findings]),
                "fact_survival_read": _share_of_known([f.in_state_read for f in findings]),
                "fact_agreement": _share_of_known([f.agreed for f in findings]),
            },
            answer=sample.answer_text,
            explanation=explanation,
            reason=sample.answer_failure,
            metadata=metadata,
        )

    return score


@dataclass(frozen=True)
class _Read:
    """A reading as one sample has it."""

    reading: StateReading
    made_here: bool
    """Whether this sample's transcript holds the calls."""

    @property
    def note(self) -> str:
        """What the viewer says of it."""
        reader = escaped(self.reading.reader)
        if self.reading.failure:
            return f"The state reader {reader} failed: {escaped(self.reading.failure)}."
        calls = "1 call" if self.reading.calls == 1 else f"{self.reading.calls} calls"
        return f"State read by {reader} ({calls}{'' if self.made_here else ' of another sample'})."

    def metadata(self, sample: Sample) -> dict[str, Any]:
        """Return what the log keeps of it; plain values, which its summaries keep too."""
        return {
            "state_id": sample.state.state_id,
            "state_reader": self.reading.reader,
            "state_reader_calls": self.reading.calls if self.made_here else 0,
            "state_reader_failure": self.reading.failure,
        }


async def _read(
    sample: Sample, state_facts: StateFacts | None, readings: SharedReadings
) -> _Read | None:
    """Return the reading of the sample's state; None where nothing is to be read."""
    state = sample.state
    if state_facts == "match" or sample.compression_failure or not state.readable:
        return None
    if not sample.probe.expected_facts or not any(message.text for message in sample.context):
        return None
    reader, *_ = graders_for(sample.answer.model)
    if reader.embedded:
        if state_facts is None:
            return None
        failed = StateReading(reader.name, 0, failure="the embedded model is no language model")
        return _Read(failed, made_here=True)
    reading, made_here = await readings.get(
        reader.model,
        context=sample.context,
        regions=state.regions,
        asked=state.asked or [AskedProbe.of(sample.probe)],
        language=sample.record.language,
        state_id=state.state_id,
    )
    return _Read(reading, made_here)


def _words(
    sample: Sample, reading: StateReading | None, answers: Sequence[AnswerWord | None]
) -> list[FactWords]:
    found = list(reading.findings.get(sample.probe.id, ())) if reading else []
    return [
        FactWords(state=found[place] if place < len(found) else None, answer=answer)
        for place, answer in enumerate(answers)
    ]


def _violations(sample: Sample) -> list[str] | None:
    """Return the wrong values that the answer gives as current; None if there can be none."""
    if sample.answer_text is None or not wrong_values(sample.probe):
        return None
    return violations(sample.probe, sample.answer_text, value_markers(sample.record.language))


def _share(known: list[bool | None]) -> float:
    """Return the share of ``True``; NaN if anything is not known, because it would be a guess."""
    if not known or any(item is None for item in known):
        return math.nan
    return round(sum(bool(item) for item in known) / len(known), 3)


def _share_of_known(known: list[bool | None]) -> float:
    """Return the share of ``True`` among what is known; NaN if nothing is."""
    return _share([item for item in known if item is not None])
