"""Totals of fact rows as text for a terminal: by stage against probe type, region, age and log."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from compression_eval.analysis.facts import FactRow
from compression_eval.analysis.text_tables import aligned
from compression_eval.facts.life import AGE_GROUPS, Stage, age_group
from compression_eval.fixtures.banks import ProbeType


def totals(rows: Sequence[FactRow], arms: Mapping[str, str]) -> str:
    """Return the totals of some rows; each table has one line per stage that occurs.

    Args:
        rows: The rows.
        arms: The arm of each log, by the log's name.
    """
    parts = [
        "\n".join([_failures(rows), *_agreement(rows)]),
        _crossed("by probe type", rows, lambda row: row.type, get_args(ProbeType)),
        _crossed("by region of the state", rows, lambda row: row.region or "none", ("none",)),
        _crossed("by age (part of the history)", rows, _age, AGE_GROUPS),
        _crossed("by cycles", rows, lambda row: str(row.cycles) if row.cycles else "unknown", ()),
    ]
    if len(set(arms.values())) > 1:
        parts.insert(1, _by_arm(rows, arms))
    return "\n\n".join(part for part in parts if part)


def listing(rows: Sequence[FactRow]) -> str:
    """Return the rows themselves as a table, the columns that tell most."""
    heads = (
        *("fixture", "probe", "fact", "epoch", "stage", "region", "read"),
        *("ago", "cycles", "instead"),
    )
    lines = [
        (
            row.fixture,
            row.probe,
            row.fact,
            str(row.epoch),
            row.stage,
            row.region,
            row.in_state_read or "",
            "" if row.age_messages is None else f"{row.age_messages} ({row.age_share:.0%})",
            "" if row.cycles is None else str(row.cycles),
            ", ".join(row.instead),
        )
        for row in rows
    ]
    return "\n".join(aligned([heads, *lines], numbers_from=len(heads), one_line_each=True))


def _age(row: FactRow) -> str:
    return age_group(row.age_share)


def _failures(rows: Sequence[FactRow]) -> str:
    states = {(row.log, row.state_id): row.status for row in rows}
    failed = Counter(status for status in states.values() if status != "ok")
    text = f"{_counted(len(rows), 'fact')} in {_counted(len(states), 'state')}"
    if failed:
        kinds = ", ".join(f"{status} {count}" for status, count in sorted(failed.items()))
        text += f", of which {failed.total()} failed ({kinds})"
    return text


def _agreement(rows: Sequence[FactRow]) -> list[str]:
    """Say how often look-up and reader say the same of a state, where it was read."""
    both = [row for row in rows if row.in_state is not None and row.in_state_read is not None]
    if not both:
        return []
    same = sum(row.in_state == (row.in_state_read != "absent") for row in both)
    only = Counter(row.in_state for row in both if row.in_state == (row.in_state_read == "absent"))
    return [
        f"look-up and reader agree on the state for {same} of {_counted(len(both), 'fact')} "
        f"({same / len(both):.0%}); found by look-up only {only[True]}, by the reader only "
        f"{only[False]}"
    ]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _crossed(
    title: str, rows: Sequence[FactRow], of: Callable[[FactRow], str], order: Sequence[str] = ()
) -> str:
    """Return a table of counts: stages as lines, the values of one property as columns."""
    counts = Counter((row.stage, of(row)) for row in rows)
    present = {column for _, column in counts}
    columns = [name for name in order if name in present] + sorted(present - set(order))
    lines = [("stage", "facts", *columns)]
    for stage in get_args(Stage):
        cells = [counts[stage, column] for column in columns]
        if any(cells):
            lines.append((stage, str(sum(cells)), *(str(cell or "-") for cell in cells)))
    sums = [sum(counts[stage, column] for stage in get_args(Stage)) for column in columns]
    lines.append(("all", str(sum(sums)), *map(str, sums)))
    return _titled(title, lines)


def _by_arm(rows: Sequence[FactRow], arms: Mapping[str, str]) -> str:
    """Return a table of counts with the arms, whose names are long, as lines."""
    counts = Counter((arms[row.log], row.stage) for row in rows)
    stages = [stage for stage in get_args(Stage) if any(counts[arm, stage] for arm, _ in counts)]
    lines = [("arm", *(stage.replace("_", " ") for stage in stages))]
    for arm in dict.fromkeys(arms.values()):
        lines.append((arm, *(str(counts[arm, stage] or "-") for stage in stages)))
    return _titled("by arm", lines)


def _titled(title: str, lines: Sequence[Sequence[str]]) -> str:
    table = aligned(lines, numbers_from=1, longest=200, indent=2)
    return "\n".join([f"{title}:", *(f"  {line}" for line in table)])
