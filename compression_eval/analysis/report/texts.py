"""Texts of conversations, made fit for a page: bounded, and without what no page can show."""

import json
from typing import Any

_SHOWN_CONTROLS = "\n\t"


def clean(text: object, longest: int) -> str:
    """Return a text as a page can hold it: half characters and control characters replaced.

    Args:
        text: Any text; None is empty.
        longest: In characters; what is left out is said.
    """
    full = "" if text is None else str(text)
    short = full[:longest]
    fit = "".join(
        character if character.isprintable() or character in _SHOWN_CONTROLS else "\ufffd"
        for character in short.replace("\r\n", "\n")
    )
    if len(full) <= longest:
        return fit
    return f"{fit}… [{len(full) - longest:,} more characters in the log]"


def script_json(data: Any) -> str:
    """Return JSON that can stand in a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
