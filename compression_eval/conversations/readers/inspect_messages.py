"""Inspect's chat messages, turned into drafts."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from compression_eval.conversations.drafts import Draft, DraftCall, Image, Role
from compression_eval.conversations.fields import as_text, label
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.openai_content import image_of
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import leave_out_thinking
from compression_eval.fixtures.models import ToolDefinition

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Content
    from inspect_ai.tool import ToolInfo

_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_PLACEHOLDERS = {
    "audio": "[sound]",
    "video": "[video]",
    "document": "[an attached document]",
}


def give_ids(messages: Iterable["ChatMessage"]) -> None:
    """Give ids to the messages of a list that have none, as those of old logs.

    Users and agents repeat themselves, so that it is what a message says, and the how manyth of
    the list to say it, that tells it from the others. In another list that begins alike it gets
    the same id.
    """
    seen: Counter[str] = Counter()
    for message in messages:
        if message.id is None:
            said = key_of(message)
            seen[said] += 1
            message.id = f"{said} {seen[said]}"


def key_of(message: "ChatMessage") -> str:
    """Return what tells a message from the others."""
    if message.id:
        return message.id
    calls = [call.id for call in getattr(message, "tool_calls", None) or []]
    answered = getattr(message, "tool_call_id", None)
    return json.dumps([message.role, message.text, calls, as_text(answered)])


def drafts_of(message: "ChatMessage", line: Line) -> list[Draft]:
    """Return what a message becomes.

    As a rule it is one. Tools that the provider runs stand with their results inside the answer; a
    fixture holds each result behind its call, so that what follows is a message of its own.

    Args:
        message: As logged, attachments resolved.
        line: Where what is not carried over is entered.
    """
    role = _ROLES[message.role]
    drafts = [Draft(role)]
    if message.role == "tool":
        drafts[0].call_id = message.tool_call_id or ""
        if message.error is not None:
            # What the model was shown: providers send it in place of the content.
            drafts[0].content.append(message.error.message)
            return drafts
    for part in [message.content] if isinstance(message.content, str) else message.content:
        if not isinstance(part, str) and part.type == "tool_use":
            drafts[-1].calls.append(DraftCall(part.id, part.name, part.arguments))
            drafts.append(Draft("tool", [part.error or part.result], call_id=part.id))
            drafts.append(Draft(role))
        elif (piece := _piece(part, line)) is not None:
            drafts[-1].content.append(piece)
    if message.role == "assistant":
        drafts[-1].calls.extend(
            DraftCall(call.id, call.function, as_text(call.arguments))
            for call in message.tool_calls or []
        )
    if len(drafts) > 1 and not drafts[-1].content and not drafts[-1].calls:
        drafts.pop()
    return drafts


def _piece(part: "str | Content", line: Line) -> str | Image | None:
    if isinstance(part, str):
        return part
    if part.type == "text":
        return part.text
    if part.type == "image":
        return image_of(part.image)
    if part.type == "reasoning":
        leave_out_thinking(line)
        return None
    line.leave_out(label(part.type), "it is not carried over")
    return _PLACEHOLDERS.get(part.type)


def tools_of(infos: Iterable["ToolInfo"]) -> list[ToolDefinition]:
    """Return tools as a fixture has them."""
    values: list[dict[str, Any]] = []
    for info in infos:
        parameters = info.parameters.model_dump(mode="json", exclude_none=True)
        function = {"name": info.name, "description": info.description, "parameters": parameters}
        values.append({"type": "function", "function": function})
    return tool_definitions(values)[0]
