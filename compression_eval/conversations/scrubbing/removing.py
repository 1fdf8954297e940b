"""Passes that take something away from single messages: images, reasoning, long outputs, prompts.

Each is a function from a message (as JSON) to the message that is left, and leaves what it has
made as it is, so that a second scrub changes nothing.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from compression_eval.conversations.scrubbing.reasoning import without_reasoning

Json = dict[str, Any]

OUTPUT_CHARACTERS = 2000
"""A tool output is cut to this many characters, the note about it included."""


def without_images(message: Json) -> Json:
    """Put a note in the place of every image: nobody can scrub what is in a picture."""
    content = message.get("content")
    if not isinstance(content, list) or all(part["type"] == "text" for part in content):
        return message
    note = {"type": "text", "text": _note("image")}
    return {**message, "content": [part if part["type"] == "text" else note for part in content]}


def without_thoughts(message: Json) -> Json:
    """Take the reasoning out of an assistant's text."""
    return _with_texts(message, without_reasoning) if message["role"] == "assistant" else message


def with_short_output(message: Json) -> Json:
    """Cut a long tool output, and say how much is left out."""
    return _with_texts(message, _shortened) if message["role"] == "tool" else message


def with_generic_prompt(message: Json) -> Json:
    """Replace a system prompt by one that says nothing about who wrote it."""
    if message["role"] != "system":
        return message
    return {**message, "content": generic_prompt()}


PER_MESSAGE: dict[str, Callable[[Json], Json]] = {
    "images": without_images,
    "reasoning": without_thoughts,
    "system_prompt": with_generic_prompt,
    "truncation": with_short_output,
}
"""The passes of this module by name, in the order they run."""


def changes(passes: tuple[str, ...], message: Json) -> Iterator[tuple[str, Json]]:
    """Yield each pass that changes a message, with what the message is then."""
    for name, change in PER_MESSAGE.items():
        if name in passes:
            changed = change(message)
            if changed != message:
                message = changed
                yield name, message


@cache
def generic_prompt() -> str:
    """Return the system prompt that names nobody and nothing."""
    return (files(__package__) / "generic_system_prompt.md").read_text(encoding="utf-8").strip()


@cache
def _note(name: str) -> str:
    text = (files(__package__) / "notes.yaml").read_text(encoding="utf-8")
    note: str = yaml.safe_load(text)[name]
    return note


def _with_texts(message: Json, change: Callable[[str], str]) -> Json:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": change(content)}
    if isinstance(content, list):
        parts = [
            {**part, "text": change(part["text"])} if part["type"] == "text" else part
            for part in content
        ]
        return {**message, "content": parts}
    return message


def _shortened(text: str) -> str:
    if len(text) <= OUTPUT_CHARACTERS:
        return text
    room = OUTPUT_CHARACTERS - len(_truncation_note(len(text), len(text)))
    return text[:room] + _truncation_note(len(text) - room, len(text))


def _truncation_note(left_out: int, total: int) -> str:
    return _note("truncation").format(left_out=left_out, total=total)
