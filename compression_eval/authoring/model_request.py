"""What a model reads that writes probes: instructions, one part of the history as data, the task.

All requests about one part begin alike and differ only in their last lines, so that a provider's
prompt cache serves three of four. A message is JSON on a line of its own, where nothing in it can
end its line, between marks whose code is made from the whole material, so that no message can
contain it.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, ContentText

from compression_eval.authoring.history import THIRDS, History
from compression_eval.authoring.prompts import prompt
from compression_eval.authoring.templates import wordings
from compression_eval.compressors.material import one_line_json
from compression_eval.fixtures.banks import ProbeType

_LONGEST_TEXT = 12_000
"""Characters of one message that are shown; evidence further inside is not asked for."""
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class ModelRequest:
    """One request for candidates of one type from one part of a history."""

    kind: ProbeType
    messages: tuple[ChatMessage, ...]
    prefix_key: str
    """Equal for requests that begin alike."""


def model_request(history: History, part: range, kind: ProbeType, count: int) -> ModelRequest:
    """Build a request.

    Args:
        history: The history before a cut.
        part: Indices of the messages to ask about.
        kind: Type of the probes.
        count: How many are wanted.
    """
    shown = _lines(history, part)
    kept = _lines(history, range(history.tail_start, history.cut))
    code = hashlib.sha256(f"{shown}\n{kept}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    material = _filled(
        prompt("material"),
        {
            "range": f"{part.start} to {part.stop - 1}",
            "code": code,
            "history": shown,
            "kept": kept,
        },
    )
    language = wordings(history.language).language_name
    task = _filled(prompt(kind), {"count": str(count), "language": language})
    if thirds := _thirds(history, part):
        task = f"{task}\n{_filled(prompt('thirds'), thirds)}"
    return ModelRequest(
        kind,
        (
            ChatMessageSystem(content=prompt("instructions")),
            ChatMessageUser(
                content=[
                    ContentText(text=material, cache_breakpoint=True),
                    ContentText(text=task),
                ]
            ),
        ),
        f"generate:{code}",
    )


def correction(faults: Iterable[str]) -> ChatMessageUser:
    """Return what a model is told about candidates that cannot be used."""
    return ChatMessageUser(content=_filled(prompt("correction"), {"faults": "\n".join(faults)}))


def unreadable(fault: str) -> ChatMessageUser:
    """Return what a model is told about a reply that cannot be read."""
    return ChatMessageUser(content=_filled(prompt("unreadable"), {"fault": fault}))


def _lines(history: History, part: range) -> str:
    return "\n".join(one_line_json(_shown(history, index)) for index in part)


def _shown(history: History, index: int) -> dict[str, Any]:
    message = history.messages[index]
    line: dict[str, Any] = {"index": index, "role": message.role, "text": _clipped(message.text)}
    if message.calls:
        line["calls"] = [
            {"name": call.function.name, "arguments": _arguments(call.function.parsed())}
            for call in message.calls
        ]
    return line


def _arguments(arguments: dict[str, Any]) -> Any:
    text = json.dumps(arguments, ensure_ascii=False)
    return arguments if len(text) <= _LONGEST_TEXT else _clipped(text)


def _clipped(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    left_out = f" [… {len(text) - 2 * half} characters …] "
    return f"{text[:half]}{left_out}{text[-half:]}"


def _thirds(history: History, part: range) -> dict[str, str] | None:
    """Return the message numbers of beginning, middle and end of a part that is long enough."""
    sizes = [history.sizes[index] for index in part]
    if len(sizes) < 2 * len(THIRDS):
        return None
    ranges: list[list[int]] = [[], [], []]
    passed = 0
    for index, size in zip(part, sizes, strict=True):
        ranges[min(2, 3 * passed // max(sum(sizes), 1))].append(index)
        passed += size
    if not all(ranges):
        return None
    return {
        third: f"{indices[0]} to {indices[-1]}"
        for third, indices in zip(THIRDS, ranges, strict=True)
    }


def _filled(template: str, values: dict[str, str]) -> str:
    """Put values into their places at once, so that no value can be read as a place."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), template)
