"""Requests to Anthropic's messages API with a context management beta.

They use the `anthropic` client of Inspect's model (``model.api.client``), with the model's own
address, key and proxies. `Model.generate` cannot send the on-demand form, and it drops everything
of a block but its text. For the same reason a block that must be sent back unchanged is kept in
the metadata of the message that represents it (`BLOCK`), and `exact_replay` gives the model that
sends it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, cast

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ContentData,
    ContentReasoning,
    ContentText,
    Model,
    get_model,
)
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.errors import CompressionError, is_outage
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.state import StateStatus
from compression_eval.compressors.vendors.calls import VendorCall, require_vendor_to_answer
from compression_eval.fixtures.conversation import vendor_summary

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.types.beta import BetaCompactionBlock, BetaMessage, BetaUsage

BLOCK = "compression_eval_anthropic_block"
"""Metadata key of a message: the compaction block it represents, exactly as returned."""

ON_DEMAND_BETA = "compact-2026-09-04"
"""The beta that creates a signed block, which every later request with one needs."""

_MAX_RETRIES = 4
_UNKNOWN = ("does not support", "not supported", "unexpected value", "extra inputs")
"""Phrases of refusals by a model or service that does not know the feature."""

_ENDINGS: dict[str, tuple[StateStatus, str]] = {
    "refusal": ("aborted", "the vendor's summary was refused"),
    "model_context_window_exceeded": ("error", "the conversation does not fit the model's window"),
    "max_tokens": ("error", "the summary was cut off"),
}
"""The meaning of a reply without a summary, by stop reason."""

Block = dict[str, Any]


async def ask(
    model: Model,
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    *,
    beta: str,
    max_tokens: int,
    edit: Block | None = None,
    **options: Any,
) -> "BetaMessage":
    """Send a conversation and return the vendor's reply, its cost recorded.

    Args:
        model: A model of Anthropic.
        messages: The conversation, system messages included: the first ones of the strategy's
            input.
        tools: The tools of its calls.
        beta: The required beta.
        max_tokens: Token limit of the reply.
        edit: Context edit that the server applies first.
        options: Further parameters of the request.

    Raises:
        CompressionError: No such client, or the vendor refused.
        ConnectionError: The reply was not the vendor's.
    """
    from anthropic import APIStatusError
    from anthropic.types.beta import BetaUsage

    client = require_client(model)
    conversation = list(messages)
    if edit and conversation and conversation[-1].role == "assistant":
        # Newer models refuse a prefilled reply.
        conversation.append(ChatMessageUser(content=prompt("anthropic_continue")))
    request: dict[str, Any] = {
        "model": model.api.model_name,
        "max_tokens": max_tokens,
        "messages": wire_messages(conversation),
        "betas": [beta],
        **options,
    }
    if system := [_text(m.text) for m in messages if m.role == "system" and m.text.strip()]:
        request["system"] = system
    if tools:
        request["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters.model_dump(mode="json", exclude_none=True),
            }
            for tool in tools
        ]
    if edit:
        request["context_management"] = {"edits": [edit]}
        if tools:
            request["tool_choice"] = {"type": "none"}
    retries = model.config.max_retries
    patient = client.with_options(max_retries=_MAX_RETRIES if retries is None else retries)
    try:
        reply = cast("BetaMessage", await patient.beta.messages.create(**request))
    except APIStatusError as error:
        if is_outage(error):
            raise
        raise _failure(error) from error
    except JSONDecodeError as error:
        raise ConnectionError(f"{model}: the reply with status 200 is no JSON") from error
    # The package returns anything with that status, such as a proxy's page.
    if not isinstance(getattr(reply, "usage", None), BetaUsage):
        raise ConnectionError(f"{model}: the reply with status 200 is none of the vendor's")
    input_tokens, output_tokens = billed(reply.usage)
    blocks = ", ".join(block.type for block in reply.content) or "no content"
    VendorCall(
        endpoint=f"POST /v1/messages ({beta})",
        model=str(model),
        fed_messages=len(messages),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        outcome=f"{blocks}; stop reason {reply.stop_reason}",
        iterations=[
            entry.model_dump(mode="json", exclude_none=True)
            for entry in reply.usage.iterations or []
        ],
    ).record()
    return reply


def require_client(model: Model) -> "AsyncAnthropic":
    """Return the client of a model behind Anthropic's own API.

    Raises:
        CompressionError: It is not.
    """
    from anthropic import AsyncAnthropic

    client = getattr(model.api, "client", None)
    # Some clients of cloud services inherit from this one, but lack these betas.
    if type(client) is not AsyncAnthropic:
        raise CompressionError(
            "unsupported", f"{model} is not reached through Anthropic's own interface"
        )
    return client


def require_client_that_answers(model: Model) -> None:
    """Raise unless a model is behind Anthropic's API, and Anthropic also answers.

    Raises:
        CompressionError: It is not, or another vendor's model answers.
    """
    require_client(model)
    require_vendor_to_answer(model)


def billed(usage: "BetaUsage") -> tuple[int, int]:
    """Return the input and output tokens of a request, cached input included.

    The top-level numbers exclude compaction, so the iterations are added up; with a fallback model
    they list attempts that are not billed, and the top level is right.
    """
    iterations = usage.iterations or []
    fell_back = any(entry.type == "fallback_message" for entry in iterations)
    entries = iterations if iterations and not fell_back else [usage]
    return (
        sum(
            entry.input_tokens
            + (entry.cache_creation_input_tokens or 0)
            + (entry.cache_read_input_tokens or 0)
            for entry in entries
        ),
        sum(entry.output_tokens for entry in entries),
    )


def _failure(error: "APIStatusError") -> CompressionError:
    detail = f"HTTP {error.status_code}: {' '.join(error.message.split())[:300]}"
    lower = error.message.lower()
    if error.status_code in (404, 405):
        return CompressionError("unsupported", f"no such endpoint or model ({detail})")
    if error.status_code == 413 or "prompt is too long" in lower or "context limit" in lower:
        return CompressionError(
            "error", f"the conversation does not fit the model's window ({detail})"
        )
    if error.status_code == 400 and any(phrase in lower for phrase in _UNKNOWN):
        return CompressionError("unsupported", detail)
    return CompressionError("error", f"the vendor refused: {detail}")


def compaction_block(reply: "BetaMessage", if_blank: str) -> "BetaCompactionBlock | None":
    """Return the compaction block of a reply; None if there is none.

    Args:
        reply: A reply with status 200.
        if_blank: The reason for a block without content.

    Raises:
        CompressionError: There are several, or it has no content.
    """
    blocks = [block for block in reply.content if block.type == "compaction"]
    if len(blocks) > 1:
        raise CompressionError("error", f"{len(blocks)} compaction blocks came back, not one")
    if blocks and not (blocks[0].content or "").strip():
        raise CompressionError("empty", if_blank)
    return blocks[0] if blocks else None


def no_summary(reply: "BetaMessage") -> CompressionError:
    """Return the failure of a reply with status 200 that holds no summary."""
    otherwise: tuple[StateStatus, str] = (
        "empty",
        "the vendor answered with success but without a summary",
    )
    status, what = _ENDINGS.get(reply.stop_reason or "", otherwise)
    return CompressionError(status, f"{what} (stop reason {reply.stop_reason})")


def wire_messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return all but the system messages, adjacent ones of the same role joined.

    Args:
        messages: A conversation whose tool calls have their results.

    Raises:
        CompressionError: A message holds something other than text and tool use.
    """
    result: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        signed = (message.metadata or {}).get(BLOCK)
        assistant = signed or message.role == "assistant"
        role = "assistant" if assistant else "user"
        blocks = [dict(signed)] if signed else _blocks(message)
        if result and result[-1]["role"] == role:
            result[-1]["content"].extend(blocks)
        elif blocks:
            result.append({"role": role, "content": blocks})
    return result


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _blocks(message: ChatMessage) -> list[Block]:
    if isinstance(message, ChatMessageTool):
        text = message.error.message if message.error else message.text
        return [
            {
                "type": "tool_result",
                "tool_use_id": message.tool_call_id,
                **({"content": text} if text else {}),
                **({"is_error": True} if message.error else {}),
            }
        ]
    content = message.content
    blocks: list[Block] = []
    for part in [ContentText(text=content)] if isinstance(content, str) else content:
        if isinstance(part, ContentText):
            cached = {"cache_control": {"type": "ephemeral"}} if part.cache_breakpoint else {}
            if part.text.strip():
                blocks.append(_text(part.text) | cached)
        elif isinstance(part, ContentData) and (summary := vendor_summary(part)):
            blocks.append({"type": "compaction", "content": summary})
        elif not isinstance(part, ContentReasoning):
            # Reasoning of another request must not be sent again; everything else must be.
            raise CompressionError(
                "unsupported", f"a {message.role} message holds a part of type {part.type!r}"
            )
    if isinstance(message, ChatMessageAssistant):
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.function, "input": call.arguments}
            for call in message.tool_calls or []
        ]
    return blocks


@asynccontextmanager
async def exact_replay(model: Model, messages: Sequence[ChatMessage]) -> AsyncIterator[Model]:
    """Yield the model for these messages: the same one, unless they hold a signed block.

    Args:
        model: The model that answers.
        messages: All messages of the request.
    """
    if not any(BLOCK in (message.metadata or {}) for message in messages):
        yield model
        return
    arguments = dict(model.model_args)
    own_betas = arguments.pop("betas", [])
    betas = [own_betas] if isinstance(own_betas, str) else list(own_betas)
    body: dict[str, Any] = {
        **(arguments.pop("extra_body", None) or {}),
        "messages": wire_messages(messages),
    }
    async with get_model(
        str(model),
        config=model.config,
        base_url=model.api.base_url,
        api_key=model.api.api_key,
        memoize=False,
        betas=[*betas, ON_DEMAND_BETA],
        extra_body=body,
        **arguments,
    ) as exact:
        yield exact
