"""The scorer of the second answer, for which the model could fetch from the history again.

It grades that answer as `six_dimensions` grades the first, says which facts it has more, and how
many calls and tokens that took.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from inspect_ai.scorer import Metric, Score, Scorer, scorer
from inspect_ai.solver import TaskState

from compression_eval.facts.life import follow_facts
from compression_eval.fixtures.models import Language
from compression_eval.grading.judgement import AnswerWords, answer_words
from compression_eval.grading.metrics import over_conversations
from compression_eval.grading.request import GraderContext, GradingSettings
from compression_eval.grading.rubric import KNOWLEDGE, CriteriaMode
from compression_eval.grading.scorers import grade_answer, recall
from compression_eval.record import Recorded, RefetchRecord, scoring
from compression_eval.text.markdown import escaped

REFETCH_FAILED = "refetch_failed"
"""Begins the reason of a sample without a second answer."""

REFETCH_KEYS = (
    *("recall_before", "recall_after", "correct_before", "correct_after", "knowledge_after"),
    *("fetch_calls", "fetch_tokens"),
)
"""Keys of the score of `refetch`."""


def refetch_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of `refetch`: means over conversations."""
    return {key: [over_conversations()] for key in REFETCH_KEYS}


@scorer(metrics=refetch_metrics())
def refetch(
    criteria: CriteriaMode = "by_type",
    grader_context: GraderContext = "state",
    language: Language | None = None,
) -> Scorer:
    """Grade the answer that was given with tools, as `six_dimensions` grades the one without.

    ``recall_before`` and ``recall_after`` are the shares of the probe's facts that the first and
    the second answer state (0 to 1): by the word of a language model that graded, else by look-up.
    ``correct_before`` and ``correct_after`` are 1 for an answer that states all of them and gives
    no superseded or forbidden value as current, else 0; such values are only looked for where a
    language model graded. ``knowledge_after`` is what the graders give the second answer (0 to 5),
    ``fetch_calls`` the number of its tool calls, ``fetch_tokens`` input and output of all its
    requests as the provider tells. A value that is not known is NaN.

    A sample without a second answer is unscored with a reason, and so is one whose second answer
    no grader could judge.

    Args:
        criteria: See `GradingSettings`; the same the following two.
        grader_context: What of the state graders are shown.
        language: Of the rubric.
    """
    settings = GradingSettings(criteria, grader_context, language)

    async def score(sample: Recorded, state: TaskState) -> Score:
        fetched = sample.record.refetch
        if fetched is None:
            reason = sample.compression_failure or sample.answer_failure
            return Score.unscored(reason=reason or f"{REFETCH_FAILED}: it was not begun")
        if problem := fetched.answer.problem:
            return Score.unscored(
                reason=f"{REFETCH_FAILED}: {problem.removeprefix('answer_failed: ')}",
                explanation=_fetching(fetched),
            )
        second = replace(sample, record=sample.record.model_copy(update={"answer": fetched.answer}))
        graded = await grade_answer(second, settings)
        if not isinstance(graded.value, dict):
            return Score.unscored(
                reason=graded.reason,
                answer=fetched.answer.text,
                explanation="\n\n".join([_fetching(fetched), graded.explanation or ""]),
                metadata={"grading": graded.metadata},
            )
        before = _held(sample, answer_words(state.scores))
        after = _held(second, answer_words({"six_dimensions": graded}))
        pairs = [(fact, before.stated[fact], now) for fact, now in after.stated.items()]
        changed = {
            "recovered": [fact for fact, first, now in pairs if now and first is False],
            "still_missed": [fact for fact, first, now in pairs if not now and first is False],
            "lost_again": [fact for fact, first, now in pairs if first and not now],
        }
        tokens = fetched.input_tokens, fetched.output_tokens
        knowledge = graded.value.get(KNOWLEDGE)
        return Score(
            value={
                "recall_before": before.recall,
                "recall_after": after.recall,
                "correct_before": before.correct,
                "correct_after": after.correct,
                "knowledge_after": float(knowledge)
                if isinstance(knowledge, int | float)
                else math.nan,
                "fetch_calls": float(sum(fetched.calls.values())),
                "fetch_tokens": math.nan if None in tokens else float(sum(n for n in tokens if n)),
            },
            answer=fetched.answer.text,
            explanation="\n\n".join(
                [_facts(changed), _fetching(fetched), graded.explanation or ""]
            ),
            metadata={**changed, "grading": graded.metadata},
        )

    return scoring(score)


class _Held(NamedTuple):
    """The facts in one of the two answers."""

    stated: dict[str, bool | None]
    """Whether the answer states each expected fact; None if that is not known."""
    recall: float
    correct: float


def _held(sample: Recorded, words: AnswerWords) -> _Held:
    """Return which facts an answer states: by a language model's word, else by look-up."""
    probe = sample.probe
    findings = follow_facts(probe, sample.state.facts, sample.answer_text, graded=words.of(probe))
    stated = {f.fact.fact: f.in_answer_read if words.by_model else f.in_answer for f in findings}
    right = all(stated.values()) and not words.violations(probe)
    known = stated and None not in stated.values()
    return _Held(stated, recall(findings, words), float(right) if known else math.nan)


def _facts(changed: Mapping[str, Sequence[str]]) -> str:
    lines = [
        f"- **{escaped(fact)}** {kind.replace('_', ' ')}"
        for kind, facts in changed.items()
        for fact in facts
    ]
    return "\n".join(lines) or "No fact was stated in one of the answers only, or missed in both."


def _fetching(fetched: RefetchRecord) -> str:
    """Return what was fetched and what it took, as Markdown."""
    calls = ", ".join(f"{escaped(name, 40)} {n}" for name, n in fetched.calls.items()) or "none"
    names = [
        f"message {item.message}{' (in the state)' if item.in_state else ''}"
        if item.message is not None
        else f"{escaped(item.path, 120)}{'' if item.known else ' (new to the history)'}"
        for item in fetched.fetched
    ]
    lines = [
        f"Calls: {calls}" + (f"; {fetched.failed_calls} failed" if fetched.failed_calls else ""),
        f"Requests {fetched.requests}: tokens in {fetched.input_tokens}, out "
        f"{fetched.output_tokens}; {fetched.fetched_tokens} tokens fetched",
        f"Fetched: {', '.join(names) or 'nothing'}",
    ]
    if fetched.limit_reached:
        lines.append(f"The limit of {fetched.limit_reached} was reached.")
    if fetched.answer.failure:
        lines.append(f"Failed: {escaped(fetched.answer.failure)}")
    return "\n\n".join(lines)
