"""Passes that take something away: images, reasoning, long outputs, prompts, and whole messages.

Those for single messages are functions from a message (as JSON) to the message that is left. All
leave what they have made as it is, so that a second scrub changes nothing.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from compression_eval.text.thinking import split_thinking

Json = dict[str, Any]
ORPHANS = "orphans"

MAX_OUTPUT_CHARACTERS = 2000
"""A tool output is cut to this many characters, the note about it included."""

_IMAGE_NOTE = "[image removed]"
_TRUNCATION_NOTE = "\n[{left_out} of {total} characters left out]"


def changes(passes: tuple[str, ...], message: Json) -> Iterator[tuple[str, Json]]:
    """Yield each pass that changes a message, with what the message is then."""
    for name, change in PER_MESSAGE.items():
        if name in passes:
            changed = change(message)
            if changed != message:
                message = changed
                yield name, message


def _without_images(message: Json) -> Json:
    """Put a note in the place of every image: nobody can scrub what is in a picture."""
    content = message.get("content")
    if not isinstance(content, list) or all(part["type"] == "text" for part in content):
        return message
    note = {"type": "text", "text": _IMAGE_NOTE}
    return {**message, "content": [part if part["type"] == "text" else note for part in content]}


def _with_generic_prompt(message: Json) -> Json:
    """Replace a system prompt by one that says nothing about who wrote it."""
    return {**message, "content": generic_prompt()} if message["role"] == "system" else message


def _with_texts(message: Json, role: str, change: Callable[[str], str]) -> Json:
    """Change the texts of a message of one role."""
    content = message.get("content")
    if message["role"] != role or not content:
        return message
    if isinstance(content, str):
        return {**message, "content": change(content)}
    parts = [
        {**part, "text": change(part["text"])} if part["type"] == "text" else part
        for part in content
    ]
    return {**message, "content": parts}


PER_MESSAGE: dict[str, Callable[[Json], Json]] = {
    "images": _without_images,
    "reasoning": lambda message: _with_texts(message, "assistant", without_reasoning),
    "system_prompt": _with_generic_prompt,
    "truncation": lambda message: _with_texts(message, "tool", _shortened),
}
"""The passes for single messages by name, in the order they run."""


@cache
def generic_prompt() -> str:
    """Return the system prompt that names nobody and nothing."""
    return (files(__package__) / "generic_system_prompt.md").read_text(encoding="utf-8").strip()


def _shortened(text: str) -> str:
    """Cut a long tool output, and say how much is left out."""
    total = len(text)
    if total <= MAX_OUTPUT_CHARACTERS:
        return text
    room = MAX_OUTPUT_CHARACTERS - len(_TRUNCATION_NOTE.format(left_out=total, total=total))
    return text[:room] + _TRUNCATION_NOTE.format(left_out=total - room, total=total)


def without_reasoning(text: str) -> str:
    """Return an assistant's text without its blocks of reasoning.

    An opening mark without an end, after other text, may be no mark: the text stays whole.
    """
    split = split_thinking(text)
    return text if split.unclosed and split.said else split.said


def orphans(messages: list[Json]) -> set[int]:
    """Return the indices of empty assistant turns, and of trailing results that answer no call."""
    gone = set()
    for index, message in enumerate(messages):
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        empty = all(part["type"] == "text" and not part["text"].strip() for part in parts)
        if message["role"] == "assistant" and not message.get("tool_calls") and empty:
            gone.add(index)
    last = len(messages)
    while last and messages[last - 1]["role"] == "tool":
        last -= 1
    asked = [call["id"] for call in (messages[last - 1].get("tool_calls") or [] if last else [])]
    for index in range(last, len(messages)):
        if messages[index].get("tool_call_id") in asked:
            asked.remove(messages[index]["tool_call_id"])
        else:
            gone.add(index)
    return gone


def without_messages(data: Json, gone: set[int]) -> tuple[Json, dict[int, int]]:
    """Return a fixture without some of its messages, everything that counts them adjusted.

    A cut that has no user message before it any more, or that has come to stand on another, goes.

    Returns:
        The fixture, and the new index of each message that is left by its old one.
    """
    kept = [index for index in range(len(data["messages"])) if index not in gone]
    moved = {old: new for new, old in enumerate(kept)}
    messages = [data["messages"][index] for index in kept]
    data = {**data, "messages": messages}
    if data.get("cuts"):
        cuts = sorted({moved_count(moved, cut) for cut in data["cuts"]})
        first = next((i for i, message in enumerate(messages) if message["role"] == "user"), 0)
        data["cuts"] = [cut for cut in cuts if cut > first]
    compactions = []
    for item in data.get("recorded_compactions") or ():
        left = {**item, "cut": moved_count(moved, item["cut"])}
        if item.get("state") is not None:
            state = (moved.get(one) if isinstance(one, int) else one for one in item["state"])
            left["state"] = [one for one in state if one is not None]
        if left["cut"] > 0:
            compactions.append(left)
    if data.get("recorded_compactions"):
        data["recorded_compactions"] = compactions
    return data, moved


def moved_count(moved: dict[int, int], count: int) -> int:
    """Return how many messages are left of the first ``count``."""
    return sum(old < count for old in moved)
