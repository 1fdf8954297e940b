"""Where the spread between runs comes from: compressions, answers, gradings.

A method-of-moments analysis of variance: probes crossed with states, answers within both,
gradings within answers. What a run did not repeat cannot be split off, and is not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compression_eval.analysis.statistics.observations import Item
from compression_eval.analysis.statistics.power import Variances


class Graded(NamedTuple):
    """One grading of one answer."""

    unit: str
    probe: str
    state: str
    answer: str
    value: float


@dataclass(frozen=True)
class SpreadParts:
    """Variances of one arm and measure; None for what cannot be told from these runs."""

    state: float | None
    """Between compressions, shared by the probes of a state."""
    probe: float | None
    """Between compressions, of one probe beside the others.

    Holds the spread of answers too where each state was answered from once.
    """
    answer: float | None
    """Between answers from one state. Holds that of gradings too where each was graded once."""
    grading: float | None

    def variances(self, fixture: float = 0.0) -> Variances | None:
        """Return what a design needs to know; None if compressions were not repeated."""
        if self.state is None or self.probe is None:
            return None
        return Variances(
            self.state, self.probe, self.answer or 0.0, self.grading or 0.0, fixture=fixture
        )

    @property
    def missing(self) -> list[str]:
        """What would have to be repeated for the spread to be split further."""
        needs = (
            (self.state, "compressions (at least 2 epochs)"),
            (self.answer, "answers per state (-T answers=2)"),
            (self.grading, "gradings of one answer (inspect score --action append)"),
        )
        return [text for value, text in needs if value is None]


def spread_parts(gradings: Iterable[Graded]) -> SpreadParts:
    """Split the spread of one arm and measure.

    Args:
        gradings: All of them; several with one answer are gradings of it.
    """
    cells: dict[Item, dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for each in gradings:
        cells[each.unit, each.probe][each.state][each.answer].append(each.value)
    answers_of = [answers for states in cells.values() for answers in states.values()]
    grading = _within(values for answers in answers_of for values in answers.values())
    per_answer = _mean(len(values) for answers in answers_of for values in answers.values())
    answer_means = [[_mean(values) for values in answers.values()] for answers in answers_of]
    answer = _within(answer_means)
    answers = _mean(len(means) for means in answer_means)
    if answer is not None and grading is not None:
        answer = max(0.0, answer - grading / per_answer)
    state, rest = _crossed(_tables(cells))
    if rest is not None and answer is not None:
        rest = max(0.0, rest - (answer + (grading or 0.0) / per_answer) / answers)
    return SpreadParts(state, rest, answer, grading)


def _within(groups: Iterable[Sequence[float]]) -> float | None:
    """Return the pooled variance within groups; None if no group has two members."""
    squares, freedom = 0.0, 0
    for group in groups:
        if len(group) > 1:
            centre = _mean(group)
            squares += sum((value - centre) ** 2 for value in group)
            freedom += len(group) - 1
    return squares / freedom if freedom else None


def _tables(
    cells: Mapping[Item, Mapping[str, Mapping[str, Sequence[float]]]],
) -> list[list[list[float]]]:
    """Return, per unit, a full table of means: a row per probe, a column per state."""
    by_unit: dict[str, list[dict[str, float]]] = defaultdict(list)
    for (unit, _), states in cells.items():
        means = {
            state: _mean(_mean(values) for values in answers.values())
            for state, answers in states.items()
        }
        by_unit[unit].append(means)
    tables = []
    for rows in by_unit.values():
        columns = sorted(set().union(*rows))
        full = [[row[column] for column in columns] for row in rows if len(row) == len(columns)]
        if full and len(columns) > 1:
            tables.append(full)
    return tables


def _crossed(tables: Sequence[Sequence[Sequence[float]]]) -> tuple[float | None, float | None]:
    """Return the variance between columns, and of the cells beside rows and columns."""
    rest_squares, rest_freedom = 0.0, 0
    column_parts: list[tuple[float, int, int]] = []
    for table in tables:
        rows, columns = len(table), len(table[0])
        grand = _mean(_mean(row) for row in table)
        row_means = [_mean(row) for row in table]
        column_means = [_mean(row[column] for row in table) for column in range(columns)]
        column_squares = rows * sum((mean - grand) ** 2 for mean in column_means)
        column_parts.append((column_squares, columns - 1, rows))
        for row, row_mean in zip(table, row_means, strict=True):
            for value, column_mean in zip(row, column_means, strict=True):
                rest_squares += (value - row_mean - column_mean + grand) ** 2
        rest_freedom += (rows - 1) * (columns - 1)
    if not column_parts:
        return None, None
    rest = rest_squares / rest_freedom if rest_freedom else 0.0
    freedom = sum(part for _, part, _ in column_parts)
    between = sum(squares for squares, _, _ in column_parts) / freedom
    rows_weighted = sum(part * rows for _, part, rows in column_parts) / freedom
    return max(0.0, (between - rest) / rows_weighted), rest


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
