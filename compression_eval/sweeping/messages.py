"""Errors of other people's code as one line."""

import re

_MARKUP = re.compile(r"\[/?[a-z]+(?: [a-z]+)*\]")
_LONGEST = 300


def one_line(error: Exception) -> str:
    """Return an error's text on one line, without the markup that Inspect puts into some."""
    text = " ".join(_MARKUP.sub("", str(error)).split())
    return text[:_LONGEST] or type(error).__name__
