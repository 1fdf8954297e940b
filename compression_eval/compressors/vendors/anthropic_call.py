"""One request to Anthropic's messages interface with a beta of its context management.

It goes through the `anthropic` client that Inspect's model holds (``model.api.client``), so that
address, key and proxies are the model's own. `Model.generate` does not serve: it cannot send the
on-demand form, and it drops what the answer says of a block beyond its text.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from inspect_ai.model import ChatMessage, Model
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.errors import CompressionError, is_outage
from compression_eval.compressors.vendors.accounting import VendorCall, record_call
from compression_eval.compressors.vendors.answering import require_vendor_to_answer
from compression_eval.compressors.vendors.anthropic_messages import (
    system_blocks,
    wire_messages,
    wire_tools,
)

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.types.beta import BetaMessage, BetaUsage

_MAX_RETRIES = 4
_UNKNOWN = ("does not support", "not supported", "unexpected value", "extra inputs")
"""What a refusal says if the model or the service does not know the feature."""


async def ask(
    model: Model,
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolInfo],
    *,
    beta: str,
    max_tokens: int,
    fed: int,
    **options: Any,
) -> "BetaMessage":
    """Send a conversation and return the vendor's reply, its cost recorded.

    Args:
        model: A model of Anthropic.
        messages: The conversation to send, system messages included.
        tools: Tools that its calls use.
        beta: The beta that the request needs.
        max_tokens: Most tokens of the reply.
        fed: How many messages of the strategy's input these are, for the record.
        options: Further parameters of the request.

    Raises:
        CompressionError: No such client, or the vendor refused.
    """
    from anthropic import APIStatusError

    client = _client(model)
    request: dict[str, Any] = {
        "model": model.api.model_name,
        "max_tokens": max_tokens,
        "messages": wire_messages(messages),
        "betas": [beta],
        **options,
    }
    if system := system_blocks(messages):
        request["system"] = system
    if tools:
        request["tools"] = wire_tools(tools)
    retries = model.config.max_retries
    patient = client.with_options(max_retries=_MAX_RETRIES if retries is None else retries)
    try:
        reply = cast("BetaMessage", await patient.beta.messages.create(**request))
    except APIStatusError as error:
        if is_outage(error):
            raise
        raise failure(error) from error
    input_tokens, output_tokens = billed(reply.usage)
    blocks = ", ".join(block.type for block in reply.content) or "no content"
    record_call(
        VendorCall(
            endpoint=f"POST /v1/messages ({beta})",
            model=str(model),
            fed_messages=fed,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            outcome=f"{blocks}; stop reason {reply.stop_reason}",
            iterations=[
                entry.model_dump(mode="json", exclude_none=True)
                for entry in reply.usage.iterations or []
            ],
        )
    )
    return reply


def require_client(model: Model) -> None:
    """Raise unless a model is reached through Anthropic's own interface.

    Raises:
        CompressionError: It is not.
    """
    _client(model)


def require_client_that_answers(model: Model) -> None:
    """Raise unless a model is reached so, and its vendor also answers.

    Raises:
        CompressionError: It is not, or another vendor's model answers.
    """
    require_client(model)
    require_vendor_to_answer(model)


def _client(model: Model) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    client = getattr(model.api, "client", None)
    # The clients of cloud services partly inherit from this one, but they lack these betas.
    if type(client) is not AsyncAnthropic:
        raise CompressionError(
            "unsupported", f"{model} is not reached through Anthropic's own interface"
        )
    return client


def billed(usage: "BetaUsage") -> tuple[int, int]:
    """Return the input and output tokens of a request, cached input included.

    The top-level numbers leave compaction out, so the iterations are added up; where a fallback
    model stepped in, they list attempts that are not billed, and the top level is right.
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


def failure(error: "APIStatusError") -> CompressionError:
    """Return the failure that an error status means."""
    said = f"HTTP {error.status_code}: {' '.join(error.message.split())[:300]}"
    lower = error.message.lower()
    if error.status_code in (404, 405):
        return CompressionError("unsupported", f"no such endpoint or model ({said})")
    if error.status_code == 413 or "prompt is too long" in lower or "context limit" in lower:
        return CompressionError(
            "error", f"the conversation does not fit the model's window ({said})"
        )
    if error.status_code == 400 and any(phrase in lower for phrase in _UNKNOWN):
        return CompressionError("unsupported", said)
    return CompressionError("error", f"the vendor refused: {said}")


def end_of_summary(reply: "BetaMessage") -> CompressionError:
    """Return the failure of a reply with status 200 that holds no summary."""
    reason = reply.stop_reason
    if reason == "refusal":
        return CompressionError("aborted", "the vendor's summary was refused (stop reason refusal)")
    if reason == "model_context_window_exceeded":
        return CompressionError(
            "error", f"the conversation does not fit the model's window (stop reason {reason})"
        )
    if reason == "max_tokens":
        return CompressionError("error", "the summary was cut off (stop reason max_tokens)")
    return CompressionError(
        "empty", f"the vendor answered with success but without a summary (stop reason {reason})"
    )
