"""What the strategies taken from products share: arguments, requests, and an earlier result.

Two kinds of request are made, as the products make them. Some put the request after the
conversation's own messages (`asked_after`); others serialise the conversation (`asked_about`). The
latter is done as one JSON object a line, since no text inside it can then pass for its end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
)
from inspect_ai.tool import ToolInfo
from pydantic import Field

from compression_eval.compressors.arguments import Arguments
from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.material import data_block
from compression_eval.compressors.prompts import prompt


class ProductArguments(Arguments):
    """What every strategy taken from a product can be told."""

    prompt: str | None = Field(default=None, min_length=1)
    """Text that replaces the instructions to the summarising model."""
    focus_topic: str | None = Field(default=None, min_length=1)
    """A topic that deserves the most room; added to the instructions."""

    def instructions(self, name: str) -> str:
        """Return the instructions: the text of ``NAME.md`` or its replacement, and the focus."""
        text = self.prompt or prompt(name)
        if self.focus_topic:
            text = f"{text}\n\n{filled('focus', topic=self.focus_topic)}"
        return text


def filled(name: str, **values: object) -> str:
    """Return the text of ``NAME.md`` with its ``{names}`` filled in.

    Braces that hold no such name stay as they are, and so does whatever the values hold.
    """
    return re.sub(
        r"\{(\w+)\}",
        lambda found: str(values.get(found[1], found[0])),
        prompt(name),
    )


@dataclass(frozen=True)
class Conversation:
    """A conversation with the result of an earlier compression set apart."""

    system: list[ChatMessage]
    """The leading system messages."""
    previous: Any
    """What the newest carrier holds under the key; None if there was no compression before."""
    body: list[ChatMessage]
    """All other messages but the carriers."""


def set_apart(messages: Sequence[ChatMessage], key: str) -> Conversation:
    """Part a conversation into system messages, the earlier result, and the rest.

    Args:
        messages: The conversation.
        key: Metadata key that marks a message which carries an earlier result.
    """
    start = 0
    while start < len(messages) and messages[start].role == "system":
        start += 1
    previous: Any = None
    body: list[ChatMessage] = []
    for message in messages[start:]:
        if key in (message.metadata or {}):
            previous = (message.metadata or {})[key]
        else:
            body.append(message)
    return Conversation(list(messages[:start]), previous, body)


def nothing_to_do(reason: str) -> CompressionError:
    """Return the failure of a strategy whose own rules leave nothing to compress."""
    return CompressionError("not_applied", reason)


async def asked_after(
    model: Model,
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    instructions: str,
) -> ModelOutput:
    """Return the reply to a request that stands after the messages themselves.

    Args:
        model: Writes the summary.
        messages: The conversation, system messages included.
        tools: The tools it was had with; some providers demand them where there are tool calls.
        instructions: The request.
    """
    return await model.generate(
        [*messages, ChatMessageUser(content=instructions)],
        tools=list(tools),
        tool_choice="none",
    )


async def asked_about(
    model: Model,
    messages: Sequence[ChatMessage],
    header: dict[str, Any],
    instructions: str,
    max_tokens: int | None = None,
) -> ModelOutput:
    """Return the reply to a request that stands after the messages as data.

    Args:
        model: Writes the summary.
        messages: What is to be summarised.
        header: Further data, each entry on a line of its own before the messages.
        instructions: The request.
        max_tokens: Limit of the reply.
    """
    return await model.generate(
        [
            ChatMessageSystem(content=prompt("summariser")),
            ChatMessageUser(content=f"{data_block(header, messages)}\n\n{instructions}"),
        ],
        config=GenerateConfig(max_tokens=max_tokens),
    )
