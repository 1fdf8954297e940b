"""Markdown for the log viewer, out of texts that nobody vouches for."""

import math
from collections.abc import Sequence

_ENTITIES = str.maketrans(
    {character: f"&#{ord(character)};" for character in "&<>|[]`*\\$~"}
    | dict.fromkeys("\r\n\t\x0b\x0c\x85\u2028\u2029", " ")
)


def escaped(text: str, limit: int = 600) -> str:
    """Return ``text`` as it is read, on one line, with no power over the page or the table.

    Args:
        text: Any text.
        limit: Longest result in characters of ``text``; a longer one ends in an ellipsis.
    """
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short.translate(_ENTITIES).strip()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the cells are escaped here."""
    lines = [_row(heads), _row(["---"] * len(heads))]
    lines.extend(_row([escaped(cell) for cell in row]) for row in rows)
    return "\n".join(lines)


def number(value: float | None, digits: int = 2) -> str:
    """Return a number for a cell; a dash for what was not measured."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def yes_no(value: bool | None) -> str:
    """Return ``yes``, ``no``, or a dash for what is not known."""
    return "–" if value is None else "yes" if value else "no"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
