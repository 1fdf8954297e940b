"""Tables for a terminal, out of texts that nobody vouches for."""

import shutil
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

LONGEST_CELL = 48
"""In characters."""

_GAP = 2
_NARROWEST = 26
"""Columns of a terminal from which on a word is broken."""

_SHORT = 12
"""Columns of a terminal up to which a column of text is left as it is."""


def aligned(
    lines: Sequence[Sequence[str]],
    *,
    numbers_from: int,
    numbers_to: int | None = None,
    longest: int = LONGEST_CELL,
    indent: int = 0,
    one_line_each: bool = False,
) -> Iterator[str]:
    """Yield the lines of a table with its columns under one another, fit for the terminal.

    What is too broad is broken: heads and cells of text between words, then the table itself into
    one under another, each with the columns that name its rows.

    Args:
        lines: Cells of the heads and the rows; every line has as many.
        numbers_from: Index of the first column that is set flush right.
        numbers_to: Index of the first one after those that is not; the end by default.
        longest: Most characters of a cell.
        indent: Columns of the terminal that are left free before every line.
        one_line_each: Break nothing, for a list that is searched rather than read.
    """
    shown = [[printable(cell, longest) for cell in line] for line in lines]
    last = len(shown[0]) if numbers_to is None else numbers_to
    room = max(80, shutil.get_terminal_size((80, 24)).columns) - indent
    if one_line_each:
        room = sum(width(cell) + _GAP for line in shown for cell in line)
    full = [max(map(width, column)) for column in zip(*shown, strict=True)]
    numbers = range(numbers_from, last)
    least = list(full)
    if _total(full) > room:
        for index, column in enumerate(zip(*shown, strict=True)):
            # Of a column of numbers only the head may be broken.
            kept = column[1:] if index in numbers else ()
            words = " ".join(column[:1] if index in numbers else column).split()
            word = min(max(map(width, words), default=0), _NARROWEST)
            short = 0 if index in numbers else min(full[index], _SHORT)
            least[index] = max([word, short, *map(width, kept)])
    for number, columns in enumerate(_blocks(least, numbers_from, room)):
        if number:
            yield ""
        widths = {at: least[at] if at in numbers else full[at] for at in columns}
        texts = [at for at in columns if at not in numbers]
        while _total(list(widths.values())) > room and any(widths[at] > least[at] for at in texts):
            widths[max(texts, key=lambda at: widths[at] - least[at])] -= 1
        for line in shown:
            yield from _broken([line[at] for at in columns], widths, numbers)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _blocks(widths: Sequence[int], naming: int, room: int) -> Iterator[list[int]]:
    """Yield the columns that stand beside one another, those that name the rows always first."""
    names = list(range(max(naming, 1)))
    block = list(names)
    for index in range(len(names), len(widths)):
        if len(block) > len(names) and _total([widths[at] for at in [*block, index]]) > room:
            yield block
            block = list(names)
        block.append(index)
    yield block


def _broken(cells: Sequence[str], widths: Mapping[int, int], numbers: range) -> Iterator[str]:
    """Yield the lines that one line of a table takes.

    Args:
        cells: Of the columns that stand beside one another.
        widths: By the index of each of those columns.
        numbers: Indices that are set flush right.
    """
    parts = [_wrapped(cell, widths[at]) for cell, at in zip(cells, widths, strict=True)]
    for number in range(max(map(len, parts))):
        found = []
        for part, at in zip(parts, widths, strict=True):
            text = part[number] if number < len(part) else ""
            padding = " " * (widths[at] - width(text))
            found.append(padding + text if at in numbers else text + padding)
        yield (" " * _GAP).join(found).rstrip()


def _wrapped(text: str, columns: int) -> list[str]:
    """Break a text that is too broad, where it may be between words."""
    if width(text) <= columns:
        return [text]
    if len(text) == width(text):
        return wrap(text, columns, break_on_hyphens=False) or [""]
    found = [""]
    for character in text:
        if width(found[-1] + character) > columns:
            found.append("")
        found[-1] += character
    return found


def printable(text: str, longest: int = LONGEST_CELL) -> str:
    """Return a text without the power to move a terminal's cursor, and not too long."""
    # Only what is shown is looked at: a text may be as long as a conversation.
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in short
    )


def width(text: str) -> int:
    """Return the columns that a text takes in a terminal."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
