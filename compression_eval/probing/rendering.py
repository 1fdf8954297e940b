"""A list of chat messages as plain text, for a grader to read and for people to look at.

Only what was said, called and returned is shown. Ids, metadata, sources and model names are not:
they would tell a reader how the messages came about.
"""

import json
from collections.abc import Sequence

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    Content,
    ContentData,
    ContentReasoning,
    ContentText,
    ContentToolUse,
)

from compression_eval.compressors.tokens import vendor_summary


def render_messages(messages: Sequence[ChatMessage]) -> str:
    """Return the messages as text, one block each, blank lines between.

    A block begins with the role in brackets; a tool call stands on a line of its own with its
    name and its arguments as JSON. Parts that cannot be read are named, not shown.
    """
    return "\n\n".join(_block(message) for message in messages)


def _block(message: ChatMessage) -> str:
    head = f"[{message.role}]"
    if isinstance(message, ChatMessageTool) and message.function:
        head = f"[tool: {message.function}]"
    lines = [head]
    if isinstance(message.content, str):
        lines.append(message.content)
    else:
        lines.extend(_part(part) for part in message.content)
    if isinstance(message, ChatMessageTool) and message.error is not None:
        lines.append(f"(error) {message.error.message}")
    if isinstance(message, ChatMessageAssistant):
        for call in message.tool_calls or []:
            arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
            lines.append(f"(calls) {call.function} {arguments}")
    return "\n".join(line for line in lines if line)


def _part(part: Content) -> str:
    if isinstance(part, ContentText):
        return part.text
    if isinstance(part, ContentReasoning):
        text = part.summary if part.redacted else part.reasoning
        return f"(reasoning) {text}" if text else "(reasoning that cannot be read)"
    if isinstance(part, ContentToolUse):
        return f"(calls) {part.name} {part.arguments}\n(result) {part.error or part.result}"
    if isinstance(part, ContentData):
        return vendor_summary(part) or "(data that cannot be read)"
    return f"({part.type})"
