"""What a summarising model is shown: a conversation as data, one JSON object a line.

JSON keeps the conversation from ending its own delimiter, whatever stands in it.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageAssistant

from compression_eval.compressors.tokens import content_text


def message_lines(messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield one JSON line per message: position, role, text, tool calls."""
    for index, message in enumerate(messages):
        text = content_text(message)
        line: dict[str, Any] = {"index": index, "role": message.role, "text": text}
        if isinstance(message, ChatMessageAssistant) and message.tool_calls:
            line["calls"] = [
                {"name": call.function, "arguments": call.arguments} for call in message.tool_calls
            ]
        yield json.dumps(line, ensure_ascii=False)


def data_block(header: dict[str, Any], messages: Sequence[ChatMessage]) -> str:
    """Return the data that follows the instructions: header entries, then the messages.

    Args:
        header: Each entry becomes a line of its own, in order.
        messages: The conversation to be summarised.
    """
    lines = [json.dumps({key: value}, ensure_ascii=False) for key, value in header.items()]
    return "\n".join([*lines, *message_lines(messages)])
