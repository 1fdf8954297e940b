"""Texts of conversations, made fit for a page: bounded, and without what no page can show."""

import json
import re
from typing import Any

_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # separators, and what turns the direction of text
    "\ud800-\udfff\ufffe\uffff]"  # halves of characters, and what is none
)


def clean(text: object, longest: int) -> str:
    """Return a text as a page can hold it: half characters and control characters replaced.

    Args:
        text: Any text; None is empty.
        longest: In characters; what is left out is said.
    """
    full = "" if text is None else str(text)
    fit = _UNFIT.sub("\ufffd", full[:longest].replace("\r\n", "\n"))
    if len(full) <= longest:
        return fit
    return f"{fit}… [{len(full) - longest:,} more characters in the log]"


def script_json(data: Any) -> str:
    """Return JSON that can stand in a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
