"""How a judgement is shown in the viewer and kept in the log."""

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Score

from compression_eval.facts.life import AnswerWord
from compression_eval.fixtures.banks import Probe
from compression_eval.grading.grader import Grading
from compression_eval.grading.judgement import CAP, CriterionScore, Judgement
from compression_eval.grading.markdown import escaped, number
from compression_eval.grading.panel_agreement import disagreement
from compression_eval.grading.rubric import FORMULA, structure

SIX_DIMENSIONS = re.compile(r"six_dimensions-?(\d*)")
"""Names of the scorer in a log: its own, and with a number those of gradings that were appended."""


def explanation(judgement: Judgement) -> str:
    """Return a judgement as Markdown: a list of the criteria, then how it was computed.

    It is no table, because the viewer's narrow columns break words inside.
    """
    panel = len(judgement.panel.gradings) > 1
    lines = []
    for name, value in judgement.dimensions.items():
        found = [item for item in judgement.scores if item.criterion.dimension == name]
        if found:
            lines.append(f"- **{name} {number(value)}**")
        for item in found:
            spread = f", spread {number(item.spread)}" if panel else ""
            lines.append(
                f"  - {item.criterion.id} **{number(item.score)}** (weight "
                f"{item.criterion.weight:g}{spread}): {escaped(_reason(item, judgement))}"
            )
    return "\n\n".join(["\n".join(lines), *_notes(judgement)])


def _reason(item: CriterionScore, judgement: Judgement) -> str:
    changed = not (item.score == item.graded or math.isnan(item.score))
    if not changed:
        return item.reasoning
    rule = "abstained" if judgement.abstained else "wrong value given as current"
    return f"[{rule}: {number(item.graded)} counts as {number(item.score)}] {item.reasoning}"


def _notes(judgement: Judgement) -> list[str]:
    notes = [
        f"Knowledge: {number(judgement.knowledge)}; overall: {number(judgement.overall)}; "
        f"{FORMULA}."
    ]
    if judgement.ungraded:
        notes.append(
            f"Without a score: {len(judgement.ungraded)} of {len(judgement.scores)} criteria "
            f"({', '.join(judgement.ungraded)})."
        )
    if judgement.abstained:
        notes.append(
            "The answer says that it does not know: 0 on everything but instruction following, "
            "which is checked mechanically."
        )
    if judgement.wanted_tools:
        notes.append("The model tried to call a tool, that is, to fetch something again.")
    if judgement.cut_off:
        notes.append("The answer was cut off (stop reason max_tokens): give it more --max-tokens.")
    if judgement.violations:
        values = ", ".join(escaped(value, 80) for value in judgement.violations)
        notes.append(f"Given as current, but not so: {values}. Accuracy is at most {CAP:g}.")
    words = Counter(word or "no word" for _, word in judgement.facts)
    if any(word for _, word in judgement.facts):
        counts = ", ".join(f"{n} {word}" for word, n in words.items())
        notes.append(f"Expected facts in the answer, as the grader reads it: {counts}.")
    if failure := judgement.panel.facts_failure:
        notes.append(f"What the grader says of the facts cannot be used: {escaped(failure)}.")
    if (apart := disagreement(judgement.panel)) is not None:
        each = ", ".join(f"({n}) {number(value)}" for n, value in apart.overall.items())
        notes.append(
            f"Graders apart by {number(apart.range)} overall: {each}; most on "
            f"{apart.criterion} ({number(apart.largest)})."
        )
    for n, grading in enumerate(judgement.panel.gradings, start=1):
        mark = ", judging its own answer" if grading.self_graded else ""
        failure = f", failed: {escaped(grading.detail or grading.failure)}"
        notes.append(
            f"Grader {n}: {escaped(grading.grader)} ({_calls(grading.attempts)}{mark}"
            f"{failure if grading.failure else ''})"
        )
    return notes


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def metadata(judgement: Judgement, settings: dict[str, str]) -> dict[str, Any]:
    """Return a judgement as the log keeps it, in the shape that graders' replies have too.

    Args:
        judgement: What was found out.
        settings: How the grading was set up; copied as it is.
    """
    dimensions = (
        judgement.dimensions
        if judgement.scores
        else dict.fromkeys(structure().dimensions, math.nan)
    )
    panel = len(judgement.panel.gradings) > 1
    return {
        "criterionResults": [
            {
                "criterionId": item.criterion.id,
                "score": _or_none(item.score),
                "reasoning": item.reasoning,
                "graded": _or_none(item.graded),
                **({"spread": _or_none(item.spread)} if panel else {}),
            }
            for item in judgement.scores
        ],
        "ungraded": judgement.ungraded,
        "facts": [{"fact": fact, "verdict": word} for fact, word in judgement.facts],
        "facts_failure": judgement.panel.facts_failure,
        "aggregateScore": _or_none(judgement.overall),
        "dimensionScores": {name: _or_none(value) for name, value in dimensions.items()},
        "graders": [_grader(grading, panel=panel) for grading in judgement.panel.gradings],
        **({"disagreement": _disagreement(judgement)} if panel else {}),
        "self_graded": judgement.panel.self_graded,
        "attempts": judgement.panel.attempts,
        "abstained": judgement.abstained,
        "wanted_tools": judgement.wanted_tools,
        "cut_off": judgement.cut_off,
        "violations": list(judgement.violations),
        **settings,
    }


def answer_words(scores: Mapping[str, Score] | None, probe: Probe) -> list[AnswerWord | None]:
    """Return how the latest grading of a sample reads its answer on each expected fact.

    Inspect hands a scorer the scores of those before it, and in ``inspect score --action append``
    those of the log: nothing else has to be kept.

    Args:
        scores: As in `TaskState.scores`.
        probe: The question with its expected facts.

    Returns:
        A word per fact, in the probe's order; None where no grading says one.
    """
    gradings = {
        int(match[1] or 0): score
        for name, score in (scores or {}).items()
        if (match := SIX_DIMENSIONS.fullmatch(name))
    }
    metadata = (gradings[max(gradings)].metadata or {}) if gradings else {}
    said = {item["fact"]: item["verdict"] for item in metadata.get("facts") or []}
    return [said.get(fact.fact) for fact in probe.expected_facts]


def _disagreement(judgement: Judgement) -> dict[str, Any] | None:
    """Return how far a panel is apart; None if fewer than two graders came to a result."""
    apart = disagreement(judgement.panel)
    if apart is None:
        return None
    return {
        "overall": _or_none(apart.range),
        "criterion": apart.criterion,
        "largest": _or_none(apart.largest),
    }


def _grader(grading: Grading, *, panel: bool) -> dict[str, Any]:
    """Return one grader's part; a single grader's results already stand beside it."""
    part: dict[str, Any] = {
        "model": grading.grader,
        "parameters": grading.parameters,
        "self_graded": grading.self_graded,
        "attempts": grading.attempts,
        "failure": grading.failure,
    }
    if panel:
        part["criterionResults"] = [item.model_dump() for item in grading.results.values()]
        part["facts"] = grading.facts
    return part


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
