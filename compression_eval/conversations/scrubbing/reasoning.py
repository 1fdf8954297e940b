"""Pass ``reasoning``: thoughts that a model wrote into its own text, between tags."""

import re
from functools import cache

from compression_eval.conversations.scrubbing.words import words

NAME = "reasoning"

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


def without_reasoning(text: str) -> str:
    """Return an assistant's text without its blocks of reasoning.

    A block begins with its tag at the start of a line and ends with the closing tag, both outside
    of fenced code. At the start of the text a block may lack one of the two: the closing tag where
    the answer was cut off, the opening one where the prompt's template held it.
    """
    if "<" not in text:
        return text
    fences = [found.start() for found in _FENCE.finditer(text)]
    result: list[str] = []
    place = 0
    while found := _opening().search(text, place):
        end = _closing(found["tag"].lower()).search(text, found.end())
        if _is_fenced(fences, found.start()):
            result.append(text[place : found.end()])
            place = found.end()
            continue
        if end is None and text[: found.start()].strip():
            break
        result.append(text[place : found.start()])
        place = len(text) if end is None else end.end()
    result.append(text[place:])
    kept = _without_open_start("".join(result))
    return text if kept == text else kept.strip("\n")


def _without_open_start(text: str) -> str:
    """Drop what stands before a closing tag on a line of its own that nothing opened."""
    for found in _lone_closing().finditer(text):
        head = text[: found.start()]
        if "```" not in head and not _opening().search(head) and f"<{found['tag']}>" not in head:
            return text[found.end() :]
        return text
    return text


def _is_fenced(fences: list[int], place: int) -> bool:
    return sum(fence < place for fence in fences) % 2 == 1


@cache
def _opening() -> re.Pattern[str]:
    names = "|".join(sorted(words("reasoning_tags"), key=len, reverse=True))
    return re.compile(rf"(?im:^[ \t]*<(?P<tag>{names})>)")


@cache
def _lone_closing() -> re.Pattern[str]:
    names = "|".join(sorted(words("reasoning_tags"), key=len, reverse=True))
    return re.compile(rf"(?im:^[ \t]*</(?P<tag>{names})>[ \t]*$)")


@cache
def _closing(tag: str) -> re.Pattern[str]:
    return re.compile(rf"(?i:</{re.escape(tag)}>)[ \t]*\n?")
