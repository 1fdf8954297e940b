"""A page as blocks, and the two forms in which people read it: plain text and Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from compression_eval.analysis.text_tables import aligned, printable
from compression_eval.grading.markdown import pasted

_LONGEST_CELL = 200
_LONGEST_LINE = 2000


@dataclass(frozen=True)
class Table:
    """Cells of heads and rows; columns of numbers stand together."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: tuple[int, int]
    """Index of the first column of numbers, and of the first one after them."""


@dataclass(frozen=True)
class Lines:
    """Lines of text, one under another."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    blocks: Sequence[Table | Lines]


def as_text(sections: Sequence[Section]) -> str:
    """Return a page for a terminal; nothing in it can steer the terminal."""
    parts = []
    for section in sections:
        lines = [section.title] if section.title else []
        indent = "  " if section.title else ""
        for block in section.blocks:
            lines.extend(f"{indent}{line}" for line in _text_lines(block, len(indent)))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def as_markdown(sections: Sequence[Section]) -> str:
    """Return a page as Markdown; texts from conversations have no power over it."""
    parts = []
    for section in sections:
        if section.title:
            parts.append(f"### {_cell(section.title)}")
        parts.extend(_markdown(block) for block in section.blocks)
    return "\n\n".join(parts) + "\n"


def _text_lines(block: Table | Lines, indent: int) -> list[str]:
    if isinstance(block, Lines):
        return [printable(line, _LONGEST_LINE) for line in block.lines]
    first, last = block.numbers
    return list(
        aligned(
            [block.heads, *block.rows],
            numbers_from=first,
            numbers_to=last,
            longest=_LONGEST_CELL,
            indent=indent,
        )
    )


def _markdown(block: Table | Lines) -> str:
    if isinstance(block, Lines):
        return "\n".join(f"- {_cell(line, _LONGEST_LINE)}" for line in block.lines)
    first, last = block.numbers
    rule = ["---:" if first <= index < last else "---" for index in range(len(block.heads))]
    rows = [[_cell(cell) for cell in row] for row in [block.heads, *block.rows]]
    lines = [rows[0], rule, *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str, longest: int = _LONGEST_CELL) -> str:
    return pasted(printable(text, longest), longest)
