"""The report as Markdown, ready to be pasted into a pull request."""

import math
from collections.abc import Iterator, Sequence

from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.report import grids
from compression_eval.analysis.report.arms import Arm
from compression_eval.analysis.report.costs import Costs, Failures
from compression_eval.analysis.report.figures import ArmFigures, Figures
from compression_eval.analysis.report.misses import Miss
from compression_eval.analysis.report.published import Published
from compression_eval.analysis.report.scores import TABLE_MEASURES, Row
from compression_eval.analysis.report.wording import (
    counted,
    decimal,
    findings,
    percent,
    title_of,
    whole,
)
from compression_eval.grading.markdown import pasted, table
from compression_eval.grading.rubric import KNOWLEDGE, OVERALL, structure

_MOST_PAIRS = 30
_MOST_MISSES = 10
"""Per arm; the rest is counted. All of them are in the figures and on the page."""


def markdown(of: Figures, notes: Sequence[str], reference: Published | None) -> str:
    """Return the report as Markdown.

    Args:
        of: The figures.
        notes: What a reader must know before any figure, one line each.
        reference: Published figures to print beside ours.
    """
    parts = ["## Compression report"]
    parts.append("\n".join(f"- {pasted(line, 2000)}" for line in findings(of.frontier)))
    parts += [f"**{pasted(note, 400)}**" for note in notes]
    for arm in of.arms:
        parts += _arm(arm, of.of_arm[arm.name])
    parts += [*_retention(of), *_pairs(of)]
    if reference is not None:
        parts += _reference(reference)
    parts.append(
        f"Formula: {of.formula}. Bracketed: probes behind a cell, where fewer than in its row."
    )
    return "\n\n".join(parts) + "\n"


def _arm(arm: Arm, figures: ArmFigures) -> Iterator[str]:
    yield f"### {pasted(arm.name, 200)}"
    marks = [
        f"model {pasted(arm.model, 120)}",
        f"grader {pasted(arm.graders, 200)}" + (" (self-graded)" if arm.self_graded else ""),
        counted(arm.epochs, "epoch"),
    ]
    yield ", ".join(marks)
    if arm.settings:
        yield f"Arguments: {pasted(arm.settings, 600)}"
    yield table(
        ["Fixture", *map(title_of, TABLE_MEASURES)], [_row(row) for row in figures.table], pasted
    )
    yield f"{_compression(figures.costs)}  \n{_failed(figures.failures)}"
    if figures.survival.fact_agreement is not None:
        agreement = percent(figures.survival.fact_agreement)
        yield f"Facts in states: reader and look-up agree on {agreement}."
    if arm.role == "floor":
        yield "Misses of the floor are not listed: it knows nothing of the history."
        return
    yield from _misses(figures.misses)


def _row(row: Row) -> list[str]:
    cells = [row.cells[measure] for measure in TABLE_MEASURES]
    return [
        f"{row.label} ({counted(row.probes, 'probe')})",
        *(
            decimal(cell.value) + (f" ({cell.probes})" if cell.probes < row.probes else "")
            for cell in cells
        ),
    ]


def _compression(costs: Costs) -> str:
    return (
        f"Compression: {whole(costs.tokens_before)} to {whole(costs.tokens_after)} tokens "
        f"({percent(costs.removed, 1)} removed), mean of {counted(costs.compressions, 'state')}. "
        f"Cost per compression: {decimal(costs.calls, 1)} calls, {whole(costs.input_tokens)} "
        f"tokens in, {whole(costs.output_tokens)} out, {decimal(costs.seconds)} s; per answer: "
        f"{whole(costs.answer_input_tokens)} in, {whole(costs.answer_output_tokens)} out."
        + ("" if math.isnan(costs.dollars) else f" All of it: ${costs.dollars:,.2f}.")
    )


def _failed(failures: Failures) -> str:
    text = f"Scored: {failures.scored} of {counted(failures.samples, 'sample')}"
    if failures.abstained:
        text += f", {failures.abstained} of them abstained"
    states = sum(failures.failed_states.values())
    if states:
        text += f"; {states} of {counted(failures.states, 'compression')} failed"
    if failures.suspect:
        text += f"; {counted(failures.suspect, 'state')} suspect"
    if not failures.reasons:
        return text + "."
    reasons = ", ".join(f"{pasted(name, 120)} {n}" for name, n in failures.reasons.items())
    return (
        f"{text}; without a score: {reasons}. With all of those as 0, its knowledge is "
        f"{decimal(failures.lower_bound)}."
    )


def _misses(misses: Sequence[Miss]) -> Iterator[str]:
    if not misses:
        yield f"No probe under {MISS}."
        return
    yield f"Misses (probes under {MISS}): {len(misses)}"
    lines = [_miss(miss) for miss in misses[:_MOST_MISSES]]
    more = len(misses) - len(lines)
    yield "\n".join([*lines, *([f"- and {more} more"] if more else [])])


def _miss(miss: Miss) -> str:
    said = f"{miss.criterion}: {miss.reason}" if miss.criterion else ""
    lost = f"not in the answer: {', '.join(miss.lost)}" if miss.lost else ""
    why = "; ".join(pasted(part, 400) for part in (lost, said) if part)
    return f"- {pasted(miss.unit, 120)} / {pasted(miss.probe, 120)} **{miss.score:.2f}** {why}"


def _retention(of: Figures) -> Iterator[str]:
    grid = grids.retention(of)
    if grid is None:
        return
    yield "### Retention between floor and ceiling"
    leading = grid.heads.index(title_of(KNOWLEDGE))
    rows = []
    for row in grid.rows:
        limits = [*row[leading].limits.split("\n"), "–"][:2]
        rows.append([*(cell.text for cell in row[: leading + 1]), *limits])
    heads = [*grid.heads[:leading], "Retention", "95 % here", "95 % for new conversations"]
    yield table(heads, rows, pasted)
    yield "(arm - floor) / (ceiling - floor) of knowledge, a ratio of means, failures as 0."


def _pairs(of: Figures) -> Iterator[str]:
    grid = grids.pairs(of)
    if grid is None:
        return
    yield "### Every two arms"
    rows = [[cell.text for cell in row] for row in grid.rows]
    yield table(grid.heads, rows[:_MOST_PAIRS], pasted)
    if len(rows) > _MOST_PAIRS:
        yield f"And {len(rows) - _MOST_PAIRS} more with smaller differences (figures.json)."
    yield (
        f"Knowledge on the {of.frontier.probes} probes that every arm has; 95 % on these "
        "conversations, p adjusted by Holm's method over all pairs."
    )


def _reference(reference: Published) -> Iterator[str]:
    yield "### Published figures, not measured here"
    yield table(
        [
            "Method",
            *map(title_of, (*structure().dimensions, OVERALL)),
            "Mean of the six",
            "Tokens removed",
        ],
        [
            [
                method.method,
                *(decimal(method.scores[name]) for name in structure().dimensions),
                decimal(method.overall),
                decimal(method.mean),
                percent(method.tokens_removed, 1),
            ]
            for method in reference.methods
        ],
    )
    yield f"{reference.source}: {reference.conditions}."
