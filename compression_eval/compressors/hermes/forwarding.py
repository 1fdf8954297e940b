"""Carry out a chat request with an Inspect model, and answer in OpenAI's form."""

import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from uuid import uuid4

import anyio
from inspect_ai.model import GenerateConfig, Model, ModelOutput, messages_from_openai
from inspect_ai.util import LimitExceededError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.compressors.errors import is_outage
from compression_eval.compressors.hermes.endpoint import RefusedRequestError
from compression_eval.compressors.refusal import NO_CHOICES, refused, stop_reason

MODEL_NAME = "compressor"
"""The model's name as Hermes sees it: always the same, so that nothing in it turns on the name."""

_FINISH_REASONS = {"max_tokens": "length", "content_filter": "content_filter"}


class _ChatRequest(BaseModel):
    """What is used of a chat request; the rest (the model's name, metadata) is not."""

    model_config = ConfigDict(extra="ignore")

    messages: list[dict[str, Any]] = Field(min_length=1)
    stream: bool | None = None
    max_tokens: int | None = Field(default=None, gt=0)
    max_completion_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)


class Forwarder:
    """Answers chat requests with a model.

    A model call that failed is not made again: Inspect has retried it as it was told to, so
    Hermes' own retries get the same error.

    Args:
        model: Where the requests go.
        waiting: A time limit that does not run while the model is called.
    """

    def __init__(self, model: Model, waiting: anyio.CancelScope) -> None:
        self._model = model
        self._waiting = waiting
        self._failure: RefusedRequestError | None = None
        self.outage: Exception | None = None
        """What stood in the way of a model call, if that says nothing about Hermes."""
        self.refused = False
        """Whether the model declined, in a reply that Hermes may take for a summary."""

    async def answer(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the reply to a chat request.

        Raises:
            RefusedRequestError: The request is not one we serve, or the model call failed.
            LimitExceededError: A limit of the sample was hit.
        """
        if self._failure:
            raise self._failure
        try:
            request = _ChatRequest.model_validate(body)
        except ValidationError as error:
            field = ".".join(str(part) for part in error.errors()[0]["loc"])
            reason = f"not a chat request: {field}"
            raise RefusedRequestError(HTTPStatus.BAD_REQUEST, reason) from error
        if request.stream:
            raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "streaming is not offered")
        try:
            output = await self._generate(request)
        except LimitExceededError:
            raise
        except Exception as error:  # whatever a provider raises is this call's failure
            if is_outage(error, self._model):
                self.outage = error
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self._failure = RefusedRequestError(_status_of(error), reason)
            raise self._failure from error
        self._failure = _failure(output)
        if self._failure:
            raise self._failure
        self.refused = self.refused or refused(output)
        return _chat_completion(output)

    @property
    def error(self) -> str:
        """Why a model call failed; empty if none did."""
        return str(self._failure or "")

    async def _generate(self, request: _ChatRequest) -> ModelOutput:
        remaining = self._waiting.deadline - anyio.current_time()
        self._waiting.deadline = float("inf")
        try:
            return await self._model.generate(
                await messages_from_openai(cast(Any, request.messages)),
                config=GenerateConfig(
                    max_tokens=request.max_tokens or request.max_completion_tokens,
                    temperature=request.temperature,
                ),
            )
        finally:
            self._waiting.deadline = anyio.current_time() + remaining


def _failure(output: ModelOutput) -> RefusedRequestError | None:
    """Return the error that an output stands for, if it does."""
    reason = " ".join((output.error or "").split()) or (NO_CHOICES if output.empty else "")
    if stop_reason(output) == "model_length":
        reason = reason or "the request does not fit the model's context window"
        return RefusedRequestError(HTTPStatus.BAD_REQUEST, reason, "context_length_exceeded")
    return RefusedRequestError(HTTPStatus.BAD_REQUEST, reason) if reason else None


def _status_of(error: Exception) -> int:
    """Return the HTTP status that a provider's error carries; Hermes acts on some of them."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and 400 <= status < 600 else 500


def _chat_completion(output: ModelOutput) -> dict[str, Any]:
    usage = output.usage
    prompt_tokens = usage.input_tokens if usage else 0
    completion_tokens = usage.output_tokens if usage else 0
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL_NAME,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": output.completion},
                "finish_reason": _FINISH_REASONS.get(stop_reason(output), "stop"),
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }
