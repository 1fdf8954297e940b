"""Steps of ATIF trajectories: what was said, the calls, and what the same step observed."""

from collections.abc import Iterator
from typing import Any

from compression_eval.conversations.drafts import Draft, DraftCall, Image
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.values import (
    identifier,
    leave_out_thinking,
    without_thinking,
)

SOURCES = ("system", "user", "agent")


def is_compaction(step: dict[str, Any]) -> bool:
    """Tell whether a step says that the agent compacted its context."""
    management = mapping_of(mapping_of(step, "extra"), "context_management")
    return text_of(management, "type") == "compaction"


def drafts_of(step: dict[str, Any], line: Line, *, opening: bool) -> list[Draft]:
    """Return the messages of a step: what was said, then what was observed.

    Args:
        step: A step that is no compaction.
        line: Settled if there is no message.
        opening: Whether nobody has spoken yet, so that a step of the system is the prompt.
    """
    source = text_of(step, "source")
    if source not in SOURCES:
        line.is_unknown("expected a step of the source system, user or agent")
        return []
    content = content_of(step.get("message"), line)
    if source == "user":
        said = Draft("user", content)
    elif source == "system":
        # In the middle of a conversation it is a note of the environment, not the prompt.
        said = Draft("system" if opening else "user", content)
    else:
        said = Draft("assistant")
        for part in content:
            said.content.append(without_thinking(part, line) if isinstance(part, str) else part)
        said.calls.extend(_calls(step, line))
        if step.get("reasoning_content"):
            leave_out_thinking(line)
    return [said, *_observed(step, said, line)]


def content_of(value: Any, line: Line) -> list[str | Image]:
    """Return texts and images of a message, a text or a list of parts."""
    if value is None or isinstance(value, str):
        return [value] if value else []
    if not isinstance(value, list):
        line.leave_out("content", "expected a text or a list of parts")
        return []
    found: list[str | Image] = []
    for part in value:
        kind = text_of(part, "type")
        if kind == "text":
            found.append(text_of(part, "text"))
        elif kind == "image":
            # The path of an image is not followed: it may lead anywhere.
            found.append(Image(text_of(mapping_of(part, "source"), "media_type")))
        else:
            line.leave_out(f"part {label(kind)}", "unknown kind of content")
    return found


def _calls(step: dict[str, Any], line: Line) -> Iterator[DraftCall]:
    for call in list_of(step, "tool_calls"):
        if isinstance(call, dict):
            name, arguments = text_of(call, "function_name"), as_text(call.get("arguments"))
            yield DraftCall(identifier(call, "tool_call_id"), name, arguments)
        else:
            line.leave_out("tool call", "expected an object")


def _observed(step: dict[str, Any], said: Draft, line: Line) -> Iterator[Draft]:
    """Yield results of calls, and, as the agent saw them, user messages for other observations."""
    results = list_of(mapping_of(step, "observation"), "results")
    named = {identifier(result, "source_call_id") for result in results}
    unnamed = sum(not identifier(result, "source_call_id") for result in results)
    open_calls = [call.id for call in said.calls if call.id not in named]
    by_order = iter(open_calls if len(open_calls) == unnamed else ())
    for result in results:
        if not isinstance(result, dict):
            line.leave_out("observation", "expected an object")
            continue
        if list_of(result, "subagent_trajectory_ref"):
            line.leave_out("sub-agent", "its trajectory is a conversation of its own")
        content = content_of(result.get("content"), line)
        call_id = identifier(result, "source_call_id") or next(by_order, "")
        if call_id:
            yield Draft("tool", content, call_id=call_id)
        elif content:
            yield Draft("user", content)
