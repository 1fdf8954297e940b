"""How a history is shown to a model: one message per line, in one request or in parts.

A message of the history is JSON on a line of its own, where nothing in it can end its line, between
marks whose code is made from the whole material, so that no message can contain it. It comes first
in every request about it, for the provider's prompt cache. What models are told is in ``prompts``.
"""

import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, ContentText

from compression_eval.authoring.history import History
from compression_eval.fixtures.tokens import text_counter
from compression_eval.text.printable import one_line_json

_TOOL_TEXTS = (4_000, 1_500, 500)
"""Characters of a tool's result, and of the arguments of a call, that are shown; the first with
which a history fits into one request. Evidence further inside is not asked for: most of it is
what the workspace shows."""

_MAX_TEXT = 12_000
"""The same for what the user and the agent wrote."""

_MAX_BETWEEN = 1_500
"""The same for what the user wrote after the part that is shown."""

_PLACE = re.compile(r"\{(\w+)\}")


def parts_of(history: History, budget: int) -> tuple[list[range], int]:
    """Return the parts that a history is shown in, and how much of what tools returned.

    A reader of a part cannot see what came of things later, so as much is shortened as is needed
    to show all at once.
    """
    count = text_counter().count
    for tool_text in _TOOL_TEXTS:
        sizes = [0] * history.cut
        for index in history.compressed:
            sizes[index] = count(_line(history, index, tool_text))
        if sum(sizes) <= budget:
            break
    return replace(history, sizes=sizes).chunks(budget), tool_text


def material_of(history: History, part: range, tool_text: int) -> str:
    """Return a part of the messages, and what comes after it up to the cut, as they are shown."""
    shown = "\n".join(_line(history, index, tool_text) for index in part)
    after = "\n".join(
        [
            *(
                _line(history, index, tool_text, _MAX_BETWEEN)
                for index in range(part.stop, history.tail_start)
                if history.messages[index].typed.strip()
            ),
            *(_line(history, index, tool_text) for index in range(history.tail_start, history.cut)),
        ]
    )
    code = hashlib.sha256(f"{shown}\n{after}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return prompt(
        "material",
        range=f"{part.start} to {part.stop - 1}",
        code=code,
        history=shown,
        after=after,
        kept_from=str(history.tail_start),
    )


def request_of(material: str, task: str) -> list[ChatMessage]:
    """Build a request about a part of the messages; all about one part begin alike."""
    content = [ContentText(text=material, cache_breakpoint=True), ContentText(text=task)]
    return [ChatMessageSystem(content=prompt("conversation")), ChatMessageUser(content=[*content])]


def _line(history: History, index: int, tool_text: int, text: int = _MAX_TEXT) -> str:
    """Return a message as JSON on one line."""
    message = history.messages[index]
    longest = tool_text if message.role == "tool" else text
    shown: dict[str, Any] = {
        "index": index,
        "role": message.role,
        "text": _clipped(message.text, longest),
    }
    for call in message.calls:
        arguments: Any = call.function.parsed()
        written = json.dumps(arguments, ensure_ascii=False)
        if len(written) > tool_text:
            arguments = _clipped(written, tool_text)
        shown.setdefault("calls", []).append({"name": call.function.name, "arguments": arguments})
    return one_line_json(shown)


def _clipped(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} [… {len(text) - 2 * half} characters …] {text[-half:]}"


def prompt(name: str, **values: str) -> str:
    """Return a prompt with values in their places, all at once: no value is read as a place."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), _template(name))


@cache
def _template(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
