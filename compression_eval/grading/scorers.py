"""The scorers: what compression did, which facts came through, and what the answer is worth.

They read only what the log contains, so a log can be scored again. What failed is never a low
score: it is unscored with a reason, and values that cannot be known are NaN.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import anyio
from inspect_ai.scorer import Metric, Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState

from compression_eval.facts.life import FactFinding, age_group, follow_facts
from compression_eval.fixtures.models import Language
from compression_eval.grading.failures import NO_KNOWLEDGE
from compression_eval.grading.judgement import (
    AnswerWords,
    answer_words,
    explained,
    given_as_current,
    judge,
)
from compression_eval.grading.metrics import (
    NO_VERDICT,
    REGION,
    VERDICT,
    by_verdict,
    failed_states,
    interval,
    over_conversations,
    panel_agreement,
    ungraded_criteria,
)
from compression_eval.grading.panel import grade_with_panel, graders, is_embedded, warn_of
from compression_eval.grading.request import (
    GraderContext,
    GradingSettings,
    check_choice,
    grading_request,
)
from compression_eval.grading.rubric import (
    KNOWLEDGE,
    OVERALL,
    CriteriaMode,
    load_rubric,
    rubric_digest,
    structure,
)
from compression_eval.grading.state_reader import (
    SharedReadings,
    StateFacts,
    StateQuestion,
    StateReading,
)
from compression_eval.record import AskedProbe, Recorded, StateRecord, scoring
from compression_eval.text.markdown import escaped, number, yes_no

MODEL_KEYS = ("fact_violations", "fact_agreement")
"""Keys whose values only a language model can give; NaN where none was asked."""

FACT_KEYS = ("fact_recall", "fact_survival", *MODEL_KEYS)
"""Keys of the score of `fact_retention`, on every sample that has one."""

DIMENSION_KEYS: tuple[str, ...] = (KNOWLEDGE, OVERALL, *structure().dimensions)
"""Keys of the score of `six_dimensions`, on every sample that has one."""


def compression_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of `compression`: means over conversations, a count of failed states."""
    return {
        "tokens_removed": [over_conversations()],
        "tokens_retained": [over_conversations()],
        "failed_states": [failed_states()],
    }


@scorer(metrics=compression_metrics())
def compression() -> Scorer:
    """Report the compression of the sample's state; calls no model.

    ``tokens_removed`` is the share of the history's tokens that is gone (0 to 1),
    ``tokens_retained`` the size of the state in tokens; both are NaN for a failed compression.
    ``failed_states`` is 1 for a failed compression and 0 otherwise.
    """

    async def score(sample: Recorded, _: TaskState) -> Score:
        record, compressed = sample.record, sample.state
        removed = math.nan
        if compressed.original_tokens:
            removed = round(1 - compressed.state_tokens / compressed.original_tokens, 4)
        failure = sample.compression_failure
        return Score(
            value={
                "tokens_removed": math.nan if failure else removed,
                "tokens_retained": math.nan if failure else float(compressed.state_tokens),
                "failed_states": 1 if failure else 0,
            },
            reason=failure,
            explanation=_compression_explained(compressed, removed),
            metadata={
                "fixture": record.fixture,
                "cut": record.cut,
                "replicate": record.replicate,
                "state_id": compressed.state_id,
                "status": compressed.status,
                "failure": compressed.failure,
                "suspect": list(compressed.suspect),
                "token_counter": compressed.token_counter,
                "original_tokens": compressed.original_tokens,
                "state_tokens": compressed.state_tokens,
            },
        )

    return scoring(score)


def _compression_explained(state: StateRecord, removed: float) -> str:
    """Return a line per compression of a chain, and the overall outcome, as Markdown."""
    lines = [
        f"- cut {cycle.cut}: {escaped(cycle.applied)}"
        + (f" ({escaped(cycle.fallback_reason)})" if cycle.fallback_reason else "")
        + f"; tokens {cycle.tokens_before} → {cycle.tokens_after}; messages "
        f"{cycle.messages_before} → {cycle.messages_after}; model calls {cycle.model_calls} "
        f"(tokens in {cycle.input_tokens}, out {cycle.output_tokens}); "
        f"{number(cycle.seconds)} seconds"
        for cycle in state.cycles
    ]
    failure = f": {escaped(state.failure)}" if state.failure else ""
    notes = [
        f"Status: {state.status}{failure}",
        f"History {state.original_tokens} tokens, state {state.state_tokens} tokens, "
        f"removed {number(removed)}; counted with {escaped(state.token_counter)}",
    ]
    if state.computed_by and not state.computed_here:
        notes.append(f"Computed by the sample {escaped(state.computed_by)}")
    notes.extend(f"Suspect: {escaped(sign)}" for sign in state.suspect)
    return "\n\n".join(["\n".join(lines), *notes] if lines else notes)


def fact_retention_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of `fact_retention`: mean over conversations, and means by verdict."""
    # Most banks name few wrong values, and the mean over no probe at all would be NaN.
    apart = ("fact_recall", "fact_survival")
    return {
        key: [over_conversations(), *([by_verdict()] if key in apart else [])] for key in FACT_KEYS
    }


@scorer(metrics=fact_retention_metrics())
def fact_retention(state_facts: StateFacts | None = None) -> Scorer:
    """Say which expected facts the state and the answer hold.

    ``fact_recall`` is the share of the probe's facts that the answer states, by the grader's word,
    ``fact_survival`` the share that the state contains, stated or derivable, by a reader's word
    (both 0 to 1). ``fact_violations`` is the number of superseded or forbidden values that the
    answer gives as current, by the grader's word. ``fact_agreement`` is the share of the facts of
    which reader and look-up say the same about the state.

    Where the grader is no language model, recall and survival are the look-up's, and the other two
    are NaN; ``recall_by`` and ``survival_by`` in the metadata say whose word counts. NaN is also
    what cannot be known: recall and violations without an answer, survival in a state that cannot
    be read or whose reader failed, values of a probe without facts or wrong values, and by look-up
    those of a probe with derived facts. Facts without a model's word are left out. A failed
    compression leaves the sample unscored.

    Args:
        state_facts: ``reader`` has the first model of the role ``grader`` read each state, in one
            call for all its probes; ``match`` looks up only. By default ``reader`` where that is
            a language model.

    Raises:
        DataError: The argument is none of these.
    """
    check_choice("state_facts", state_facts, (*get_args(StateFacts), None))
    readings = SharedReadings()

    async def score(sample: Recorded, state: TaskState) -> Score:
        reading, made_here = await _reading(sample, state_facts, readings)
        # A looping model's answer can be very long.
        words = answer_words(state.scores)
        findings = await anyio.to_thread.run_sync(_findings, sample, reading, words)
        wrong = None if sample.answer_text is None else words.violations(sample.probe)
        cut, read = sample.record.cut, reading is not None and reading.calls > 0
        note = _reader_note(reading, made_here=made_here) if reading else ""
        text = _facts_explained(findings, wrong, cut, note)
        metadata: dict[str, Any] = {
            "facts": [finding.row(cut) for finding in findings],
            "violations": wrong,
            "recall_by": "grader" if words.by_model else "look-up",
            "survival_by": "reader" if read else "look-up",
        }
        if reading:  # plain values, which the log's sample summaries keep too
            metadata |= {
                "state_id": sample.state.state_id,
                "state_reader": reading.reader,
                "state_reader_calls": reading.calls if made_here else 0,
                "state_reader_failure": reading.failure,
            }
        if failure := sample.compression_failure:
            return Score.unscored(reason=failure, explanation=text, metadata=metadata)
        return Score(
            value={
                "fact_recall": recall(findings, words),
                "fact_survival": (
                    _share_of_known([finding.in_state_read for finding in findings])
                    if read
                    else _share([finding.in_state for finding in findings])
                ),
                "fact_violations": math.nan if wrong is None else float(len(wrong)),
                "fact_agreement": _share_of_known([f.agreed for f in findings]),
            },
            answer=sample.answer_text,
            explanation=text,
            reason=sample.answer_failure,
            metadata=metadata,
        )

    return scoring(score)


async def _reading(
    sample: Recorded, state_facts: StateFacts | None, readings: SharedReadings
) -> tuple[StateReading | None, bool]:
    """Return what a reader says of the sample's state, and whether it was asked for this sample."""
    state = sample.state
    asked_of_nobody = state_facts == "match" or sample.compression_failure or not state.readable
    asked_of_nobody = asked_of_nobody or not sample.probe.expected_facts
    if asked_of_nobody or not any(message.text for message in sample.context):
        return None, False
    reader, *_ = graders()
    if is_embedded(reader):
        failure = "the embedded model is no language model"
        return StateReading(str(reader), 0, failure=failure) if state_facts else None, True
    asked = state.asked or [AskedProbe.of(sample.probe)]
    about = StateQuestion(
        sample.context, state.regions, asked, sample.record.language, state.state_id
    )
    return await readings.get(reader, about)


def _findings(
    sample: Recorded, reading: StateReading | None, words: AnswerWords
) -> list[FactFinding]:
    probe = sample.probe
    return follow_facts(
        probe,
        sample.state.facts,
        sample.answer_text,
        failed=sample.compression_failure is not None,
        read=reading.findings.get(probe.id, ()) if reading else (),
        graded=words.of(probe) if sample.answer_text is not None else (),
    )


def _facts_explained(
    findings: Sequence[FactFinding], wrong: list[str] | None, cut: int, note: str = ""
) -> str:
    """Return a line per fact, the totals, and the wrong values that the answer gives.

    Facts are a list, not a table, because the viewer's narrow columns break words.
    """
    ages = [age.share if (age := finding.age(cut)) else None for finding in findings]
    parts = [
        "\n".join(_fact(finding, cut) for finding in findings),
        f"Facts by stage: {_counted(finding.stage for finding in findings)}; "
        f"by region: {_counted(finding.region or 'none' for finding in findings)}; "
        f"by age: {_counted(map(age_group, ages))}.",
    ]
    if wrong:
        parts.append(given_as_current(wrong))
    if note:
        known = [finding.agreed for finding in findings if finding.agreed is not None]
        if known:
            note += f" Look-up and reader agree on {sum(known)} of {len(known)} facts."
        parts.append(note)
    return "\n\n".join(parts)


def _fact(finding: FactFinding, cut: int) -> str:
    record, age, reading = finding.record, finding.age(cut), finding.read
    read = ""
    if reading and reading.word is None:
        read = f", read: not known ({escaped(reading.problem, 80)})"
    elif reading:
        quote = f' ("{escaped(reading.quotes[0], 80)}")' if reading.quotes else ""
        read = f", read: {reading.word}{quote}"
    parts = [
        f"history {yes_no(record.in_history if record else None)}"
        + (f", {age.messages} messages ago ({age.share:.0%})" if age else ""),
        f"fed to summariser {yes_no(record.fed if record else None)}",
        f"state {yes_no(finding.in_state)}"
        + (f" ({finding.region})" if finding.region else "")
        + read,
        f"answer {yes_no(finding.in_answer)}"
        + (f", graded {finding.graded}" if finding.graded else ""),
    ]
    if finding.instead:
        parts.append(f"instead: {escaped(', '.join(finding.instead))}")
    stage: str = finding.stage
    if stage == "answered_not_found":  # the name alone is unclear
        stage = "answered though not found in the state"
    return f"- **{escaped(finding.fact.fact)}** {stage}: {'; '.join(parts)}"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common())


def _reader_note(reading: StateReading, *, made_here: bool) -> str:
    reader = escaped(reading.reader)
    if reading.failure:
        return f"The state reader {reader} failed: {escaped(reading.failure)}."
    calls = "1 call" if reading.calls == 1 else f"{reading.calls} calls"
    return f"State read by {reader} ({calls}{'' if made_here else ' of another sample'})."


def recall(findings: Sequence[FactFinding], words: AnswerWords) -> float:
    """Return the share of facts that an answer states: by a language model's word, else look-up."""
    if words.by_model:
        return _share_of_known([finding.in_answer_read for finding in findings])
    return _share([finding.in_answer for finding in findings])


def _share(known: list[bool | None]) -> float:
    """Return the share of ``True``; NaN if anything is not known, because it would be a guess."""
    if not known or any(item is None for item in known):
        return math.nan
    return round(sum(bool(item) for item in known) / len(known), 3)


def _share_of_known(known: list[bool | None]) -> float:
    """Return the share of ``True`` among what is known; NaN if nothing is."""
    return _share([item for item in known if item is not None])


def six_dimensions_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of `six_dimensions`.

    They are the mean over conversations with its error, means by verdict, and of a panel its
    alpha; under the first key also its interval and how many criteria have no score.
    """
    metrics: dict[str, list[Metric]] = {
        key: [over_conversations(), by_verdict(), panel_agreement(key)] for key in DIMENSION_KEYS
    }
    metrics[KNOWLEDGE] += [interval(), ungraded_criteria()]
    return metrics


@scorer(metrics=six_dimensions_metrics())
def six_dimensions(
    criteria: CriteriaMode = "by_type",
    grader_context: GraderContext = "state",
    language: Language | None = None,
) -> Scorer:
    """Grade the answer with the models of the role ``grader``, on six dimensions, 0 to 5.

    A failed compression, a failed answer and a failed grader leave the sample without a score,
    with a reason; none of them is ever a low score. Values that were not graded are NaN.

    Args:
        criteria: See `GradingSettings`; the same the following two.
        grader_context: What of the state graders are shown.
        language: Of the rubric.

    Raises:
        DataError: An argument is not among its choices.
    """
    settings = GradingSettings(criteria, grader_context, language)
    warned: set[str] = set()

    async def score(sample: Recorded, _: TaskState) -> Score:
        return await grade_answer(sample, settings, warned)

    return scoring(score)


async def grade_answer(
    sample: Recorded, settings: GradingSettings, warned: set[str] | None = None
) -> Score:
    """Have a panel of graders judge an answer.

    Args:
        sample: The answer with its state and probe, as a log contains it.
        settings: How they grade.
        warned: As of `warn_of`; without it nobody is warned.

    Returns:
        The score; without a value, and with a reason, where something failed.
    """
    if failure := sample.compression_failure or sample.answer_failure:
        detail = sample.state.failure if sample.compression_failure else sample.answer.failure
        return Score.unscored(reason=failure, explanation=detail or failure)
    rubric = load_rubric(settings.language or sample.record.language)
    answer = sample.answer.text
    request = grading_request(
        rubric=rubric,
        criteria=rubric.criteria_for(sample.probe, settings.criteria),
        probe=sample.probe,
        answer=answer,
        state=sample.state,
        context=sample.context,
        grader_context=settings.grader_context,
        mode=settings.criteria,
    )
    panel = await grade_with_panel(request, sample.answer.model)
    if warned is not None:
        warn_of(panel, warned)
    judgement = await anyio.to_thread.run_sync(judge, request, sample, panel)
    metadata = judgement.metadata(
        {
            "criteria": settings.criteria,
            "grader_context": settings.grader_context,
            "language": rubric.language,
            "rubric_digest": rubric_digest(rubric.language),
        }
    )
    if panel.failure:
        text = "\n".join(f"{item.grader}: {item.detail}" for item in panel.gradings)
        failure = f"grader_failed: {panel.failure}"
    else:
        text = explained(judgement)
        failure = NO_KNOWLEDGE if math.isnan(judgement.knowledge) else ""
    if failure:
        return Score.unscored(reason=failure, answer=answer, explanation=text, metadata=metadata)
    scores = [(KNOWLEDGE, judgement.knowledge), (OVERALL, judgement.overall)]
    return Score(
        value={name: round(value, 3) for name, value in (*scores, *judgement.dimensions.items())},
        answer=answer,
        explanation=text,
        metadata=metadata,
    )


@scorer(metrics=[mean()])
def qualification() -> Scorer:
    """Say for each sample whether its probe is qualified: 1 or 0, unscored without a verdict.

    Calls no model. Its mean is the share of the probes with a verdict that are qualified.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        verdict = state.metadata.get(VERDICT, NO_VERDICT)
        if verdict == NO_VERDICT:
            return Score.unscored(reason="no_verdict", explanation="The probe has no verdict.")
        in_tail = state.metadata.get(REGION) == "tail"
        return Score(
            value=1 if verdict == "qualified" else 0,
            explanation=f"The probe is {verdict}"
            + ("; the kept tail alone answers it." if in_tail else "."),
        )

    return score
