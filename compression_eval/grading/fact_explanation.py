"""What became of a probe's facts, as people read it in the log viewer."""

from collections import Counter
from collections.abc import Iterable, Sequence

from compression_eval.grading.facts import FactFinding
from compression_eval.grading.markdown import escaped, table, yes_no

AGE_GROUPS = ("first quarter", "second quarter", "third quarter", "last quarter", "unknown")
"""Parts of the history, the oldest first."""


def explain(findings: Sequence[FactFinding], wrong: Sequence[str] | None, cut: int) -> str:
    """Return one row per fact, the totals, and the wrong values that the answer gives.

    Args:
        findings: The facts of one probe.
        wrong: Superseded and forbidden values given as current.
        cut: Where the history ended, for the age of each fact.
    """
    heads = [
        "Fact",
        "In history",
        "Fed to summariser",
        "In state",
        "In answer",
        "Stage",
        "Messages ago",
        "Instead",
    ]
    parts = [table(heads, [_row(finding, cut) for finding in findings]), _totals(findings, cut)]
    if wrong:
        values = ", ".join(escaped(value, 80) for value in wrong)
        parts.append(f"Given as current, but superseded or forbidden: {values}.")
    return "\n\n".join(parts)


def age_group(share: float | None) -> str:
    """Return the quarter of the history that a fact comes from.

    Args:
        share: Its age as a share of the history; None if it is not known.
    """
    if share is None:
        return "unknown"
    return AGE_GROUPS[3 - min(int(share * 4), 3)]


def _row(finding: FactFinding, cut: int) -> list[str]:
    record, age = finding.record, finding.age(cut)
    in_state = yes_no(finding.in_state)
    return [
        finding.fact.fact,
        yes_no(record.in_history if record else None),
        yes_no(record.fed if record else None),
        f"{in_state} ({finding.region})" if finding.region else in_state,
        yes_no(finding.in_answer),
        finding.stage,
        f"{age.messages} ({age.share:.0%})" if age else "–",
        ", ".join(finding.instead),
    ]


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
