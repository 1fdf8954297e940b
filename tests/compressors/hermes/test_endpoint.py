"""The loopback endpoint, as OpenAI's own client and a careless one see it."""

import time
from collections.abc import Mapping
from typing import Any

import anyio
import openai
import pytest
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.util import LimitExceededError

from compression_eval.compressors.hermes.endpoint import (
    Address,
    Forwarder,
    RefusedRequestError,
    chat_endpoint,
)
from tests.compressors.conftest import model_replying

MESSAGES: list[Any] = [{"role": "user", "content": "Summarise: é 総"}]


def client(address: Address, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=address.base_url, api_key=options.pop("api_key", address.api_key), **options
    )


def forwarder(model: Model) -> Forwarder:
    return Forwarder(model, anyio.CancelScope(deadline=anyio.current_time() + 60))


async def raw(address: Address, request: bytes) -> bytes:
    """Send bytes and return everything that comes back."""
    port = int(address.base_url.split(":")[2].split("/")[0])
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(request)
        received = b""
        try:
            while True:
                received += await stream.receive()
        except anyio.EndOfStream:
            return received


def test_openais_client_gets_a_chat_completion() -> None:
    output = ModelOutput.from_content("mockllm/model", "é 総", stop_reason="max_tokens")
    output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    model = get_model("mockllm/model", custom_outputs=[output], memoize=False)

    async def main() -> None:
        async with chat_endpoint(forwarder(model).answer) as address:
            reply = await client(address, _strict_response_validation=True).chat.completions.create(
                model="any", messages=MESSAGES
            )
        (choice,) = reply.choices
        assert (choice.message.content, choice.finish_reason) == ("é 総", "length")
        assert reply.usage is not None
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 3)

    anyio.run(main)


def test_requests_come_through_as_they_were_sent() -> None:
    model, asked = model_replying(lambda messages: messages[-1].text)

    async def main() -> None:
        async with chat_endpoint(forwarder(model).answer) as address:
            long = "x" * 3_000_000
            for text in ("é 総", long):
                reply = await client(address).chat.completions.create(
                    model="any",
                    messages=[
                        {"role": "system", "content": "be brief"},
                        {"role": "user", "content": text},
                    ],
                )
                assert reply.choices[0].message.content == text

    anyio.run(main)
    assert [[m.role for m in messages] for messages in asked] == [["system", "user"]] * 2


def test_a_wrong_key_or_path_costs_nothing() -> None:
    model, asked = model_replying(lambda _: "s")

    async def main() -> None:
        async with chat_endpoint(forwarder(model).answer) as address:
            stranger = client(address, api_key="guess")
            with pytest.raises(openai.AuthenticationError):
                await stranger.chat.completions.create(model="any", messages=MESSAGES)
            with pytest.raises(openai.NotFoundError):
                await client(address).models.list()
            with pytest.raises(openai.BadRequestError, match="streaming is not offered"):
                await client(address).chat.completions.create(
                    model="any", messages=MESSAGES, stream=True
                )
            with pytest.raises(openai.BadRequestError, match="not a chat request: messages"):
                await client(address).chat.completions.create(model="any", messages=[])

    anyio.run(main)
    assert asked == []


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer KEY\r\n\r\n", b"405"),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer KEY\r\n"
            b"Content-Length: 2\r\n\r\n[]",
            b"400",
        ),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", b"413"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nX: " + b"y" * 100_000, b"431"),
    ],
)
def test_what_is_not_a_chat_request_is_refused(request_bytes: bytes, status: bytes) -> None:
    async def never(_: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError

    async def main() -> None:
        async with chat_endpoint(never) as address:
            request = request_bytes.replace(b"KEY", address.api_key.encode())
            reply = await raw(address, request)
            assert reply.split()[1] == status

    anyio.run(main)


def test_a_client_that_goes_away_does_not_end_the_endpoint() -> None:
    model, _ = model_replying(lambda _: "s")

    async def main() -> None:
        async with chat_endpoint(forwarder(model).answer) as address:
            port = int(address.base_url.split(":")[2].split("/")[0])
            for start in (b"", b"POST /v1/chat", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"):
                async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                    await stream.send(start)
            reply = await client(address).chat.completions.create(model="any", messages=MESSAGES)
            assert reply.choices[0].message.content == "s"

    anyio.run(main)


def test_a_refusal_is_sent_once_and_in_openais_form() -> None:
    calls: list[int] = []

    async def refusing(_: Mapping[str, Any]) -> Mapping[str, Any]:
        calls.append(1)
        raise RefusedRequestError(503, "down for the day", "unavailable")

    async def main() -> None:
        async with chat_endpoint(refusing) as address:
            with pytest.raises(openai.InternalServerError) as caught:
                await client(address).chat.completions.create(model="any", messages=MESSAGES)
        assert (caught.value.status_code, caught.value.code) == (503, "unavailable")

    anyio.run(main)
    assert len(calls) == 1


def test_a_limit_of_the_sample_ends_whoever_waits() -> None:
    async def limited(_: Mapping[str, Any]) -> Mapping[str, Any]:
        raise LimitExceededError("token", value=11, limit=10)

    async def waiting() -> None:
        async with chat_endpoint(limited) as address:
            await client(address).chat.completions.create(model="any", messages=MESSAGES)
            await anyio.sleep(60)

    with pytest.raises(BaseExceptionGroup) as caught:
        anyio.run(waiting)
    assert caught.group_contains(LimitExceededError)


def test_time_that_the_model_takes_does_not_count() -> None:
    def slow(_: Any) -> str:
        time.sleep(0.3)
        return "s"

    async def main() -> bool:
        model, _ = model_replying(slow)
        with anyio.move_on_after(0.2) as limit:
            await Forwarder(model, limit).answer({"messages": MESSAGES})
            await anyio.sleep(0)
        answered = not limit.cancelled_caught
        with anyio.move_on_after(0.2) as limit:
            await Forwarder(model, limit).answer({"messages": MESSAGES})
            await anyio.sleep(60)
        return answered and limit.cancelled_caught

    assert anyio.run(main)
