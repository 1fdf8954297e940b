"""The artifact index beside a vendor's own item, which has to go back as it came."""

import json

import anyio
import pytest
from inspect_ai.model import ChatMessageUser

from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import is_opaque
from compression_eval.compressors.vendors.anthropic_api import BLOCK, exact_replay
from compression_eval.fixtures.conversation import declared_tools
from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.conftest import Service

TITLE = "Files of this session"
NATIVE, PROJECTION = "anthropic-native", "anthropic-text-projection"


def both(service: Service, compressor: str) -> tuple[State, State]:
    plain = service.compress(compressor)
    wrapped = service.compress(f"{compressor}+artifacts")
    assert (plain.status, wrapped.status) == ("ok", "ok"), wrapped.failure
    return plain, wrapped


def ask(service: Service, state: State) -> str:
    fixture = conversation_fixture()
    tools = declared_tools(fixture, len(fixture.messages))

    async def put() -> None:
        messages = [*state.messages, ChatMessageUser(content="Which code?")]
        async with exact_replay(service.model, messages) as model:
            await model.generate(messages, tools=tools, tool_choice="none")

    anyio.run(put)
    return json.dumps(service.vendor.asked[-1].body)


def test_an_encrypted_item_is_left_alone_and_the_index_follows_it(openai: Service) -> None:
    plain, wrapped = both(openai, "openai-compact")
    assert [m.text for m in wrapped.messages[:-1]] == [m.text for m in plain.messages]
    assert is_opaque(wrapped.messages[-2])
    assert len(wrapped.messages[-2].content) == len(plain.messages[-1].content) == 1
    assert TITLE in wrapped.messages[-1].text
    assert TITLE in ask(openai, wrapped)
    assert openai.refused == []


def test_a_later_compression_of_the_vendor_never_sees_the_index(openai: Service) -> None:
    cuts = (13, len(conversation_fixture().messages))
    state = openai.compress("openai-compact+artifacts", cuts=cuts)
    assert state.status == "ok", state.failure
    assert openai.refused == []
    assert not any(TITLE in json.dumps(asked.body) for asked in openai.vendor.asked)
    assert sum(TITLE in message.text for message in state.messages) == 1


def test_a_signed_block_goes_back_as_it_came_and_the_index_follows_it(anthropic: Service) -> None:
    plain, wrapped = both(anthropic, NATIVE)
    (block,) = [m for m in wrapped.messages if BLOCK in (m.metadata or {})]
    assert block.text == plain.messages[-1].text
    assert [TITLE in message.text for message in wrapped.messages] == [False, False, True]
    assert TITLE in ask(anthropic, wrapped)
    assert anthropic.refused == []


@pytest.mark.parametrize("cycles", [1, 2])
def test_a_summary_as_text_carries_the_index(anthropic: Service, cycles: int) -> None:
    end = len(conversation_fixture().messages)
    state = anthropic.compress(f"{PROJECTION}+artifacts", cuts=(13, end)[2 - cycles :])
    assert state.status == "ok", state.failure
    assert [TITLE in message.text for message in state.messages] == [False, True]
    assert state.messages[1].text.count(TITLE) == 1
