"""What became of a probe's facts, as people read it in the log viewer."""

from collections import Counter
from collections.abc import Iterable, Sequence

from compression_eval.facts.life import FactFinding, age_group
from compression_eval.grading.markdown import escaped, yes_no

_STAGES = {"answered_not_found": "answered though not found in the state"}
"""Stages whose names alone would not be understood."""


def explain(
    findings: Sequence[FactFinding], wrong: Sequence[str] | None, cut: int, note: str = ""
) -> str:
    """Return a line per fact, the totals, and the wrong values that the answer gives.

    Args:
        findings: The facts of one probe.
        wrong: Superseded and forbidden values given as current.
        cut: Where the history ended, for the age of each fact.
        note: Who read the state, or why nobody could; empty if it was looked up only.
    """
    parts = ["\n".join(_line(finding, cut) for finding in findings), _totals(findings, cut)]
    if wrong:
        values = ", ".join(escaped(value, 80) for value in wrong)
        parts.append(f"Given as current, but superseded or forbidden: {values}.")
    if note:
        parts.append(" ".join([note, *_agreement(findings)]))
    return "\n\n".join(parts)


def _agreement(findings: Sequence[FactFinding]) -> list[str]:
    known = [finding.agreed for finding in findings if finding.agreed is not None]
    if not known:
        return []
    return [f"Look-up and reader agree on {sum(known)} of {len(known)} facts."]


def _line(finding: FactFinding, cut: int) -> str:
    record, age = finding.record, finding.age(cut)
    told = [
        f"history {yes_no(record.in_history if record else None)}"
        + (f", {age.messages} messages ago ({age.share:.0%})" if age else ""),
        f"fed to summariser {yes_no(record.fed if record else None)}",
        f"state {yes_no(finding.in_state)}"
        + (f" ({finding.region})" if finding.region else "")
        + _read_in_state(finding),
        f"answer {yes_no(finding.in_answer)}"
        + (f", graded {finding.words.answer}" if finding.words.answer else ""),
    ]
    if finding.instead:
        told.append(f"instead: {escaped(', '.join(finding.instead))}")
    stage = _STAGES.get(finding.stage, finding.stage)
    return f"- **{escaped(finding.fact.fact)}** {stage}: {'; '.join(told)}"


def _read_in_state(finding: FactFinding) -> str:
    """Return the reader's word, with a passage that it rests on or why there is none."""
    said = finding.words.state
    if said is None:
        return ""
    if said.word is None:
        return f", read: not known ({escaped(said.problem, 80)})"
    quote = f' ("{escaped(said.quotes[0], 80)}")' if said.quotes else ""
    return f", read: {said.word}{quote}"


def _totals(findings: Sequence[FactFinding], cut: int) -> str:
    ages = [age.share if (age := finding.age(cut)) else None for finding in findings]
    return "; ".join(
        (
            f"Facts by stage: {_counted(finding.stage for finding in findings)}",
            f"by region: {_counted(finding.region or 'none' for finding in findings)}",
            f"by age: {_counted(map(age_group, ages))}.",
        )
    )


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common())
