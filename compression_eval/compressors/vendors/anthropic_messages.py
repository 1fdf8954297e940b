"""A conversation in the form of Anthropic's messages interface.

Inspect converts messages inside its provider only, and its form of a compaction block keeps nothing
but the text. A block that must go back as it came travels in the metadata of the message that
stands for it (`BLOCK`); here it takes that message's place.
"""

from collections.abc import Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ContentData,
    ContentReasoning,
    ContentText,
)
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.tokens import vendor_summary

BLOCK = "compression_eval_anthropic_block"
"""Metadata key of a message: the compaction block it stands for, exactly as it was returned."""

Block = dict[str, Any]


def system_blocks(messages: Sequence[ChatMessage]) -> list[Block]:
    """Return the system messages as text blocks."""
    return [
        {"type": "text", "text": message.text}
        for message in messages
        if message.role == "system" and message.text.strip()
    ]


def wire_messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return all but the system messages, neighbours of the same role joined.

    Args:
        messages: A conversation whose tool calls have their results.

    Raises:
        CompressionError: A message holds something other than text and tool use.
    """
    result: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role, blocks = _blocks(message)
        if not blocks:
            continue
        if result and result[-1]["role"] == role:
            result[-1]["content"].extend(blocks)
        else:
            result.append({"role": role, "content": blocks})
    return result


def wire_tools(tools: Sequence[ToolInfo]) -> list[dict[str, Any]]:
    """Return tools as they are declared to the vendor."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters.model_dump(mode="json", exclude_none=True),
        }
        for tool in tools
    ]


def _blocks(message: ChatMessage) -> tuple[str, list[Block]]:
    """Return the role that a message has on the wire, and its content."""
    exact = (message.metadata or {}).get(BLOCK)
    if exact is not None:
        return "assistant", [dict(exact)]
    if isinstance(message, ChatMessageTool):
        text = message.error.message if message.error else message.text
        block: Block = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        if text:
            block["content"] = text
        if message.error:
            block["is_error"] = True
        return "user", [block]
    blocks = _content_blocks(message)
    if isinstance(message, ChatMessageAssistant):
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.function, "input": call.arguments}
            for call in message.tool_calls or []
        ]
    return message.role, blocks


def _content_blocks(message: ChatMessage) -> list[Block]:
    content = message.content
    parts = [ContentText(text=content)] if isinstance(content, str) else content
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, ContentText):
            if part.text.strip():
                blocks.append(_text_block(part))
        elif isinstance(part, ContentData) and (summary := vendor_summary(part)):
            blocks.append({"type": "compaction", "content": summary})
        elif not isinstance(part, ContentReasoning):
            # Reasoning of another request may not be shown again; everything else must be.
            raise CompressionError(
                "unsupported", f"a {message.role} message holds a part of type {part.type!r}"
            )
    return blocks


def _text_block(part: ContentText) -> Block:
    block: Block = {"type": "text", "text": part.text}
    if part.cache_breakpoint:
        block["cache_control"] = {"type": "ephemeral"}
    return block
