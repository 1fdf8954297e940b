"""Compaction by the model's own vendor, through Inspect's `Model.compact`.

Inspect calls OpenAI's ``/responses/compact``, or sends Anthropic's edit ``compact_20260112``, with
the model's own client, retries, token limits and usage. Its strategy `CompactionNative` does no
more, but drops the usage: the cost of the arm, and the only size that an encrypted item has. So
these strategies call `Model.compact` themselves, and then

1. record the call (`VendorCall`), because Inspect logs no model event for it;
2. check that the vendor returned one compaction, with content;
3. return what Inspect returned, or for ``anthropic-text-projection`` the text of the block alone.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from inspect_ai.event import InfoEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    ContentData,
    Model,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolInfo
from pydantic import BaseModel, ConfigDict

from compression_eval.compressors.errors import CompressionError
from compression_eval.compressors.prompts import prompt
from compression_eval.compressors.strategy import Strategy, Text, carrier, strategy
from compression_eval.compressors.tokens import OPAQUE_TOKENS

_SOURCE = "compression_eval/vendor_call"
"""Source of the info events."""

_NOT_TRIGGERED, _NO_CONTENT = "did not trigger", "failed to compact"
"""How Inspect's Anthropic provider says that nothing was compacted, and that the block is empty."""


class VendorCall(BaseModel):
    """One call of a vendor's compaction, as the transcript of the sample contains it."""

    model_config = ConfigDict(frozen=True)

    model: str
    fed_messages: int
    """Number of the messages, from the first, that it was given."""
    input_tokens: int
    output_tokens: int


def vendor_call(event: InfoEvent) -> VendorCall | None:
    """Return the call that an event records; None if it records something else."""
    return VendorCall.model_validate(event.data) if event.source == _SOURCE else None


async def _compacted(
    model: Model,
    messages: Sequence[ChatMessage],
    tools: list[ToolInfo],
    instructions: str | None = None,
) -> tuple[list[ChatMessage], ModelUsage | None]:
    """Return the messages that the vendor's compaction leaves, and its usage.

    Raises:
        CompressionError: The provider has no compaction, or it did not take place.
    """
    try:
        returned, usage = await model.compact(list(messages), tools, instructions)
    except NotImplementedError as error:
        reason = str(error)
        if _NOT_TRIGGERED in reason:
            raise CompressionError(
                "not_applied", f"{reason} The conversation may be below 50,000 tokens."
            ) from error
        failed = _NO_CONTENT in reason
        raise CompressionError("empty" if failed else "unsupported", reason) from error
    call = VendorCall(
        model=str(model),
        fed_messages=len(messages),
        input_tokens=usage.input_tokens if usage else 0,
        output_tokens=usage.output_tokens if usage else 0,
    )
    transcript().info(call.model_dump(mode="json"), source=_SOURCE)
    return returned, usage


def _block(message: ChatMessage) -> dict[str, Any] | None:
    """Return what Inspect keeps of a vendor's compaction in a message; None if it is none."""
    for part in [] if isinstance(message.content, str) else message.content:
        metadata = part.data.get("compaction_metadata") if isinstance(part, ContentData) else None
        if isinstance(metadata, dict):
            return metadata
    return None


def _the_block(returned: Sequence[ChatMessage]) -> tuple[ChatMessage, dict[str, Any]]:
    found = [(message, block) for message in returned if (block := _block(message))]
    if len(found) != 1:
        raise CompressionError("error", f"{len(found)} compaction items came back, not one")
    return found[0]


def _require(provider: str, compressing: Model) -> None:
    if not str(compressing).startswith(f"{provider}/"):
        raise CompressionError("unsupported", f"{compressing} is not a model of {provider}")


def _require_to_answer(provider: str, compressing: Model) -> None:
    """Raise unless the answering model can read this provider's compaction."""
    _require(provider, compressing)
    try:
        answering = get_model()
    except ValueError:  # outside of an eval it is not known
        return
    if not str(answering).startswith((f"{provider}/", "none/")):
        reason = (
            f"only the vendor of {compressing} can read this state, but {answering} is to answer"
        )
        raise CompressionError("unsupported", reason)
    if getattr(answering.api, "responses_api", True) is False:
        raise CompressionError(
            "unsupported",
            f"{answering} answers through the chat interface, which knows no compaction items "
            "(give it -M responses_api=true)",
        )


@strategy
class OpenAICompaction(Strategy):
    """Replace a conversation by the items that OpenAI's compaction endpoint returns."""

    summary = "OpenAI's /responses/compact: user messages and one encrypted item"
    check_model: ClassVar[Any] = staticmethod(partial(_require_to_answer, "openai"))
    readable = False
    preserve_prefix = False  # the endpoint returns the user messages itself

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the items of one call of the endpoint, in their order, without system messages.

        Raises:
            CompressionError: ``unsupported`` without such an endpoint, ``empty`` for an item
                without content, ``error`` without one item whose size is known.
        """
        type(self).check_model(model)
        returned, usage = await _compacted(model, messages, tools)
        item, metadata = _the_block(returned)
        if not metadata.get("encrypted_content"):
            raise CompressionError("empty", "the compaction item has no content")
        if usage is None or not usage.output_tokens:
            raise CompressionError("error", "the vendor reports no tokens for its item")
        # A message returned verbatim is replaced by the one sent: it keeps its id, so it counts as
        # kept.
        sent = [message for message in messages if message.role == "user" and not _block(message)]
        kept: list[ChatMessage] = []
        for message in returned:
            same = next((i for i, each in enumerate(sent) if each.text == message.text), None)
            if message is item:
                size = {OPAQUE_TOKENS: usage.output_tokens}
                kept.append(message.model_copy(update={"metadata": size}))
            elif message.role == "user" and same is not None:
                kept.append(sent[same])
                del sent[: same + 1]
            else:
                kept.append(message)
        return kept, None


@strategy
class AnthropicEditCompaction(Strategy):
    """Have Anthropic compact a conversation and keep the block that it returns.

    The server compacts from 50,000 input tokens on. The state is Inspect's own: the block, and a
    message that asks to go on.
    """

    summary = "Anthropic's compact_20260112: the server's summary replaces all messages"
    check_model: ClassVar[Any] = staticmethod(partial(_require_to_answer, "anthropic"))

    instructions: Text | None = None
    """What the server's summariser is told; by the documentation it replaces the server's own."""

    preserve_prefix = False  # the server ignores messages before a block

    async def compact(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo]
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return the messages that stand for the conversation.

        Raises:
            CompressionError: ``not_applied`` below the trigger, ``empty`` for a block without
                content, ``unsupported`` for a model that does not know the edit.
        """
        type(self).check_model(model)
        conversation = list(messages)
        if conversation and conversation[-1].role == "assistant":
            # Newer models refuse a prefilled reply.
            conversation.append(ChatMessageUser(content=prompt("anthropic_continue")))
        returned, _ = await _compacted(model, conversation, tools, self.instructions)
        text = str(_the_block(returned)[1].get("content") or "").strip()
        if not text:
            raise CompressionError("empty", "the compaction block has no content")
        return self.state(returned, text)

    def state(
        self, returned: list[ChatMessage], text: str
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return what ``compact`` returns, given Inspect's messages and the block's text."""
        return returned, None


@strategy
class AnthropicTextCompaction(AnthropicEditCompaction):
    """Have Anthropic compact a conversation and keep the block's text, which any model can read."""

    summary = "the summary of anthropic-edit as text, for any model to answer from"
    check_model = staticmethod(partial(_require, "anthropic"))

    def state(
        self, returned: list[ChatMessage], text: str
    ) -> tuple[list[ChatMessage], ChatMessageUser | None]:
        """Return one message with the text, twice: as the state and for an agent's history."""
        message = carrier(text, {})
        return [message], message
