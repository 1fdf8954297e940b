"""Markdown for each scorer's explanation in the log viewer.

Criteria and facts are lists, not tables, because the viewer's narrow columns break words.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from compression_eval.facts.life import FactFinding, age_group
from compression_eval.grading.judgement import Judgement
from compression_eval.grading.rubric import FORMULA, Criterion
from compression_eval.record import StateRecord
from compression_eval.text.markdown import escaped, number, yes_no


def of_compression(state: StateRecord, removed: float) -> str:
    """Return a line per compression of a chain, and the overall outcome.

    Args:
        state: What the record says of the state.
        removed: Share of the tokens that is gone.
    """
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


def of_facts(
    findings: Sequence[FactFinding], wrong: Sequence[str] | None, cut: int, note: str = ""
) -> str:
    """Return a line per fact, the totals, and the wrong values that the answer gives.

    Args:
        findings: The facts of one probe.
        wrong: Superseded and forbidden values given as current, by the grader's word.
        cut: Where the history ended, for the age of each fact.
        note: Who read the state, or why nobody could; empty if it was looked up only.
    """
    ages = [age.share if (age := finding.age(cut)) else None for finding in findings]
    parts = [
        "\n".join(_fact(finding, cut) for finding in findings),
        f"Facts by stage: {_counted(finding.stage for finding in findings)}; "
        f"by region: {_counted(finding.region or 'none' for finding in findings)}; "
        f"by age: {_counted(map(age_group, ages))}.",
    ]
    if wrong:
        values = ", ".join(escaped(value, 80) for value in wrong)
        parts.append(f"Given as current, but superseded or forbidden: {values}.")
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


def of_judgement(judgement: Judgement) -> str:
    """Return the criteria of each dimension with their scores, then how they were computed."""
    several = len(judgement.panel.gradings) > 1
    lines = []
    for name, value in judgement.dimensions.items():
        of_dimension = [each for each in judgement.scores if each.dimension == name]
        if of_dimension:
            lines.append(f"- **{name} {number(value)}**")
        for each in of_dimension:
            spread = f", spread {number(judgement.panel.spread(each.id))}" if several else ""
            lines.append(
                f"  - {each.id} **{number(judgement.scores[each])}** (weight "
                f"{each.weight:g}{spread}): {escaped(_reason(each, judgement))}"
            )
    return "\n\n".join(["\n".join(lines), *_notes(judgement)])


def _reason(criterion: Criterion, judgement: Judgement) -> str:
    score, graded = judgement.scores[criterion], judgement.panel.score(criterion.id)
    reasoning = judgement.panel.reasoning(criterion.id)
    if score == graded or math.isnan(score):
        return reasoning
    return f"[abstained: {number(graded)} counts as {number(score)}] {reasoning}"


def _notes(judgement: Judgement) -> list[str]:
    panel = judgement.panel
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
    if wrong := [value for value, word in judgement.wrong.items() if word == "stated"]:
        values = ", ".join(escaped(value, 80) for value in wrong)
        notes.append(f"Given as current, but superseded or forbidden: {values}.")
    if any(judgement.facts.values()):
        words = Counter(word or "no word" for word in judgement.facts.values())
        counts = ", ".join(f"{n} {word}" for word, n in words.items())
        notes.append(f"Expected facts in the answer, as the grader reads it: {counts}.")
    if panel.facts_failure:
        notes.append(
            f"What the grader says of the facts cannot be used: {escaped(panel.facts_failure)}."
        )
    if apart := panel.disagreement:
        each = ", ".join(f"({n}) {number(value)}" for n, value in apart.overall.items())
        notes.append(
            f"Graders apart by {number(apart.range)} overall: {each}; most on "
            f"{apart.criterion} ({number(apart.largest)})."
        )
    for n, grading in enumerate(panel.gradings, start=1):
        calls = "1 call" if grading.attempts == 1 else f"{grading.attempts} calls"
        mark = ", judging its own answer" if grading.self_graded else ""
        failure = grading.failure and f", failed: {escaped(grading.detail or grading.failure)}"
        notes.append(f"Grader {n}: {escaped(grading.grader)} ({calls}{mark}{failure})")
    return notes
