"""A conversation in Hermes' form, and what Hermes makes of it back in ours."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from inspect_ai.model import (
    ChatMessage,
    messages_from_openai,
    messages_to_openai,
)

_EXTRAS = "hermes_extras"
"""Metadata key of what Hermes put on a message beside the chat form; it gets it back."""
_COMPRESSIONS = "hermes_compressions"
"""Metadata key on rewritten messages: how many compressions the conversation has been through."""

_CHAT_FORM = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "refusal"})


async def to_hermes(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages as OpenAI chat dicts, one for one."""
    plain = [cast(dict[str, Any], dict(item)) for item in await messages_to_openai(list(messages))]
    for source, item in zip(messages, plain, strict=True):
        for call in item.get("tool_calls") or []:
            # Escapes such as \u30a8 would reach the summarising model as they stand.
            arguments = json.loads(call["function"]["arguments"])
            call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False)
        item.update((source.metadata or {}).get(_EXTRAS, {}))
    return plain


def earlier_compressions(messages: Sequence[ChatMessage]) -> int:
    """Return how often Hermes has compressed a conversation before."""
    return max((int((m.metadata or {}).get(_COMPRESSIONS, 0)) for m in messages), default=0)


async def from_hermes(
    returned: Sequence[Mapping[str, Any]],
    sent: Sequence[Mapping[str, Any]],
    originals: Sequence[ChatMessage],
    compressions: int,
) -> list[ChatMessage]:
    """Return Hermes' messages in our form; those it left as they were are the same objects.

    Args:
        returned: What Hermes returned.
        sent: What it was given, in order.
        originals: The messages behind ``sent``.
        compressions: How many compressions the conversation has now been through.
    """
    result: list[ChatMessage] = []
    position = 0
    for item in returned:
        same = next((i for i in range(position, len(sent)) if sent[i] == item), None)
        if same is not None:
            result.append(originals[same])
            position = same + 1
            continue
        (message,) = await messages_from_openai(
            cast(Any, [{key: value for key, value in item.items() if key in _CHAT_FORM}])
        )
        extras = {key: value for key, value in item.items() if key not in _CHAT_FORM}
        metadata: dict[str, Any] = {_COMPRESSIONS: compressions}
        if extras:
            metadata[_EXTRAS] = extras
        update: dict[str, Any] = {"source": None, "metadata": metadata}
        if message.role == "system" and not result and originals[0].role == "system":
            # The system prompt with a note at its end is still the system prompt.
            update["id"] = originals[0].id
        result.append(message.model_copy(update=update))
    return result
