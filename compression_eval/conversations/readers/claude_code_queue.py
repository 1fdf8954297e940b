"""Prompts that a user typed while Claude Code worked, as its queue operations record them.

Such a prompt may stand in a user line or an attachment as well, once it was handed over, or
nowhere else; or it was taken back for editing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compression_eval.conversations.drafts import Draft, Line
from compression_eval.conversations.readers.anthropic import content_of
from compression_eval.conversations.readers.base import marks_of
from compression_eval.conversations.readers.claude_code_tree import UNDONE, Record

_NONE = -1


@dataclass(frozen=True)
class Outcome:
    """What became of one operation; lines are given by their indices, -1 is none."""

    reason: str = ""
    """Why it is skipped."""
    stands_in: int = _NONE
    """The line that holds the operation's prompt."""
    hands_over: int = _NONE
    """The operation that holds the prompt, where no line does."""


@dataclass(frozen=True)
class Queue:
    """What became of all operations, but for those whose prompts another one hands over."""

    outcomes: dict[int, Outcome]
    waiting: list[int]
    """Operations whose prompts still wait at the end and stand in no line."""


def match_prompts(records: Sequence[Record], followed: set[int]) -> Queue:
    """Find out for every operation of the queue where its prompt stands."""
    prompts = {i: item.prompt for i, item in enumerate(records) if item.prompt and not item.summary}
    free = dict(prompts)
    """Those that are no prompt of the queue yet: each is one only."""
    outcomes: dict[int, Outcome] = {}
    waiting: dict[int, str] = {}
    operations = ((i, item) for i, item in enumerate(records) if item.type == "queue-operation")
    for index, record in operations:
        content = record.entry.at("content")
        if record.subtype == "enqueue":
            waiting.update({index: text} if (text := _text_of(content)) is not None else {})
        elif record.subtype == "popAll":
            taken = Outcome("taken back by the user for editing")
            outcomes |= dict.fromkeys(waiting, taken)
            outcomes[index] = Outcome("the user took the waiting prompts back for editing")
            waiting.clear()
        elif record.subtype in ("dequeue", "remove") and not waiting:
            outcomes[index] = Outcome("no prompt of this file was waiting")
        elif record.subtype in ("dequeue", "remove"):
            wanted = content.strip() if isinstance(content, str) else None
            named = (at for at, text in waiting.items() if wanted in (None, text))
            found = next(named, next(iter(waiting)))
            text = waiting.pop(found)
            place = _same(free, found, text)
            free.pop(place, None)
            if place == _NONE:
                place = _within_next(prompts, index, text)
            if place != _NONE:
                outcomes[found] = outcomes[index] = Outcome(stands_in=place)
            elif _undone(records, followed, index):
                outcomes[found] = outcomes[index] = Outcome(UNDONE)
            else:
                outcomes[index] = Outcome(hands_over=found)
    for index, text in waiting.items():
        place = _same(free, index, text)
        if free.pop(place, None):
            outcomes[index] = Outcome(stands_in=place)
    return Queue(outcomes, [index for index in waiting if index not in outcomes])


def _text_of(content: Any) -> str | None:
    """Return a prompt's text; None if it is none, or nested too deeply."""
    if not isinstance(content, str | list):
        return None
    try:
        return Draft("user", content_of(content, Line())).text.strip()
    except RecursionError:
        return None


def _same(prompts: dict[int, str], index: int, text: str) -> int:
    """Return the first line behind an operation that is its prompt."""
    command = text.split(maxsplit=1)[0] if text.startswith("/") else ""
    named, starts = f"<command-name>{command}</command-name>", marks_of("claude_code")["command"]
    for place, prompt in prompts.items() if text else ():
        as_command = command and prompt.startswith(starts) and named in prompt
        if place >= index and (prompt == text or as_command):
            return place
    return _NONE


def _within_next(prompts: dict[int, str], index: int, text: str) -> int:
    """Return the next line with a prompt, if that holds this one and more.

    Prompts that waited together are handed over as one.
    """
    place = next((place for place in prompts if place > index), _NONE)
    prompt = prompts.get(place, text)
    within = text and prompt != text and f"\n{text}\n" in f"\n{prompt}\n"
    return place if within else _NONE


def _undone(records: Sequence[Record], followed: set[int], index: int) -> bool:
    """Return whether the messages around a line are on a branch that was left."""
    sides = (range(index - 1, -1, -1), range(index + 1, len(records)))
    messages = ((i for i in side if records[i].linked and records[i].speaks) for side in sides)
    around = {place for side in messages if (place := next(side, None)) is not None}
    return bool(around) and not around & followed
