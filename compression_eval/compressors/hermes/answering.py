"""The chat requests of Hermes, answered by an Inspect model."""

import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast
from uuid import uuid4

from inspect_ai.model import GenerateConfig, Model, ModelOutput, messages_from_openai
from inspect_ai.util import LimitExceededError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.compressors.errors import is_outage
from compression_eval.inspect_models import NO_CHOICES, refused, said, stop_reason

MODEL_NAME = "compressor"
"""The model's name as Hermes sees it: constant, so that nothing depends on it."""

_FINISH_REASONS = {"max_tokens": "length", "content_filter": "content_filter"}

Reply = tuple[int, dict[str, Any]]
"""HTTP status and body."""


class _ChatRequest(BaseModel):
    """The fields of a chat request that are used."""

    model_config = ConfigDict(extra="ignore")

    messages: list[dict[str, Any]] = Field(min_length=1)
    stream: bool | None = None
    max_tokens: int | None = Field(default=None, gt=0)
    max_completion_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)


class Answerer:
    """Answers chat requests with a model.

    A failed model call is not repeated: Inspect has retried it as configured, so Hermes' own
    retries get the same error.

    Args:
        model: The model that answers.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._failure: Reply | None = None
        self.error = ""
        """Reason of the failed model call; empty if none failed."""
        self.refused = False
        """Whether the model refused, in a reply that Hermes may take for a summary."""

    async def answer(self, body: Mapping[str, Any]) -> Reply:
        """Return the reply to a chat request.

        Raises:
            LimitExceededError: A limit of the sample was hit.
            Exception: An outage of the model, which says nothing about Hermes.
        """
        if self._failure:
            return self._failure
        try:
            request = _ChatRequest.model_validate(body)
        except ValidationError as error:
            field = ".".join(str(part) for part in error.errors()[0]["loc"])
            return _error(HTTPStatus.BAD_REQUEST, f"not a chat request: {field}")
        if request.stream:
            return _error(HTTPStatus.BAD_REQUEST, "streaming is not offered")
        try:
            output = await self._model.generate(
                await messages_from_openai(cast(Any, request.messages)),
                config=GenerateConfig(
                    max_tokens=request.max_tokens or request.max_completion_tokens,
                    temperature=request.temperature,
                ),
            )
        except LimitExceededError:
            raise
        except Exception as error:  # any error of a provider is this call's failure
            if is_outage(error, self._model):
                raise
            # Hermes reacts to some statuses.
            status = getattr(error, "status_code", None)
            known = isinstance(status, int) and 400 <= status < 600
            return self._failed(status if known else 500, f"{type(error).__name__}: {error}")
        too_long = stop_reason(output) == "model_length"
        reason = output.error or (NO_CHOICES if output.empty else "")
        if too_long or reason:
            reason = reason or "the request does not fit the model's context window"
            code = "context_length_exceeded" if too_long else None
            return self._failed(HTTPStatus.BAD_REQUEST, reason, code)
        self.refused = self.refused or refused(output)
        return HTTPStatus.OK, _chat_completion(output)

    def _failed(self, status: Any, reason: str, code: str | None = None) -> Reply:
        self.error = " ".join(reason.split())
        self._failure = _error(status, self.error, code)
        return self._failure


def _error(status: int, reason: str, code: str | None = None) -> Reply:
    """Return an error in OpenAI's form."""
    error = {"message": reason, "type": "compression_eval", "param": None, "code": code}
    return status, {"error": error}


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
                "message": {"role": "assistant", "content": said(output)},
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
