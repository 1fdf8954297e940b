"""Cut a text to a number of tokens, with a mark where something is missing."""

from collections.abc import Callable
from typing import Literal

from compression_eval.compressors.products import filled

_SHRINK = 0.9


def fitted(
    text: str, tokens: int, count: Callable[[str], int], keep: Literal["start", "ends"]
) -> str:
    """Return a text that takes no more than so many tokens.

    Args:
        text: The text.
        tokens: The most it may take.
        count: Counts the tokens of a text.
        keep: ``start`` cuts off the end, ``ends`` takes out the middle.

    Returns:
        The text itself if it fits; empty if not even the mark would.
    """
    have = count(text)
    if have <= tokens:
        return text
    kept = int(len(text) * tokens / have)
    while kept > 0:
        mark = filled("left_out", count=len(text) - kept)
        if keep == "start":
            result = f"{text[:kept]}\n{mark}"
        else:
            half = (kept + 1) // 2
            result = f"{text[:half]}\n{mark}\n{text[len(text) - (kept - half) :]}"
        if count(result) <= tokens:
            return result
        kept = int(kept * _SHRINK)
    return ""
