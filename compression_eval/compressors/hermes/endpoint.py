"""A web server on the loopback for one compression: just enough HTTP for one local client.

It runs in the task group of whoever opens it, so that what answers a request runs in the same
async context (of an Inspect sample, its transcript and limits) as the code that waits for it.
"""

import hmac
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

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
