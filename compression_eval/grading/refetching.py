"""The scorer of the second answer, for which the model could fetch from the history again."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspect_ai.scorer import Metric, Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from compression_eval.facts.life import follow_facts
from compression_eval.fixtures.models import Language
from compression_eval.grading.judgement import AnswerWords, answer_words
from compression_eval.grading.metrics import over_conversations
from compression_eval.grading.panel import graders_for
from compression_eval.grading.request import GraderContext
from compression_eval.grading.rubric import KNOWLEDGE, CriteriaMode
from compression_eval.grading.scorers import grade_answer
from compression_eval.record import Recorded, RefetchRecord, nothing_recorded, read_sample
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
    the second answer state (0 to 1): by the grader's word where there is one, else by look-up.
    ``correct_before`` and ``correct_after`` are 1 for an answer that states all of them and gives
    no superseded or forbidden value as current, else 0. ``knowledge_after`` is what the graders
    give the second answer (0 to 5), ``fetch_calls`` the number of its tool calls, ``fetch_tokens``
    input and output of all its requests as the provider tells. A value that is not known is NaN.

    A sample without a second answer is unscored with a reason, and so is one whose second answer
    no grader could judge.

    Args:
        criteria: As of `six_dimensions`; likewise the following two.
        grader_context: What of the state graders are shown.
        language: Of the rubric.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        sample = read_sample(state)
        if sample is None:
            return nothing_recorded()
        fetched = sample.record.refetch
        if fetched is None:
            reason = sample.compression_failure or sample.answer_failure
            return Score.unscored(reason=reason or f"{REFETCH_FAILED}: it was not begun")
        if problem := fetched.answer.problem:
            return Score.unscored(
                reason=f"{REFETCH_FAILED}: {problem.removeprefix('answer_failed: ')}",
                explanation=_fetching(fetched),
            )
        return await _score(sample, fetched, state.scores, criteria, grader_context, language)

    return score


async def _score(
    sample: Recorded,
    fetched: RefetchRecord,
    scores: Mapping[str, Score] | None,
    criteria: CriteriaMode,
    grader_context: GraderContext,
    language: Language | None,
) -> Score:
    second = replace(sample, record=sample.record.model_copy(update={"answer": fetched.answer}))
    graded = await grade_answer(
        second,
        graders_for(fetched.answer.model),
        criteria=criteria,
        grader_context=grader_context,
        language=language,
    )
    if not isinstance(graded.value, dict):
        return Score.unscored(
            reason=graded.reason,
            answer=fetched.answer.text,
            explanation="\n\n".join([_fetching(fetched), graded.explanation or ""]),
            metadata={"grading": graded.metadata},
        )
    words = answer_words(scores), answer_words({"six_dimensions": graded})
    before, after = _stated_by(sample, words[0]), _stated_by(second, words[1])
    facts = [fact.fact for fact in sample.probe.expected_facts]
    pairs = list(zip(facts, before, after, strict=True))
    told = {
        "recovered": [fact for fact, first, now in pairs if now and first is False],
        "still_missed": [fact for fact, first, now in pairs if not now and first is False],
        "lost_again": [fact for fact, first, now in pairs if first and not now],
    }
    tokens = fetched.input_tokens, fetched.output_tokens
    knowledge = graded.value.get(KNOWLEDGE)
    return Score(
        value={
            "recall_before": _share(before),
            "recall_after": _share(after),
            "correct_before": _correct(sample, before, words[0]),
            "correct_after": _correct(second, after, words[1]),
            "knowledge_after": float(knowledge) if isinstance(knowledge, int | float) else math.nan,
            "fetch_calls": float(sum(fetched.calls.values())),
            "fetch_tokens": math.nan if None in tokens else float(sum(n for n in tokens if n)),
        },
        answer=fetched.answer.text,
        explanation="\n\n".join([_facts(told), _fetching(fetched), graded.explanation or ""]),
        metadata={**told, "grading": graded.metadata},
    )


def _stated_by(sample: Recorded, words: AnswerWords) -> list[bool | None]:
    """Return for each expected fact whether the answer states it; None without an answer."""
    probe = sample.probe
    findings = follow_facts(probe, sample.state.facts, sample.answer_text, graded=words.of(probe))
    return [finding.stated for finding in findings]


def _correct(sample: Recorded, stated: Sequence[bool | None], words: AnswerWords) -> float:
    """Return whether an answer states all facts and no wrong value as current; NaN without one."""
    if None in stated or not stated:
        return math.nan
    return float(all(stated) and not words.violations(sample.probe))


def _share(stated: Sequence[bool | None]) -> float:
    known = stated and None not in stated
    return round(sum(map(bool, stated)) / len(stated), 3) if known else math.nan


def _facts(told: Mapping[str, Sequence[str]]) -> str:
    lines = [
        f"- **{escaped(fact)}** {kind.replace('_', ' ')}"
        for kind, facts in told.items()
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
