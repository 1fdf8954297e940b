"""The OpenAI chat form, in which users' code and programs read and write messages.

Pydantic checks a reply. A message that comes back unchanged is recognised and replaced by the
original, so that it counts as kept verbatim.
"""

import json
from collections.abc import Hashable, Sequence
from typing import Any, cast
from uuid import uuid4

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ContentText,
    messages_from_openai,
)
from pydantic import TypeAdapter, ValidationError

from compression_eval.compressors.errors import CompressionError
from compression_eval.fixtures.models import BROKEN_TEXT, Message, broken_text

_MAX_PROBLEMS = 3
_MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


def to_chat_form(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages in the OpenAI chat form, as fresh plain data.

    Reasoning is left out; images and the like are named in brackets.
    """
    return [_plain(message) for message in messages]


async def from_chat_form(reply: object, given: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages of a reply, with unchanged ones replaced by the originals.

    Args:
        reply: Should be a list of messages in the OpenAI chat form.
        given: The messages that were sent.

    Raises:
        CompressionError: The reply is not that; the reason names the message and the field.
    """
    checked = _checked(reply)
    converted = await messages_from_openai(cast(Any, [message.plain() for message in checked]))
    originals = _recognised(
        [_key(message) for message in checked],
        [_key(Message.model_validate(message)) for message in to_chat_form(given)],
    )
    return [
        given[original]
        if original is not None
        else message.model_copy(update={"id": uuid4().hex, "source": None})
        for message, original in zip(converted, originals, strict=True)
    ]


def _recognised(reply: Sequence[Hashable], given: Sequence[Hashable]) -> list[int | None]:
    """Return for each message of a reply the index of the given one it equals, if any, by keys.

    Messages may be equal. So the beginning is matched from the start, and the part after the first
    difference from the end, where strategies keep messages; none is matched twice.
    """
    result: list[int | None] = [None] * len(reply)
    start = 0
    while start < min(len(reply), len(given)) and reply[start] == given[start]:
        result[start] = start
        start += 1
    places: dict[Hashable, list[int]] = {}
    for index in range(start, len(given)):
        places.setdefault(given[index], []).append(index)
    for position in range(len(reply) - 1, start - 1, -1):
        if unused := places.get(reply[position]):
            result[position] = unused.pop()
    return result


def _checked(reply: object) -> list[Message]:
    if not isinstance(reply, list | tuple):
        raise CompressionError(
            "error", f"the reply is not a list of messages but {type(reply).__name__}"
        )
    try:
        messages = _MESSAGES.validate_python(list(reply))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        problems = [_problem(detail["loc"], detail["msg"]) for detail in details]
        raise CompressionError("error", "; ".join(problems[:_MAX_PROBLEMS])) from error
    for index, message in enumerate(messages):
        if place := broken_text(message.plain()):
            raise CompressionError("error", _problem((index, place.strip(".")), BROKEN_TEXT))
    return messages


def _problem(location: tuple[int | str, ...], text: str) -> str:
    index, *field = location
    where = ".".join(map(str, field))
    return f"message {index} of the reply: {where + ': ' if where else ''}{text}"


def _plain(message: ChatMessage) -> dict[str, Any]:
    content: str | list[dict[str, str]]
    if isinstance(message.content, str):
        content = message.content
    else:
        texts = [
            part.text if isinstance(part, ContentText) else f"[{part.type}]"
            for part in message.content
            if part.type != "reasoning"
        ]
        parts = [{"type": "text", "text": text} for text in texts]
        content = texts[0] if len(texts) == 1 else parts
    plain: dict[str, Any] = {"role": message.role, "content": content}
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        plain["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function,
                    "arguments": json.dumps(call.arguments, ensure_ascii=False),
                },
            }
            for call in message.tool_calls
        ]
    if isinstance(message, ChatMessageTool):
        plain["tool_call_id"] = message.tool_call_id
    return plain


def _key(message: Message) -> Hashable:
    calls = tuple(
        (call.id, call.function.name, json.dumps(call.function.parsed(), sort_keys=True))
        for call in message.calls
    )
    return message.role, message.text, calls, message.tool_call_id
