"""Anthropic's threshold edit: fired or not, failed or not, and replayed by Inspect."""

import anyio
import pytest
from inspect_ai.model import ChatMessageUser

from compression_eval.compressors.vendors.anthropic import AnthropicEditCompaction
from compression_eval.fixtures.loading import load_pairs
from compression_eval.record import render_messages
from tests.compressors.conftest import conversation_fixture
from tests.compressors.vendors.anthropic_rules import SUMMARY, size
from tests.compressors.vendors.conftest import Service, facts
from tests.e2e.vendors.wire import Failed


def test_the_block_is_the_state_and_can_be_read(anthropic: Service) -> None:
    state = anthropic.compress("anthropic-edit", {"instructions": "Keep the codes."})
    assert state.status == "ok", state.failure
    assert [message.role for message in state.messages] == ["system", "assistant"]
    assert state.readable
    assert SUMMARY in render_messages(state.messages)
    assert facts(state) == {"E000": (True, False), "E4401": (False, True)}
    (cycle,) = state.cycles
    assert (cycle.model_calls, cycle.input_tokens, cycle.output_tokens) == (1, 1_000, 40)
    (edit,) = anthropic.vendor.asked[0].body["context_management"]["edits"]
    assert edit == {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 50_000},
        "pause_after_compaction": True,
        "instructions": "Keep the codes.",
    }


def test_inspect_sends_the_block_back_as_the_vendor_wants_it(anthropic: Service) -> None:
    state = anthropic.compress("anthropic-edit")
    messages = [*state.messages, ChatMessageUser(content="Which code?")]
    output = anyio.run(anthropic.model.generate, messages)
    assert "E4401" in output.completion
    assert anthropic.refused == []
    block = anthropic.vendor.asked[-1].body["messages"][0]["content"][0]
    block.pop("cache_control", None)
    assert block == {"type": "compaction", "content": SUMMARY}


def test_a_long_fixture_is_compressed_over_two_cycles(anthropic: Service) -> None:
    (pair,) = load_pairs(["401-debug"])
    length = len(pair.fixture.messages)
    half = next(n for n in range(length // 2, length) if pair.fixture.messages[n].role == "user")
    state = anthropic.compress("anthropic-edit", cuts=(half, length), fixture=pair.fixture)
    assert state.status == "ok", state.failure
    anthropic.compress("anthropic-edit", fixture=pair.fixture)
    _, second, whole = anthropic.vendor.asked
    assert second.body["messages"][0]["content"][0]["type"] == "compaction"
    assert size(second.body) < size(whole.body)
    assert anthropic.refused == []


def test_not_fired_and_failed_are_told_apart(anthropic: Service) -> None:
    anthropic.rules.tokens = 49_999
    state = anthropic.compress("anthropic-edit")
    assert state.status == "not_applied"
    assert "below the trigger of 50000" in state.failure
    anthropic.rules.tokens = 60_000
    anthropic.rules.block = {"content": None}
    state = anthropic.compress("anthropic-edit")
    assert state.status == "empty"
    assert "its summary failed" in state.failure
    anthropic.rules.block = None
    state = anthropic.compress("anthropic-edit")
    assert state.status == "empty"
    assert "without a summary" in state.failure


def test_a_block_that_inspect_would_not_send_back_whole_is_unsupported(anthropic: Service) -> None:
    anthropic.rules.block = {"content": SUMMARY, "signature": "sig", "encrypted_content": "x"}
    state = anthropic.compress("anthropic-edit")
    assert state.status == "unsupported"
    assert "encrypted_content, signature" in state.failure


def test_models_without_it_are_unsupported(anthropic: Service) -> None:
    text = "This model does not support context management."
    anthropic.rules.failed = Failed(400, "invalid_request_error", text)
    state = anthropic.compress("anthropic-edit")
    assert (state.status, text in state.failure) == ("unsupported", True)


def test_the_trigger_is_checked_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="50000"):
        AnthropicEditCompaction(trigger_tokens=49_999)


def test_the_conversation_never_ends_with_the_agent(anthropic: Service) -> None:
    assert conversation_fixture().messages[-1].role == "assistant"
    anthropic.compress("anthropic-edit")
    assert anthropic.vendor.asked[0].body["messages"][-1]["role"] == "user"
