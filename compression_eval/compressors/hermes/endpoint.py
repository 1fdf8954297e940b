"""A web server on the loopback for one compression: Hermes asks it, and an Inspect model answers.

It is just enough HTTP for one local client, and runs in the task group of whoever opens it, so that
what answers a request runs in the same async context (of an Inspect sample, its transcript and
limits) as the code that waits for it.
"""

import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast
from uuid import uuid4

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from inspect_ai.model import GenerateConfig, Model, ModelOutput, messages_from_openai
from inspect_ai.util import LimitExceededError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compression_eval.compressors.errors import NO_CHOICES, is_outage, refused, stop_reason

MODEL_NAME = "compressor"
"""The model's name as Hermes sees it: always the same, so that nothing in it turns on the name."""

_FINISH_REASONS = {"max_tokens": "length", "content_filter": "content_filter"}

Answer = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Takes the body of a chat request and returns that of the reply; raises `RefusedRequestError`."""

_PATH = "/v1/chat/completions"
_HEADER_BYTES = 64 * 1024
_BODY_BYTES = 64 * 1024 * 1024


class RefusedRequestError(Exception):
    """A request that gets an error for a reply.

    Args:
        status: HTTP status.
        reason: What is wrong, in one line.
        code: OpenAI's short name of the error, if it has one.
    """

    def __init__(self, status: int, reason: str, code: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code

    def body(self) -> dict[str, Any]:
        """Return the error in OpenAI's form."""
        kind = "compression_eval"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.code}}


@dataclass(frozen=True)
class Address:
    """Where an endpoint is, and what opens it."""

    base_url: str
    api_key: str
    """Random for each endpoint: nothing else on this machine can spend the user's money."""


@asynccontextmanager
async def chat_endpoint(answer: Answer) -> AsyncIterator[Address]:
    """Serve ``/v1/chat/completions`` as long as the context is open.

    An error that ``answer`` raises ends the context, as one of its own body would.

    Args:
        answer: Called for each request; requests are answered one after the other.
    """
    key = secrets.token_urlsafe(32)
    lock = anyio.Lock()

    async def connection(stream: SocketStream) -> None:
        async with stream:
            try:
                body = await _read(stream, key)
                async with lock:
                    response = _response(HTTPStatus.OK, await answer(body))
            except RefusedRequestError as error:
                response = _response(error.status, error.body())
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                return
            # A client that has gone has an error of its own to tell of.
            with suppress(anyio.BrokenResourceError):
                await stream.send(response)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, connection)
        yield Address(f"http://127.0.0.1:{port}/v1", key)
        group.cancel_scope.cancel()


async def _read(stream: SocketStream, key: str) -> Mapping[str, Any]:
    """Read one request and return its body; what is not a chat request is refused."""
    buffered = BufferedByteReceiveStream(stream)
    try:
        head = (await buffered.receive_until(b"\r\n\r\n", _HEADER_BYTES)).decode("latin-1")
    except anyio.DelimiterNotFound:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        raise RefusedRequestError(status, "header too large") from None
    request_line, *lines = head.split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _BODY_BYTES:
        raise RefusedRequestError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body too large or of unknown length"
        )
    # Read to the end before anything is refused: a client that is still sending would see a
    # broken connection instead of the refusal.
    content = await buffered.receive_exactly(int(length)) if int(length) else b""
    if not hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {key}".encode()):
        raise RefusedRequestError(HTTPStatus.UNAUTHORIZED, "wrong key")
    method, _, rest = request_line.partition(" ")
    if rest.partition(" ")[0].partition("?")[0] != _PATH:
        raise RefusedRequestError(HTTPStatus.NOT_FOUND, f"there is only {_PATH}")
    if method != "POST":
        raise RefusedRequestError(HTTPStatus.METHOD_NOT_ALLOWED, "only POST")
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
    return body


def _response(status: int, body: Mapping[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Error"
    head = [
        f"HTTP/1.1 {int(status)} {phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        "Connection: close",
        # OpenAI's client would send a failed request again; Inspect has done its retries already.
        "x-should-retry: false",
    ]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + content


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
