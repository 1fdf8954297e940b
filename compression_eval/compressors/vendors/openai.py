"""OpenAI's ``/responses/compact``: the conversation becomes its user messages and an opaque item.

Source: ``client.responses.compact`` of the ``openai`` package, called by Inspect's
`Model.compact`, with the model's own client, retries, token limits and usage accounting.
`CompactionNative` drops the usage, without which an encrypted item has no known size.
"""

from collections.abc import Sequence

from inspect_ai.model import ChatMessage, ChatMessageUser, ContentData, Model, ModelUsage
from inspect_ai.tool import ToolInfo

from compression_eval.compressors.errors import CompressionError, is_outage
from compression_eval.compressors.strategy import Strategy, strategy
from compression_eval.compressors.tokens import OPAQUE_TOKENS
from compression_eval.compressors.vendors.calls import VendorCall, require_vendor_to_answer

_ITEM = "openai_compact"
_TOO_LONG = ("context_length_exceeded", "string_above_max_length")


def require_responses(model: Model) -> None:
    """Raise unless this model and the answering one use OpenAI's Responses API."""
    from openai import AsyncOpenAI

    if not isinstance(getattr(model.api, "client", None), AsyncOpenAI):
        raise CompressionError("unsupported", f"{model} is not reached through the openai package")
    answering = require_vendor_to_answer(model)
    if answering is not None and getattr(answering.api, "responses_api", True) is False:
        raise CompressionError(
            "unsupported",
            f"{answering} answers through the chat interface, which knows no compaction items "
            "(give it -M responses_api=true)",
        )


@strategy
class OpenAICompaction(Strategy):
    """Replace a conversation by the items that OpenAI's compaction endpoint returns."""

    summary = "OpenAI's /responses/compact: user messages and one encrypted item"
    check_model = staticmethod(require_responses)
    readable = False
    preserve_prefix = False  # the endpoint returns the user messages itself

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the items of one call of the endpoint, in their order, without system messages.

        Raises:
            CompressionError: ``unsupported`` without such an endpoint, ``error`` for a conversation
                over the model's window and other refusals, ``empty`` without an item or without
                content in it.
        """
        require_responses(model)
        returned, usage = await _call(model, messages, tools)
        items = [message for message in returned if _encrypted(message) is not None]
        VendorCall(
            endpoint="POST /responses/compact",
            model=str(model),
            fed_messages=len(messages),
            input_tokens=usage.input_tokens if usage else 0,
            output_tokens=usage.output_tokens if usage else 0,
            outcome=f"{len(returned)} items, {len(items)} of them encrypted",
        ).record()
        if len(items) != 1:
            raise CompressionError("error", f"{len(items)} compaction items came back, not one")
        if not _encrypted(items[0]):
            raise CompressionError("empty", "the compaction item has no content")
        size = await _item_tokens(model, items[0], usage)
        # A message returned verbatim is replaced by the one sent: it keeps its id, and counts as
        # kept.
        sent = [m for m in messages if m.role == "user" and _encrypted(m) is None]
        kept: list[ChatMessage] = []
        for message in returned:
            if message is items[0]:
                kept.append(message.model_copy(update={"metadata": {OPAQUE_TOKENS: size}}))
                continue
            same = next((i for i, m in enumerate(sent) if m.text == message.text), None)
            if message.role == "user" and same is not None:
                kept.append(sent[same])
                del sent[: same + 1]
            else:
                kept.append(message)
        return kept, None


async def _call(
    model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
) -> tuple[list[ChatMessage], ModelUsage | None]:
    from openai import APIStatusError

    try:
        return await model.compact(messages, tools)
    except NotImplementedError as error:
        # Inspect raises this for a 404 or 405, and for a model on the chat API.
        raise CompressionError("unsupported", str(error)) from error
    except APIStatusError as error:
        if is_outage(error):
            raise
        detail = f"HTTP {error.status_code}: {error.message[:300]}"
        if error.status_code == 413 or error.code in _TOO_LONG:
            reason = f"the conversation does not fit the model's window ({detail})"
            raise CompressionError("error", reason) from error
        raise CompressionError("error", f"the endpoint refused: {detail}") from error
    except ValueError as error:
        if "ResponseCompactionItem" not in str(error):
            raise
        # Inspect looks for the item itself and names its type; the usage is lost.
        raise CompressionError("empty", "the endpoint returned no compaction item") from error


def _encrypted(message: ChatMessage) -> str | None:
    """Return the encrypted content of a message that is a compaction item; else None."""
    parts: Sequence[object] = message.content if isinstance(message.content, list) else []
    for part in parts:
        if isinstance(part, ContentData):
            data = part.data.get("compaction_metadata")
            if isinstance(data, dict) and data.get("type") == _ITEM:
                return str(data.get("encrypted_content") or "")
    return None


async def _item_tokens(model: Model, item: ChatMessage, usage: ModelUsage | None) -> int:
    """Return the tokens of an item as the vendor reports them: written by it, else read by it."""
    if usage is not None and usage.output_tokens > 0:
        return usage.output_tokens
    cause: Exception | None = None
    try:
        if (counted := await model.count_tokens([item])) > 0:
            return counted
    except Exception as error:  # on any error of the endpoint, the size stays unknown
        if is_outage(error, model):
            raise
        cause = error
    reason = "the vendor reports no tokens for its item, so its size is not known"
    raise CompressionError("error", reason) from cause
