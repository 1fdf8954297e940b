"""One model of a table and a page, and its forms: plain text for a terminal, Markdown, HTML.

The cells contain untrusted text. Each form takes away what power it could have there: over a
terminal's cursor, over a forge that makes mentions of it, over the page (the report's template
escapes).
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.cells import cell_len, chop_cells

from compression_eval.text.markdown import pasted
from compression_eval.text.printable import MAX_CELL, printable

_GAP = 2
MIN_COLUMNS = 80
"""Width of the narrowest terminal that tables are made for."""

_MIN_BROKEN = 26
"""Minimum width of a word that may be broken."""

_SHORT = 12
"""Maximum width of a text column that is never narrowed."""

_MAX_PAGE_CELL, _MAX_PAGE_LINE = 200, 2000


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    note: str = ""
    """Smaller text next to it."""
    below: str = ""
    """Smaller text under it: intervals, one per line, or an arm's settings."""


@dataclass(frozen=True)
class Table:
    """Heads and rows; columns contain right-aligned numbers unless they are marked as text."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    names: int = 1
    """Number of leading columns that name the rows; a split table repeats them."""
    texts: Collection[int] = ()
    """The other columns of text."""
    total: bool = False
    """Whether the last row sums up the others."""

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, every cell in full."""
        return [[Cell(each) if isinstance(each, str) else each for each in r] for r in self.rows]

    @property
    def plain(self) -> list[list[str]]:
        """The rows without the smaller texts."""
        return [[each if isinstance(each, str) else each.text for each in r] for r in self.rows]

    @property
    def numbers(self) -> set[int]:
        """Right-aligned columns."""
        return set(range(self.names, len(self.heads))).difference(self.texts)


@dataclass(frozen=True)
class Section:
    """A part of a page: tables, and lines of text one under another."""

    title: str
    blocks: Sequence[Table | Sequence[str]]


def counted(number: int, noun: str) -> str:
    """Return a number of things that have a regular plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def as_text(sections: Sequence[Section], columns: int = MIN_COLUMNS) -> str:
    """Return a page for a terminal; nothing in it can steer the terminal.

    Args:
        sections: The page.
        columns: Its width where there is no terminal.
    """
    parts = []
    for section in sections:
        lines = [section.title] if section.title else []
        indent = "  " if section.title else ""
        for block in section.blocks:
            if isinstance(block, Table):
                table = table_lines(
                    block, longest=_MAX_PAGE_CELL, indent=len(indent), columns=columns
                )
                lines.extend(indent + line for line in table)
            else:
                lines.extend(indent + printable(line, _MAX_PAGE_LINE) for line in block)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def as_markdown(sections: Sequence[Section]) -> str:
    """Return a page as Markdown; texts from conversations have no power over it."""
    parts = []
    for section in sections:
        if section.title:
            parts.append(f"### {_markdown_cell(section.title)}")
        for block in section.blocks:
            if isinstance(block, Table):
                parts.append(_markdown(block))
            else:
                parts.append("\n".join(f"- {_markdown_cell(e, _MAX_PAGE_LINE)}" for e in block))
    return "\n\n".join(parts) + "\n"


def _markdown(table: Table) -> str:
    rule = ["---:" if index in table.numbers else "---" for index in range(len(table.heads))]
    rows = [[_markdown_cell(cell) for cell in row] for row in (table.heads, *table.plain)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (rows[0], rule, *rows[1:]))


def _markdown_cell(text: str, longest: int = _MAX_PAGE_CELL) -> str:
    return pasted(printable(text, longest), longest)


def table_lines(
    table: Table,
    *,
    longest: int = MAX_CELL,
    indent: int = 0,
    columns: int = MIN_COLUMNS,
    whole: bool = False,
) -> Iterator[str]:
    """Yield the lines of a table with its columns under one another, fit for the terminal.

    What is too broad is broken: heads and cells of text between words, then the table itself into
    one under another, each with the columns that name its rows.

    Args:
        table: The table.
        longest: Most characters of a cell.
        indent: Columns of the terminal that are left free before every line.
        columns: The width where there is no terminal.
        whole: Break nothing, for a list that is searched rather than read.
    """
    shown = [[printable(cell, longest) for cell in row] for row in (table.heads, *table.plain)]
    cells = list(zip(*shown, strict=True))
    full = [max(map(cell_len, column)) for column in cells]
    room = max(MIN_COLUMNS, shutil.get_terminal_size((columns, 24)).columns) - indent
    if whole:
        room = _total(full)
    least = list(full)
    if _total(full) > room:
        least = [
            _least(column, full[index], number=index in table.numbers)
            for index, column in enumerate(cells)
        ]
    for place, block in enumerate(_blocks(least, max(table.names, 1), room)):
        if place:
            yield ""
        widths = {at: least[at] if at in table.numbers else full[at] for at in block}
        texts = [at for at in block if at not in table.numbers]
        while _total(widths.values()) > room and any(widths[at] > least[at] for at in texts):
            widths[max(texts, key=lambda at: widths[at] - least[at])] -= 1
        for line in shown:
            yield from _broken({at: line[at] for at in block}, widths, table.numbers)


def _least(column: Sequence[str], full: int, *, number: bool) -> int:
    """Return a column's minimum width; in one of numbers only the head may be broken."""
    words = " ".join(column[:1] if number else column).split()
    word = min(max(map(cell_len, words), default=0), _MIN_BROKEN)
    return max([word, *map(cell_len, column[1:])]) if number else max(word, min(full, _SHORT))


def _total(widths: Collection[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _blocks(widths: Sequence[int], names: int, room: int) -> Iterator[list[int]]:
    """Yield the columns of each block, those that name the rows always first."""
    naming = list(range(names))
    block = list(naming)
    for index in range(names, len(widths)):
        if len(block) > names and _total([widths[at] for at in [*block, index]]) > room:
            yield block
            block = list(naming)
        block.append(index)
    yield block


def _broken(
    cells: Mapping[int, str], widths: Mapping[int, int], numbers: Collection[int]
) -> Iterator[str]:
    """Yield the terminal lines of one table row."""
    parts = {at: _wrapped(cell, widths[at]) for at, cell in cells.items()}
    for number in range(max(map(len, parts.values()))):
        padded = []
        for at, part in parts.items():
            text = part[number] if number < len(part) else ""
            padding = " " * (widths[at] - cell_len(text))
            padded.append(padding + text if at in numbers else text + padding)
        yield (" " * _GAP).join(padded).rstrip()


def _wrapped(text: str, columns: int) -> list[str]:
    """Break a text that is too wide, between words if possible."""
    if cell_len(text) <= columns:
        return [text]
    if len(text) == cell_len(text):
        return wrap(text, columns, break_on_hyphens=False) or [""]
    return chop_cells(text, columns)
