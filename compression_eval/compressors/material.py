"""What a summarising model is shown: a conversation as data, one JSON object a line.

JSON keeps the conversation from ending its own delimiter, whatever stands in it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageAssistant

from compression_eval.compressors.tokens import content_text

_SEPARATORS = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What JSON leaves as it is but some readers take for a line break, and lone surrogates."""


def one_line_json(data: Any) -> str:
    """Return data as JSON that is one line to every reader."""
    text = json.dumps(data, ensure_ascii=False)
    return _SEPARATORS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def message_lines(messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield one JSON line per message: position, role, text, tool calls."""
    for index, message in enumerate(messages):
        text = content_text(message)
        line: dict[str, Any] = {"index": index, "role": message.role, "text": text}
        if isinstance(message, ChatMessageAssistant) and message.tool_calls:
            line["calls"] = [
                {"name": call.function, "arguments": call.arguments} for call in message.tool_calls
            ]
        yield one_line_json(line)


def data_block(header: dict[str, Any], messages: Sequence[ChatMessage]) -> str:
    """Return the data that follows the instructions: header entries, then the messages.

    Args:
        header: Each entry becomes a line of its own, in order.
        messages: The conversation to be summarised.
    """
    lines = [one_line_json({key: value}) for key, value in header.items()]
    return "\n".join([*lines, *message_lines(messages)])
