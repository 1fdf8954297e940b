"""Ask a model for JSON in an agreed shape, check the reply, and ask again if it is unusable.

Not every provider enforces a schema, so the JSON may be in a code fence or within prose. The caller
decides how strictly its content is checked.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ResponseSchema,
)
from inspect_ai.util import JSONSchema, LimitExceededError

from compression_eval.inspect_models import cut_off, refused, said
from compression_eval.sharing import prefix_first

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Calls for one reply before it counts as failed."""

MAX_ECHO = 20_000
"""Characters of an unusable reply that are sent back."""

MAX_REPLY = 400_000
"""Characters of a reply that are searched for JSON."""

MAX_OBJECTS = 500
"""Braces of a reply at which an object is looked for."""


class ReplyError(ValueError):
    """A reply that cannot be used.

    Attributes:
        problem: What kind of thing is wrong, as a word that can be counted.
        detail: What it concerns; short, fit to be shown to the model.
    """

    def __init__(self, problem: str, detail: str = "") -> None:
        super().__init__(f"{problem}: {detail}" if detail else problem)
        self.problem = problem
        self.detail = detail


@dataclass(frozen=True)
class Asked:
    """How often a model was asked, and the last problem."""

    calls: int
    failure: ReplyError
    """Its problem is ``error`` where the provider failed, ``refusal`` where the model declined, and
    empty where nothing was wrong."""


async def ask(
    model: Model,
    request: Sequence[ChatMessage],
    *,
    role: str,
    schema: ResponseSchema,
    prefix_key: str,
    take: Callable[[str], ReplyError | None],
    correction: Callable[[ReplyError], str],
) -> Asked:
    """Ask a model until its reply is complete, at most `MAX_ATTEMPTS` times.

    Unusable replies, refusals and provider errors are retried, and so is every reply that was cut
    off, since what it was to end with is not known. Cancellation and Inspect's limits are no
    failures of the model and propagate.

    Args:
        model: The model to ask.
        request: The messages; a correction comes after them.
        role: What the model does, for the log.
        schema: For providers that can force a model to keep to one.
        prefix_key: Equal for requests with a shared prefix; see `sharing.prefix_first`.
        take: Keeps what a reply says, given without its thinking, and returns what is still wrong
            with it, or None; raises `ReplyError` if nothing of it can be used.
        correction: Returns the message that tells the model about that.
    """
    messages = list(request)
    config = GenerateConfig(response_schema=schema)
    failure = ReplyError("")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            async with prefix_first(prefix_key, model):
                output = await model.generate(messages, config=config)
        except LimitExceededError:
            raise
        except Exception as error:  # providers raise all kinds of errors
            failure = ReplyError("error", f"{type(error).__name__}: {error}")
            logger.info("%s %s: attempt %d: %s", role, model, attempt, failure.detail)
            # The schema may be what the provider refuses, and the reply can be read without.
            config = GenerateConfig()
            continue
        if refused(output):
            failure = ReplyError("refusal")
            continue
        text = said(output)
        try:
            if cut_off(output):
                raise ReplyError("truncated")
            wrong = take(text)
        except ReplyError as error:
            wrong = failure = error
        if wrong is None:
            break
        messages = [*request, ChatMessageUser(content=correction(wrong))]
        if text.strip():
            echo = ChatMessageAssistant(content=text[:MAX_ECHO])
            messages.insert(len(request), echo)
    return Asked(attempt, failure)


def objects_with(text: str, key: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a model's reply that have a key, wherever they are in it."""
    text = text[:MAX_REPLY]
    decoder = json.JSONDecoder(object_pairs_hook=_no_repeated_keys)
    at = text.find("{")
    for _ in range(MAX_OBJECTS):
        if at < 0:
            return
        end = at + 1  # the wanted object may be nested in another
        try:
            value, after = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            pass
        else:
            if key in value:
                end = after
                yield value
        at = text.find("{", end)


def _no_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return value


def object_schema(**properties: JSONSchema) -> JSONSchema:
    """Return the schema of an object that has all of some properties, and no others."""
    return JSONSchema(
        type="object",
        properties=properties,
        required=list(properties),
        additionalProperties=False,
    )


def list_schema(**properties: JSONSchema) -> JSONSchema:
    """Return the schema of a list of such objects."""
    return JSONSchema(type="array", items=object_schema(**properties))
