"""Tables for a terminal, out of texts that nobody vouches for."""

import unicodedata
from collections.abc import Iterator, Sequence

LONGEST_CELL = 48
"""In characters."""


def aligned(
    lines: Sequence[Sequence[str]],
    *,
    numbers_from: int,
    numbers_to: int | None = None,
    longest: int = LONGEST_CELL,
) -> Iterator[str]:
    """Yield the lines of a table with its columns under one another.

    Args:
        lines: Cells of the heads and the rows; every line has as many.
        numbers_from: Index of the first column that is set flush right.
        numbers_to: Index of the first one after those that is not; the end by default.
        longest: Most characters of a cell.
    """
    shown = [[printable(cell, longest) for cell in line] for line in lines]
    widths = [max(map(width, column)) for column in zip(*shown, strict=True)]
    last = len(widths) if numbers_to is None else numbers_to
    for line in shown:
        cells = []
        for number, (cell, wanted) in enumerate(zip(line, widths, strict=True)):
            padding = " " * (wanted - width(cell))
            right = numbers_from <= number < last
            cells.append(padding + cell if right else cell + padding)
        yield "  ".join(cells).rstrip()


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
