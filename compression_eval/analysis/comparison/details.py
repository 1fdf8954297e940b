"""The sections of a comparison below its headline."""

from collections.abc import Iterator, Sequence

from compression_eval.analysis.comparison import wording
from compression_eval.analysis.comparison.blocks import Lines, Section, Table
from compression_eval.analysis.comparison.fact_changes import FactChange, read_on_one_side
from compression_eval.analysis.comparison.judging import BREAKDOWNS
from compression_eval.analysis.comparison.result import Comparison
from compression_eval.analysis.statistics.spread import SpreadParts
from compression_eval.grading.rubric import KNOWLEDGE

_SHOWN = 30
"""Facts and probes listed for people; JSON has all of them."""


def breakdown_sections(found: Comparison) -> Iterator[Section]:
    """Yield a section per breakdown; none for what has only one group."""
    for column, lines in found.breakdowns.items():
        threshold = found.rules.threshold
        shown = [
            [line.group, wording.measure_name(line.measure), *wording.line_cells(line, threshold)]
            for line in lines
        ]
        title = f"By {BREAKDOWNS[column]} (exploratory: says where to look, decides nothing)"
        # Interval for new conversations and p stand in the JSON: these decide nothing.
        heads = ["", "", *wording.LINE_HEADS[:4], wording.LINE_HEADS[-1]]
        rows = [[*cells[:6], cells[-1]] for cells in shown]
        yield Section(title, [Table(heads, rows, (2, len(heads) - 1))])


def noise_section(found: Comparison) -> Iterator[Section]:
    """Yield how many facts and probes changed beside what chance alone makes of them."""
    if found.noise is None:
        by_chance = "by chance: not known, since each conversation was compressed only once"
    else:
        by_chance = (
            f"by chance, between the two halves of one side's own compressions (mean over the "
            f"sides): facts {found.noise.facts:g}, misses {found.noise.flips:g}"
        )
    seen = f"between the sides: facts {len(found.facts)}, misses {len(found.flips)}"
    lines = [seen, by_chance]
    if one := read_on_one_side(found.base, found.new):
        lines.append(
            f"WARNING only in {one} a model read which facts are there, in the other they were "
            "looked up: facts lost and gained may come of that"
        )
    yield Section("Facts and misses that changed", [Lines(lines)])


def fact_sections(found: Comparison) -> Iterator[Section]:
    """Yield what was lost and what was gained."""
    for kind in ("lost", "gained"):
        changes = [change for change in found.facts if change.kind == kind]
        if not changes:
            yield Section(f"Facts {kind}", [Lines(["none"])])
            continue
        heads = ("fact", "probe", "fixture", "in answer", "in state", "stage")
        table = Table(heads, [_fact(change) for change in changes[:_SHOWN]], (3, 3))
        yield Section(f"Facts {kind}: {len(changes)}", [table, *_more(changes)])


def _fact(change: FactChange) -> list[str]:
    base, new = change.base, change.new
    return [
        change.fact,
        change.probe,
        f"{change.fixture}@{change.cut}",
        f"{wording.runs(base, 'answer')} -> {wording.runs(new, 'answer')}",
        f"{wording.runs(base, 'state')} -> {wording.runs(new, 'state')}",
        base.stage if base.stage == new.stage else f"{base.stage} -> {new.stage}",
    ]


def flip_sections(found: Comparison) -> Iterator[Section]:
    """Yield the probes that are a miss on one side only."""
    for missed, title in ((True, "Missed now (knowledge under 3.0)"), (False, "No longer missed")):
        rows = [
            [flip.unit, flip.probe, f"{flip.base:.2f}", f"{flip.new:.2f}", flip.reason]
            for flip in found.flips
            if flip.missed_now == missed
        ]
        if not rows:
            yield Section(title, [Lines(["none"])])
            continue
        why = "because" if missed else "was missed because"
        table = Table(("fixture", "probe", "base", "new", why), rows[:_SHOWN], (2, 4))
        yield Section(f"{title}: {len(rows)}", [table, *_more(rows)])


def _more(items: Sequence[object]) -> list[Lines]:
    left = len(items) - _SHOWN
    return [Lines([f"and {left} more (--format json lists all)"])] if left > 0 else []


def spread_section(found: Comparison) -> Iterator[Section]:
    """Yield where the spread of knowledge comes from on each side."""
    if found.spread is None:
        return
    rows, notes = [], []
    for side, spread in zip((found.base, found.new), found.spread, strict=True):
        parts = spread.parts[KNOWLEDGE]
        rows.append([side.label, *_deviations(parts)])
        if parts.missing:
            notes.append(f"{side.label}: cannot be split further without {_listed(parts.missing)}")
        if spread.others:
            notes.append(
                f"{side.label}: {spread.others} gradings by other graders or another rubric are "
                "left out here"
            )
    heads = ("", "compressions as a whole", "compressions by probe", "answers", "gradings")
    yield Section(
        "Spread of knowledge between runs, as standard deviations",
        [Table(heads, rows, (1, len(heads))), *([Lines(notes)] if notes else [])],
    )


def _deviations(parts: SpreadParts) -> list[str]:
    numbers = (parts.state, parts.probe, parts.answer, parts.grading)
    return ["-" if number is None else f"{number**0.5:.2f}" for number in numbers]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
