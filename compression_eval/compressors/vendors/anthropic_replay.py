"""Answer from a signed compaction block, which must reach the vendor exactly as it came.

Inspect's Anthropic provider keeps only a block's text, and adds an edit to each request with a
block that the vendor refuses beside this one. But two of the provider's model arguments do what is
needed: ``betas``, and ``extra_body``, whose entries take the place of the provider's own in the
body that is sent. So the question goes through an ordinary Inspect model, made for it, whose
request holds the messages as they must be. Everything else (tools, retries, limits, usage, logs)
stays Inspect's; the request that the log keeps of the call is the one that was sent.

A model's own generation settings are carried over. Those given to ``eval()`` beside a `Model`
object are not, since only that object is told of them.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from inspect_ai.model import ChatMessage, Model, get_model

from compression_eval.compressors.vendors.anthropic_messages import BLOCK, wire_messages

BETA = "compact-2026-09-04"
"""Needed to make a block, and by every later request that holds one."""


@asynccontextmanager
async def exact_replay(model: Model, messages: Sequence[ChatMessage]) -> AsyncIterator[Model]:
    """Yield the model to put these messages to: as given, unless they hold a signed block.

    Args:
        model: The model that answers.
        messages: All messages of the request.
    """
    if not any(BLOCK in (message.metadata or {}) for message in messages):
        yield model
        return
    arguments = dict(model.model_args)
    given = arguments.pop("betas", [])
    betas = [given] if isinstance(given, str) else list(given)
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
        betas=[*betas, BETA],
        extra_body=body,
        **arguments,
    ) as exact:
        yield exact
