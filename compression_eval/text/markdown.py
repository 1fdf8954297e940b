"""Markdown for the log viewer from untrusted text."""

import math
import re
from collections.abc import Callable, Sequence

_ENTITIES = str.maketrans(
    {chr(number): "\ufffd" for number in (*range(32), *range(127, 160))}
    | {character: f"&#{ord(character)};" for character in "&<>|[]`*\\$~"}
    | dict.fromkeys("\r\n\t\x0b\x0c\x85\u2028\u2029", " ")
)

_CALLS = re.compile(
    r"(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|#(?=\d)|\bGH-(?=\d)|(?<=:)/(?=/)|(?<=\bwww)(?=\.)",
    re.IGNORECASE,
)
"""Text that a forge would turn into a mention, a reference or a link."""

_EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
"""Underscores that are not within a word."""


def escaped(text: str, limit: int = 600) -> str:
    """Return ``text`` on one line, escaped so that it cannot alter the page or the table.

    Args:
        text: Any text.
        limit: Longest result in characters of ``text``; a longer one ends in an ellipsis.
    """
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return short.translate(_ENTITIES).strip()


def pasted(text: str, limit: int = 600) -> str:
    """Return ``text`` as `escaped` does, safe to paste into a pull request.

    There it also mentions nobody, refers to no issue and links nothing.
    """
    # Before the entities, which contain "#" themselves.
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    harmless = escaped(_CALLS.sub("\\g<0>\u200b", short), 2 * limit)
    return _EMPHASIS.sub("&#95;", harmless)


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    cell: Callable[[str], str] = escaped,
) -> str:
    """Return a Markdown table; ``cell`` escapes the cells."""
    lines = [_row(heads), _row(["---"] * len(heads))]
    lines.extend(_row([cell(text) for text in row]) for row in rows)
    return "\n".join(lines)


def number(value: float | None, digits: int = 2) -> str:
    """Return a number for a cell; a dash for what was not measured."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def yes_no(value: bool | None) -> str:
    """Return ``yes``, ``no``, or a dash for what is not known."""
    return "–" if value is None else "yes" if value else "no"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
