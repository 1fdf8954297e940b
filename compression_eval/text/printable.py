"""Make untrusted text safe for a terminal, a page and a line of JSON."""

import json
import re
import unicodedata
from typing import Any

MAX_CELL = 48
"""Characters of a cell in a terminal's table."""

_SEPARATORS = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that JSON keeps but some readers take for line breaks, and lone surrogates."""

_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # separators, and what turns the direction of text
    "\ud800-\udfff\ufffe\uffff]"  # halves of characters, and what is none
)

_INVISIBLE = "\u115f\u1160\u2800\u3164\uffa0\U0001d159"
"""Letters and symbols that show nothing."""


def printable(text: str, longest: int = MAX_CELL) -> str:
    """Return a text without the power to move a terminal's cursor, and not too long."""
    # Only what is shown is looked at: a text may be as long as a conversation.
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in short)


def clean(text: object, longest: int) -> str:
    """Return a text as HTML and XML can contain it: half and control characters replaced.

    Args:
        text: Any text; None is empty.
        longest: In characters; what is left out is said.
    """
    full = "" if text is None else str(text)
    fit = _UNFIT.sub("\ufffd", full[:longest].replace("\r\n", "\n"))
    if len(full) <= longest:
        return fit
    return f"{fit}… [{len(full) - longest:,} more characters in the log]"


def one_line_json(data: Any) -> str:
    """Return data as JSON that is one line to every reader."""
    text = json.dumps(data, ensure_ascii=False)
    return _SEPARATORS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def blank(text: str) -> bool:
    """Return whether a text has no visible letter, digit, punctuation mark or symbol."""
    return not any(
        unicodedata.category(each)[0] in "LNPS" and each not in _INVISIBLE for each in text
    )
