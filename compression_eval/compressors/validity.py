"""Whether a state is one that a provider would accept and an agent could go on from."""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageAssistant

from compression_eval.compressors.tokens import message_text
from compression_eval.compressors.window import groups


def structural_problem(messages: Sequence[ChatMessage]) -> str | None:
    """Return what is wrong with the structure of a state, or None.

    Checked: system messages come first, then a user message; every tool result follows its call
    and every call has its result; no message is empty.
    """
    body = list(messages)
    while body and body[0].role == "system":
        del body[0]
    if body and body[0].role != "user":
        return f"the first message after the system prompt is from the {body[0].role}, not the user"
    for position, message in enumerate(body):
        if message.role == "system":
            return f"a system message stands in the middle (position {position})"
        if not message_text(message).strip() and not isinstance(message.content, list):
            return f"an empty {message.role} message (position {position})"
    for group in groups(body):
        first = group[0]
        if first.role == "tool":
            return f"a tool result without its call ({first.tool_call_id})"
        calls = (first.tool_calls or []) if isinstance(first, ChatMessageAssistant) else []
        answered = {message.tool_call_id for message in group[1:] if message.role == "tool"}
        for call in calls:
            if call.id not in answered:
                return f"a tool call without its result ({call.id})"
    return None
